package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// startRecord is what the script wrote into the lock when it took it. Slurm's records do not
// always speak of that beginning: slurmctld that lost that a job runs begins it again,
// under the same number. Then slurmd ("already running, do not launch second copy") has the
// job cancelled, as root, in accounting's words "CANCELLED by 0"; or the second script finds
// the lock taken. What such a record says of the end is not the end of what runs.
type startRecord struct {
	id    uint32    // the job's number in Slurm; 0: the text is not there
	node  string    // of the script; empty: not known
	date  time.Time // by that node's clock, in whole seconds; zero: not known
	start time.Time // of the job, by slurmctld; zero: its version does not tell jobs
	nodes []string  // all of the job's, sorted; nil: not known
}

// readBirth reads the text of a lock: number, restarts, node, date, start, nodes.
func readBirth(text string) startRecord {
	var b startRecord
	field := strings.Split(text, " ")
	get := func(i int) string {
		if i < len(field) {
			return field[i]
		}
		return ""
	}
	if n, err := strconv.ParseUint(get(0), 10, 32); err == nil {
		b.id = uint32(n)
	}
	moment := func(text string) time.Time {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
			return time.Unix(n, 0)
		}
		return time.Time{}
	}
	b.node, b.date, b.start = get(2), moment(get(3)), moment(get(4))
	if all, err := hostlist.Expand(get(5)); err == nil && get(5) != "" && get(5) != "-" {
		b.nodes = sortedUnique(all)
	}
	return b
}

// finalStartRecord is birth for the last record of a job. reported: its end is, or it is not known yet
// whether it began.
func (e *Engine) finalStartRecord(a *attempt, j *site.Job) (b *startRecord, reported bool, err error) {
	if e.blind {
		return e.begunBlind(a, j)
	}
	b, err = e.readStartRecord(a, max(a.base, j.Restarts), j.Exit.Status)
	return b, false, err
}

// readStartRecord says how the script of a job began. If it did not, the lock is fenced now, so that
// it never does: nil. exit is the status with which it ended. Hints that were not seen yet are.
func (e *Engine) readStartRecord(a *attempt, restarts, exit int) (*startRecord, error) {
	ctx, cancel := e.controller.callContext()
	defer cancel()
	if e.blind && restarts == a.base {
		return &startRecord{id: a.id}, nil // what is not shown to have never begun counts as begun
	}
	held, err := e.fenceLock(ctx, a, restarts)
	if err != nil {
		return nil, err
	}
	if held == fenced {
		return nil, nil
	}
	b := readBirth(held)
	if b.id == 0 { // there was no room for the text: the script has not begun, or not said so
		if exit == script.ExitLockless {
			return nil, nil
		}
		b.id = a.id
	}
	e.mu.Lock()
	known := !a.hint.begun.IsZero() && !a.hint.done.IsZero()
	e.mu.Unlock()
	if known {
		return &b, nil
	}
	marks, err := e.cfg.Room.Look(ctx, []string{baseName(a.guard.Begun(restarts)), baseName(a.guard.Done(restarts))})
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range marks {
		if !halfWritten(&marks[i]) {
			a.noteHint(&marks[i])
		}
	}
	return &b, nil
}

// recordCoversStart reports whether a final record speaks of the beginning that took the lock. A second
// beginning is begun later, and is refused or barred at once.
func (e *Engine) recordCoversStart(a *attempt, j *site.Job, b *startRecord) bool {
	e.mu.Lock()
	status := a.hint.status
	e.mu.Unlock()
	s, known := parseExitStatus(status)
	barred := j.Exit.Status == script.ExitBarred || j.Exit.Status == script.ExitLockless
	second := j.State == site.Cancelled || barred && s != j.Exit.Status // may be one
	late, took := j.Started.Sub(b.date), j.Ended.Sub(j.Started)
	switch {
	case known && !second && s == j.Exit.Status && j.Exit.Signal == 0:
		return true // the script's own word
	case !b.start.IsZero() && b.start.Equal(j.Started):
		return true
	case len(b.nodes) > 0 && len(j.Nodes) > 0 && !slices.Equal(sortedUnique(j.Nodes), b.nodes):
		return false
	case b.date.IsZero() || j.Started.IsZero():
		return !second
	case second && took <= 2*time.Second:
		return late <= 0
	case late <= time.Second:
		return true
	}
	return !second && late < took // a node's clock that goes behind
}

// afterBoot is how long after a new beginning of slurmctld's a slurmd may speak of what was
// before: it tries for some times its MessageTimeout.
const afterBoot = 5 * time.Minute

// endNeverStarted ends an attempt whose job has ended in Slurm and never had the lock: nothing of the
// user's has run. Who cancelled one that waited is a person, and it stays ended. One that had
// nodes was perhaps cancelled by its slurmd, which could not begin it: that is done as root,
// and root's own scancel looks the same. Soon after slurmctld began anew even one that waits
// may be, for slurmd speaks of what slurmctld has lost.
func (e *Engine) endNeverStarted(a *attempt, j *site.Job) error {
	on := ""
	if len(j.Nodes) > 0 {
		on = " on " + j.Nodes[0]
	}
	slurms := len(j.Nodes) > 0
	if j.State == site.Cancelled && !slurms {
		ctx, cancel := e.controller.callContext()
		defer cancel()
		c, err := e.cfg.Site.Cluster(ctx)
		if err != nil {
			return err
		}
		slurms = j.Ended.Sub(c.Booted) < afterBoot
	}
	cause, message := causeOf(j)
	switch {
	case j.Exit.Status == script.ExitStranger && a.user != "":
		cause, message = engine.LaunchFailed, fmt.Sprintf("Slurm ran job %d as another user than %s%s, and nothing of it was run: see its output", a.id, a.user, on)
	case j.Exit.Status == script.ExitLockless:
		cause, message = engine.Unready, "the lock of the attempt could not be taken in "+a.guard.Dir+on+": is that directory shared, is there room, and may everybody write there?"
	case j.State == site.Cancelled && slurms && (j.CancelledBy == "" || j.CancelledBy == "0" || j.CancelledBy == "root"):
		cause, message = engine.Unready, fmt.Sprintf("Slurm, or root, cancelled job %d before its script ran%s: the log of slurmd there says why", a.id, on)
	case j.State == site.NodeFailed && len(j.Nodes) > 0:
		cause, message = engine.Unready, fmt.Sprintf("a node of Slurm's job %d failed before its script ran%s", a.id, on)
	case j.State == site.Completed, j.State == site.Failed:
		cause, message = engine.Unready, fmt.Sprintf("Slurm ended job %d as %s without running its script%s: the log of slurmd there says why", j.ID, j.State, on)
	}
	return e.endUnstarted(a, cause, message)
}

// cancelledBySlurm reports whether a job that ran was cancelled by Slurm, and by no person: slurmd has
// that done, as root, of one that slurmctld, begun anew, has it begin again. Accounting that
// names nobody, and root soon after such a beginning, are that.
func (k *controller) cancelledBySlurm(j *site.Job) (bool, error) {
	if j.State != site.Cancelled || j.CancelledBy != "" && j.CancelledBy != "0" && j.CancelledBy != "root" {
		return false, nil
	}
	ctx, cancel := k.callContext()
	defer cancel()
	c, err := k.site.Cluster(ctx)
	if err != nil {
		return false, err
	}
	after := j.Ended.Sub(c.Booted)
	return j.CancelledBy == "" && c.Accounts || !c.Booted.IsZero() && !j.Started.After(c.Booted) && after >= -time.Second && after < afterBoot, nil
}

// endSecondStart deals with the end of a second beginning. slurmctld has all processes of a number
// ended on the nodes of its record before that is final: where these are the nodes of the
// first beginning too, that is over. Else its own last word is waited for.
func (e *Engine) endSecondStart(a *attempt, j *site.Job, b *startRecord) error {
	e.mu.Lock()
	r, done, status := a.report, a.hint.done, a.hint.status
	e.mu.Unlock()
	if len(j.Nodes) == 0 || len(a.order.Job.Spec.Groups) > 1 || !done.IsZero() || !slices.Equal(b.nodes, sortedUnique(j.Nodes)) {
		if done.IsZero() {
			if gone, err := e.probeNodes(a, b); err != nil {
				return err
			} else if gone {
				return e.reportVanished(a)
			}
			e.reportUncertain(a, fmt.Sprintf("Slurm lost that job %d runs, began it again and ended that; whether the first lives on %s is not known", a.id, b.node))
			return nil
		}
		return e.byItsWord(a, done, status)
	}
	r.Ended, r.Exit = endOf(j.Ended, time.Now(), done, time.Time{}, r.Started), job.ExitCode{Signal: sigkill}
	if r.Cause == "" {
		r.Cause = engine.NodeLost
		r.Message = fmt.Sprintf("Slurm lost that job %d runs, began it again and ended both", a.id)
	}
	return e.reportEnded(a, r)
}

func sortedUnique(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// reportUncertain reports that it is not known whether an attempt lives. Each poll looks again.
func (e *Engine) reportUncertain(a *attempt, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := a.report
	r.Uncertain, r.Message = true, message
	e.publishReport(a, r)
}

// byItsWord reports the end of an attempt as its script wrote it down.
func (e *Engine) byItsWord(a *attempt, done time.Time, status string) error {
	e.mu.Lock()
	r := a.report
	e.mu.Unlock()
	code, knows := parseExitStatus(status)
	if !knows {
		code = 1
	}
	r.Ended, r.Exit = done, job.ExitCode{Status: code}
	if r.Cause == "" {
		r.Cause = engine.Exited
	}
	return e.reportEnded(a, r)
}

// reportEnded reports an attempt of which nothing lives, and that began.
func (e *Engine) reportEnded(a *attempt, r engine.Report) error {
	r.Phase, r.Gone, r.Uncertain, r.Suspended = engine.Ended, true, false, false
	if r.Started.IsZero() {
		e.mu.Lock()
		r.Started = a.hint.begun
		e.mu.Unlock()
	}
	if r.Started.IsZero() || r.Ended.Before(r.Started) {
		r.Started = r.Ended
	}
	nodes := make([]engine.NodeReport, 0, len(r.Nodes)) // the last report keeps its own
	for _, n := range r.Nodes {
		nodes = append(nodes, engine.NodeReport{Node: n.Node, Phase: engine.Ended})
	}
	if e.cfg.Placed && len(nodes) > 0 { // a record of another job's may have been taken for its own
		nodes = nodesOf(&site.Job{Nodes: a.claimedNodes()}, engine.Ended)
	}
	r.Nodes = nodes
	r.Tasks = a.batchTaskReport(&r, false, r.Exit)
	return e.recordLastReport(a, r)
}
