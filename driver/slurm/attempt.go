package slurm

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs"
	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// attempt is what the driver knows of one. Its goroutine alone calls the cluster for it;
// all fields from id on are the Engine's, under its lock.
type attempt struct {
	ref    engine.Ref
	order  *order          // nil: it has ended
	sbatch *sbatchargs.Job // of order, until it is handed over; nil: to be made of it
	job    job.ID          // of order; 0: it had ended before the engine was opened
	digest string
	guard  script.Guard
	tag    string // in the comment of its job
	prefix string // of its files in the room
	user   string // whose the job is; empty: whoever the way in is
	wake   chan struct{}
	halt   chan struct{} // closed once it is to end

	id     uint32       // 0: slurmctld has not said
	base   int          // how often Slurm had put the job back when the attempt got it
	held   *requeuedJob // what it got is held yet; nil: it is not
	report engine.Report
	stop   *stopping
	ended  bool // the goroutine is to end

	serving bool          // a goroutine looks at what it serves
	resumed bool          // it ran before this engine was opened
	gone    chan struct{} // closed once it has ended

	handover   handover
	poll       pollResult
	hint       hints
	check      nodeCheck
	suspension suspension
	ending     ending

	usageSince time.Time // since when accounting is asked what it used; its goroutine's alone

	expected time.Time // when Slurm was last said to expect to start it; its goroutine's alone
}

// handover is how an attempt's job was handed to slurmctld.
type handover struct {
	unanswered bool      // something was sent without an answer
	repeated   bool      // and then something more: what came late may begin late
	tried      time.Time // when it was handed over last
	numbered   time.Time // when its number was told
}

// pollResult is what slurmctld, or accounting, says of an attempt's job.
type pollResult struct {
	job          *site.Job // the last answer; nil: nothing yet
	at           time.Time // when that came
	urgent       time.Time // when something was heard of it, or done to it, that a poll is to show
	unknownSince time.Time // since when slurmctld does not know it; zero: it does
	running      bool      // its job has begun, whatever Slurm calls its user
}

// hints is what the files in the lock directory say of an attempt, sooner than a poll.
type hints struct {
	begun  time.Time
	done   time.Time
	status string    // beside done
	noted  time.Time // when done was seen
	writer string    // who wrote that it began, by number
	freed  time.Time // when its job was ended in Slurm because of done
}

// nodeCheck is what an attempt's nodes are asked about it.
type nodeCheck struct {
	probe      *nodeProbe // whether it lives, since Slurm lost it; nil: nothing
	locks      *lockQuery // about its lock, if they have it; nil: nothing yet
	aliveUnder time.Time  // under which slurmctld, by its beginning, they last said that it lives
}

// suspension is how an attempt was suspended.
type suspension struct {
	changed time.Time     // when it was last told to be held, or to go on
	since   time.Time     // since when it is suspended
	total   time.Duration // how long it was
}

// ending is how far the stop of an attempt has come.
type ending struct {
	told   *stopping // what its job was told of stop
	asked  time.Time // when
	thawed int       // how often it was suspended and let go on since, to be sure
	killed time.Time // when it was last killed
}

// newAttempt is an attempt of which nothing is known but the order. The caller holds the
// lock, or is alone.
func (e *Engine) newAttempt(ref engine.Ref, o *order) *attempt {
	a := e.draftOf(ref, o)
	e.owners.noteSubmitter(a.user)
	a.report = engine.Report{Ref: ref, Job: o.Job.ID, Phase: engine.Accepted}
	return a
}

// draftOf is an attempt that nobody has taken.
func (e *Engine) draftOf(ref engine.Ref, o *order) *attempt {
	a := &attempt{ref: ref, order: o, job: o.Job.ID, digest: o.Digest, wake: make(chan struct{}, 1), halt: make(chan struct{}), gone: make(chan struct{})}
	a.guard = script.Guard{Ref: ref, Dir: e.cfg.Room.Dir(), Token: o.Token}
	if e.blind { // of this driver's own: refs are not
		a.guard.Dir, a.guard.OnNode = path.Join(a.guard.Dir, "cox-"+e.log.cluster), true
	}
	if serve := o.Job.Spec.Serve; serve != nil {
		ports := cmp.Or(o.Ports, e.cfg.ServicePorts)
		a.guard.Ports = &script.Ports{Serve: serve, First: ports[0], Last: ports[1]}
	}
	a.guard.Secrets = o.Job.Spec.Secrets
	a.tag = fmt.Sprintf("cox:%s:%d:%s", e.log.cluster, o.Job.ID, ref)
	a.prefix = ref.String() + "-" + o.Token
	a.user = e.owners.submitUser(o.Job.Spec.Owner)
	return a
}

// restoreAttempt is an attempt as the journal has it.
func (e *Engine) restoreAttempt(ref engine.Ref, l *life) *attempt {
	if l.end != nil {
		return &attempt{ref: ref, digest: l.digest, report: *l.end, ended: true}
	}
	a := e.newAttempt(ref, l.launch)
	a.id, a.stop, a.handover.unanswered, a.handover.tried, a.handover.numbered = l.id, l.stop, l.id == 0, l.launch.Time, l.launch.Time.Add(time.Minute)
	if l.adopted != nil {
		a.useRequeuedLock(l.adopted)
	}
	if l.started != nil {
		a.report, a.hint.begun, a.resumed = *l.started, l.started.Started, true
	}
	if a.stop != nil {
		close(a.halt)
		a.report.Phase, a.report.Cause, a.report.Message = engine.Ending, a.stop.Cause, a.stop.Reason
	}
	return a
}

// wakeUp has the attempt's goroutine look again.
func (a *attempt) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// publishReport publishes a report if it says something new. It may have been begun before a stop that
// came meanwhile: what that says stays true. The caller holds the lock.
func (e *Engine) publishReport(a *attempt, r engine.Report) {
	r.Version = a.report.Version
	if a.stop != nil && r.Cause == "" {
		r.Cause, r.Message = a.stop.Cause, cmp.Or(r.Message, a.stop.Reason)
		if a.id != 0 {
			r.Phase = max(r.Phase, engine.Ending)
		}
	}
	if a.id != 0 {
		r.Native = strconv.FormatUint(uint64(a.id), 10)
	}
	if reflect.DeepEqual(r, a.report) {
		return
	}
	a.report = r
	e.cache.Publish(r)
	e.serveIfRunning(a)
}

// nodesOf reports a phase for each node of a job.
func nodesOf(j *site.Job, p engine.Phase) []engine.NodeReport {
	var out []engine.NodeReport
	for _, n := range append(slices.Clone(j.Nodes), j.More...) {
		out = append(out, engine.NodeReport{Node: n, Phase: p})
	}
	return out
}

// runningReport is the report that an attempt runs, for one whose end was seen first.
func (a *attempt) runningReport(end engine.Report) engine.Report {
	r := a.report
	r.Phase, r.Started, r.Files, r.Uncertain = engine.Running, end.Started, end.Files, false
	r.Nodes = nil
	for _, n := range end.Nodes {
		r.Nodes = append(r.Nodes, engine.NodeReport{Node: n.Node, Phase: engine.Running})
	}
	r.Tasks = a.batchTaskReport(&r, true, job.ExitCode{})
	return r
}

// batchTaskReport is the batch script's part of a report.
func (a *attempt) batchTaskReport(r *engine.Report, running bool, exit job.ExitCode) []engine.TaskReport {
	if r.Started.IsZero() {
		return nil
	}
	t := engine.TaskReport{Step: engine.BatchStep, Running: running, Started: r.Started, Exit: exit}
	if len(r.Nodes) > 0 {
		t.Node = r.Nodes[0].Node
	}
	if !running {
		t.Ended, t.Cause = r.Ended, r.Cause
	}
	if len(r.Files) > 0 {
		t.Log = r.Files[0]
	}
	return []engine.TaskReport{t}
}

// baseName is the name of a lock or a hint without its directory.
func baseName(name string) string { return path.Base(name) }
