package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// live are the fields asked of squeue; the comment is last, as it is free text.
var live = []string{
	"JobID", "State", "Reason", "UserName", "Account", "Partition", "QOS", "NodeList", "SubmitTime", "EligibleTime", "StartTime", "EndTime",
	"exit_code", "RestartCnt", "PriorityLong", "HetJobID", "Comment",
}

// Jobs is site.Site's. squeue asks slurmctld for everybody's jobs when it is given several
// numbers; from 24.05 on it can ask for the states of these alone, and of those that changed
// the records are read.
func (s *Site) Jobs(ctx context.Context, ids []uint32) ([]site.Job, error) {
	switch {
	case len(ids) == 0:
		return nil, nil
	case len(ids) <= site.Few || s.stateless.Load():
		return s.fullJobs(ctx, ids)
	}
	all, err := s.seen.Jobs(ctx, ids, s.jobStates, s.fullJobs)
	if errors.Is(err, errNoStates) {
		s.stateless.Store(true)
		return s.fullJobs(ctx, ids)
	}
	return all, err
}

// errNoStates says that this squeue cannot ask for states alone.
var errNoStates = errors.New("squeue has no --only-job-state")

// jobStates asks for the states of numbers, those of a heterogeneous job's components with it.
func (s *Site) jobStates(ctx context.Context, ids []uint32) (map[uint32]string, error) {
	fields := []string{"JobID", "State", "HetJobID"}
	out, err := s.runQuery(ctx, "squeue", "--only-job-state", "--noheader", "--states=all", "--jobs="+joinIDs(ids), "--Format="+squeueFormat(fields))
	switch {
	case fault.KindOf(err) == fault.NotFound: // it says so where it knows none of them
		return nil, nil
	case err != nil && strings.Contains(err.Error(), "only-job-state'"):
		return nil, errNoStates
	case err != nil:
		return nil, err
	}
	all, err := parseJobs(out, fields, func(field, value string, j *site.Job) error {
		if field == "State" {
			j.Reason = value // its word, unread
			return nil
		}
		return fromQueue(field, value, j)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b site.Job) int { return cmp.Compare(a.ID, b.ID) })
	words := make(map[uint32]string, len(ids))
	for _, id := range ids {
		words[id] = ""
	}
	for _, j := range slices.CompactFunc(all, func(a, b site.Job) bool { return a.ID == b.ID }) {
		id := cmp.Or(j.Het, j.ID)
		if was, asked := words[id]; asked {
			words[id] = was + " " + j.Reason
		}
	}
	maps.DeleteFunc(words, func(_ uint32, w string) bool { return w == "" })
	return words, nil
}

// fullJobs reads the records of jobs.
func (s *Site) fullJobs(ctx context.Context, ids []uint32) ([]site.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := s.runQuery(ctx, "squeue", "--noheader", "--states=all", "--jobs="+joinIDs(ids), "--Format="+squeueFormat(live))
	if fault.KindOf(err) == fault.NotFound { // it says so where it knows none of them
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseJobs(out, live, fromQueue)
}

// Of is site.Site's.
func (s *Site) Of(ctx context.Context, user string) ([]site.Job, error) {
	user, err := s.queryUser(ctx, user)
	if err != nil {
		return nil, err
	}
	out, err := s.runQuery(ctx, "squeue", "--noheader", "--states=all", "--user="+user, "--Format="+squeueFormat(live))
	if err != nil {
		return nil, err
	}
	return parseJobs(out, live, fromQueue)
}

// squeueFormat is squeue's --Format for fields: each ends with the separator, uncut.
func squeueFormat(fields []string) string {
	return strings.Join(fields, ":"+sep+",") + ":" + sep
}

func joinIDs(ids []uint32) string {
	text := make([]string, len(ids))
	for i, id := range ids {
		text[i] = strconv.FormatUint(uint64(id), 10)
	}
	return strings.Join(text, ",")
}

// parseJobs reads records of fields.
func parseJobs(out []byte, fields []string, read func(field, value string, j *site.Job) error) ([]site.Job, error) {
	var all []site.Job
	text := string(out)
	for text != "" {
		var j site.Job
		for _, field := range fields {
			value, rest, ok := strings.Cut(text, sep)
			if !ok {
				return nil, fault.New(fault.Unavailable, "an answer of Slurm's ends in the middle of a job: %q", text)
			}
			text = rest
			if err := read(field, strings.TrimSpace(value), &j); err != nil {
				return nil, fault.New(fault.Unavailable, "job %d: %s %q: %w", j.ID, field, value, err)
			}
		}
		text = strings.TrimPrefix(text, "\n")
		all = append(all, j)
	}
	return all, nil
}

// fromQueue reads a field of squeue's.
func fromQueue(field, value string, j *site.Job) (err error) {
	switch field {
	case "JobID":
		var n uint64
		n, err = strconv.ParseUint(value, 10, 32)
		j.ID = uint32(n)
	case "State":
		return parseState(value, j)
	case "Reason":
		if value != "None" {
			j.Reason = value
		}
		j.Held = j.Held || value == "JobHeldUser" || value == "JobHeldAdmin"
	case "UserName":
		j.User = value
	case "Account":
		j.Account = value
	case "Partition":
		j.Partition = value
	case "QOS":
		j.QOS = value
	case "NodeList":
		j.Nodes, err = expandHosts(value)
	case "SubmitTime":
		j.Submitted = parseTime(value)
	case "EligibleTime":
		j.Eligible = parseTime(value)
	case "StartTime":
		j.Started = parseTime(value)
	case "EndTime":
		j.Ended = parseTime(value)
	case "exit_code": // the status of wait(2), from some version on code:signal
		if strings.Contains(value, ":") {
			return fromPast("ExitCode", value, j)
		}
		var n uint64
		n, err = strconv.ParseUint(value, 10, 32)
		j.Exit = job.ExitCode{Status: int(n >> 8 & 0xff), Signal: int(n & 0x7f)}
	case "RestartCnt":
		j.Restarts, err = strconv.Atoi(value)
	case "HetJobID":
		if n, err := strconv.ParseUint(value, 10, 32); err == nil { // else N/A
			j.Het = uint32(n)
		}
	case "PriorityLong":
		var n uint64
		n, err = strconv.ParseUint(value, 10, 32)
		j.Priority = uint32(n)
	case "Comment":
		if value != "(null)" {
			j.Comment = value
		}
	}
	return err
}

func parseState(value string, j *site.Job) error {
	w, ok := site.ParseState(value)
	if !ok {
		return fmt.Errorf("no state of a job that is known")
	}
	j.State, j.Completing, j.CancelledBy = w.State, w.Completing, w.By
	j.Held = j.Held || w.Held
	return nil
}

// past are the fields asked of sacct.
var past = []string{"JobIDRaw", "State", "User", "Account", "Partition", "QOS", "NodeList", "Submit", "Eligible", "Start", "End", "ExitCode", "Comment"}

// Past is site.Site's.
func (s *Site) Past(ctx context.Context, ids []uint32) ([]site.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.pastJobs(ctx, "--jobs="+joinIDs(ids))
}

// PastOf is site.Site's.
func (s *Site) PastOf(ctx context.Context, user string, since time.Time) ([]site.Job, error) {
	user, err := s.queryUser(ctx, user)
	if err != nil {
		return nil, err
	}
	return s.pastJobs(ctx, "--user="+user, "--starttime="+since.Local().Format("2006-01-02T15:04:05"))
}

func (s *Site) pastJobs(ctx context.Context, which ...string) ([]site.Job, error) {
	args := append([]string{"--noheader", "--allocations", "--duplicates", "--parsable", "--delimiter=" + sep, "--format=" + strings.Join(past, ",")}, which...)
	out, err := s.runQuery(ctx, "sacct", args...)
	switch {
	case err != nil && strings.Contains(err.Error(), "accounting storage is disabled"):
		return nil, fault.New(fault.Unsupported, "the cluster has no accounting (AccountingStorageType)")
	case err != nil:
		return nil, err
	}
	return parseJobs(out, past, fromPast)
}

// fromPast reads a field of sacct's.
func fromPast(field, value string, j *site.Job) (err error) {
	switch field {
	case "JobIDRaw":
		return fromQueue("JobID", value, j)
	case "User":
		j.User = value
	case "Submit", "Eligible", "Start", "End":
		at := map[string]*time.Time{"Submit": &j.Submitted, "Eligible": &j.Eligible, "Start": &j.Started, "End": &j.Ended}
		*at[field] = parseTime(value)
	case "ExitCode": // code:signal
		code, signal, _ := strings.Cut(value, ":")
		if j.Exit.Status, err = strconv.Atoi(code); err == nil {
			j.Exit.Signal, err = strconv.Atoi(signal)
		}
	default:
		return fromQueue(field, value, j)
	}
	return err
}

// parseTime reads a time in seconds; anything else is none.
func parseTime(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0)
}

func expandHosts(text string) ([]string, error) {
	switch text {
	case "", "(null)", "None assigned", "none":
		return nil, nil
	}
	return hostlist.Expand(text)
}
