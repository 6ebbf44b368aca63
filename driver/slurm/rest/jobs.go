package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// liveJob is a job as slurmctld's part of slurmrestd shows it.
type liveJob struct {
	ID        number `json:"job_id"`
	Het       number `json:"het_job_id"`
	User      text   `json:"user_name"`
	UID       number `json:"user_id"`
	Account   text   `json:"account"`
	Partition text   `json:"partition"`
	QOS       text   `json:"qos"`
	Comment   text   `json:"comment"`
	State     words  `json:"job_state"`
	Reason    text   `json:"state_reason"`
	Nodes     text   `json:"nodes"`
	Restarts  number `json:"restart_cnt"`
	Priority  number `json:"priority"`
	Hold      bool   `json:"hold"`
	Submitted number `json:"submit_time"`
	Eligible  number `json:"eligible_time"`
	Started   number `json:"start_time"`
	Ended     number `json:"end_time"`
	Exit      exit   `json:"exit_code"`
}

// lives is an answer with jobs of slurmctld's.
type lives struct {
	response
	Jobs []liveJob `json:"jobs"`
}

// ownerName is whose it is.
func (l *liveJob) ownerName() string {
	if l.User == "" && l.UID.set {
		return strconv.FormatInt(l.UID.integerBelow(noValue), 10)
	}
	return string(l.User)
}

// siteJob makes site's form of it.
func (l *liveJob) siteJob() (site.Job, error) {
	j := site.Job{
		ID: l.ID.uint32(), Het: l.Het.uint32(), User: l.ownerName(), Account: string(l.Account), Partition: string(l.Partition), QOS: string(l.QOS), Comment: string(l.Comment),
		Restarts: int(l.Restarts.integerBelow(1 << 31)), Priority: l.Priority.uint32(),
		Submitted: l.Submitted.asTime(), Eligible: l.Eligible.asTime(), Started: l.Started.asTime(), Ended: l.Ended.asTime(), Exit: l.Exit.code,
	}
	if j.ID == 0 {
		return j, fault.New(fault.Unavailable, "slurmrestd shows a job without a number")
	}
	if err := setState(&j, l.State); err != nil {
		return j, err
	}
	if r := string(l.Reason); r != "None" {
		j.Reason = r
	}
	j.Held = j.Held || j.State == site.Pending && l.Hold || j.Reason == "JobHeldUser" || j.Reason == "JobHeldAdmin"
	return j, setNodes(&j, string(l.Nodes))
}

// setState understands a state with its flags: ["COMPLETED","COMPLETING"], or the one word
// that v0.0.38 has.
func setState(j *site.Job, all words) error {
	for _, text := range all {
		w, ok := site.ParseState(text)
		if !ok {
			continue // a flag of a version to come
		}
		j.Completing = j.Completing || w.Completing
		j.Held = j.Held || w.Held
		switch {
		case w.State == "":
		case j.State == "", text == "STOPPED":
			j.State = w.State
		}
	}
	if j.Completing { // as the commands show it: how it ended counts when its nodes are clean
		j.State = ""
		return nil
	}
	if j.State == "" {
		return fault.New(fault.Unavailable, "job %d: slurmrestd shows the state %q, which is not known", j.ID, strings.Join(all, "+"))
	}
	return nil
}

func setNodes(j *site.Job, text string) (err error) {
	switch text {
	case "", "(null)", "None assigned", "none":
		return nil
	}
	if j.Nodes, err = hostlist.Expand(text); err != nil {
		return fault.New(fault.Unavailable, "job %d: nodes %q: %w", j.ID, text, err)
	}
	return nil
}

// width is how many records are read at once.
const width = 8

// mostStates is how many numbers one address has in it.
const mostStates = 500

// Jobs is site.Site's. Records of many jobs are read by the commands, where there are any:
// slurmrestd has a call for one and a call for all.
func (s *Site) Jobs(ctx context.Context, ids []uint32) ([]site.Job, error) {
	if _, err := s.slurmVersion(ctx); err != nil && len(ids) > 0 {
		return nil, err
	}
	var out []site.Job
	for part := range slices.Chunk(ids, mostStates) {
		some, err := s.someJobs(ctx, part)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// someJobs is Jobs of not too many.
func (s *Site) someJobs(ctx context.Context, ids []uint32) ([]site.Job, error) {
	s.mu.Lock()
	lists := s.lists
	s.mu.Unlock()
	if !lists || len(ids) <= site.Few {
		return s.fullJobs(ctx, ids)
	}
	return s.records.Jobs(ctx, ids, s.jobStates, s.fullJobs)
}

// jobStates asks for the states of numbers, in one call. A number is a parameter of its own:
// slurmrestd 24.11 does not take the list that its description promises.
func (s *Site) jobStates(ctx context.Context, ids []uint32) (map[uint32]string, error) {
	q := url.Values{}
	for _, id := range ids {
		q.Add("job_id", strconv.FormatUint(uint64(id), 10))
	}
	var a struct {
		response
		Jobs []struct {
			ID    number `json:"job_id"`
			State words  `json:"state"`
		} `json:"jobs"`
	}
	if err := s.callAPI(ctx, &request{method: http.MethodGet, base: "slurm", path: "/jobs/state", query: q}, &a); err != nil {
		return nil, err
	}
	out := make(map[uint32]string, len(a.Jobs))
	for _, j := range a.Jobs {
		if id := j.ID.uint32(); slices.Contains(ids, id) {
			out[id] = strings.Join(j.State, "+")
		}
	}
	return out, nil
}

// fullJobs reads jobs: many by the commands, where there are any.
func (s *Site) fullJobs(ctx context.Context, ids []uint32) ([]site.Job, error) {
	if s.cfg.Commands != nil && len(ids) > site.Few {
		return s.cfg.Commands.Jobs(ctx, ids)
	}
	return s.readEach(ctx, ids)
}

// readEach reads jobs one by one, some at once.
func (s *Site) readEach(ctx context.Context, ids []uint32) ([]site.Job, error) {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		out   []site.Job
		first error
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan uint32)
	for range min(width, len(ids)) {
		wg.Go(func() {
			for id := range next {
				all, err := s.readOne(ctx, id)
				mu.Lock()
				if err != nil && first == nil {
					first = err
					cancel()
				}
				out = append(out, all...)
				mu.Unlock()
			}
		})
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		next <- id
	}
	close(next)
	wg.Wait()
	if first == nil && ctx.Err() != nil {
		first = fault.New(fault.Unavailable, "slurmrestd was not asked for all jobs: %w", context.Cause(ctx))
	}
	return out, first
}

// readOne reads a job, with all components of a heterogeneous one; nil: slurmctld knows none by
// that number.
func (s *Site) readOne(ctx context.Context, id uint32) ([]site.Job, error) {
	var a lives
	err := s.callAPI(ctx, &request{method: http.MethodGet, base: "slurm", path: fmt.Sprintf("/job/%d", id), query: s.withoutDetail()}, &a)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []site.Job
	there := false
	for i := range a.Jobs {
		j, err := a.Jobs[i].siteJob()
		if err != nil {
			return nil, err
		}
		if there = there || j.ID == id; j.ID == id || j.Het == id {
			out = append(out, j)
		}
	}
	if !there {
		return nil, fault.New(fault.Unavailable, "slurmrestd answered a question about job %d with others", id)
	}
	return out, nil
}

// withoutDetail asks for records without the cores of each node, which are most of one.
func (s *Site) withoutDetail() url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.versions["slurm"]; v == old || v == "" {
		return nil
	}
	return url.Values{"flags": {"ALL"}}
}

// listing is a reading of all jobs that callers share: who asks while one is under way
// waits for the next, which begins after they asked.
type listing struct {
	next *shared
	busy bool
}

type shared struct {
	done chan struct{}
	jobs []liveJob
	err  error
}

// Of is site.Site's. No version of slurmrestd lists a user's jobs alone: the commands do,
// where there are any, else all are read, at most one reading at a time.
func (s *Site) Of(ctx context.Context, user string) ([]site.Job, error) {
	if user == "" {
		user = s.cfg.User
	}
	if s.cfg.Commands != nil {
		return s.cfg.Commands.Of(ctx, user)
	}
	all, err := s.allJobs(ctx)
	if err != nil {
		return nil, err
	}
	var out []site.Job
	for i := range all {
		if all[i].ownerName() != user {
			continue // whatever is strange about it
		}
		j, err := all[i].siteJob()
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, nil
}

// allJobs are all jobs that slurmctld knows, as of some time after the call began.
func (s *Site) allJobs(ctx context.Context) ([]liveJob, error) {
	s.mu.Lock()
	mine := s.listing.next
	if mine == nil {
		mine = &shared{done: make(chan struct{})}
		s.listing.next = mine
	}
	if !s.listing.busy && s.ctx.Err() == nil {
		s.listing.busy = true
		s.wg.Go(s.runList)
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.jobs, mine.err
	case <-s.ctx.Done():
		return nil, fault.New(fault.Unavailable, "the client of slurmrestd is closed")
	case <-ctx.Done():
		return nil, fault.New(fault.Unavailable, "slurmrestd did not list all jobs: %w", context.Cause(ctx))
	}
}

// runList reads all jobs until nobody waits any more.
func (s *Site) runList() {
	for {
		s.mu.Lock()
		l := s.listing.next
		s.listing.next = nil
		if l == nil {
			s.listing.busy = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		l.jobs, l.err = s.readAll()
		close(l.done)
	}
}

// readAll reads all jobs. Its end is the deadline of calls: those who wait have their own.
func (s *Site) readAll() ([]liveJob, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Deadline)
	defer cancel()
	if _, err := s.slurmVersion(ctx); err != nil {
		return nil, err
	}
	var a lives
	if err := s.callAPI(ctx, &request{method: http.MethodGet, base: "slurm", path: "/jobs", query: s.withoutDetail()}, &a); err != nil {
		return nil, err
	}
	return a.Jobs, nil
}
