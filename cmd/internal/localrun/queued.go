package localrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Queued is jobs that run through the queue of a server, shown as a run of their own would be.
type Queued struct {
	Client *client.Client
	Jobs   []*api.Submit
	Grace  *time.Duration // between the signal to end and the kill; nil: the server's
}

// RunQueued submits jobs to a server, follows them to their end and returns the exit code of cox
// run. Of opt it uses what says how jobs are shown, and Signals. The jobs go on if this process is
// killed. An error means that they could not be submitted or followed.
func RunQueued(ctx context.Context, opt Options, q Queued) (code int, err error) {
	s := &queueSession{opt: &opt, screen: newScreen(&opt), queue: &q, changed: make(chan struct{}, 1)}
	defer func() { err = errors.Join(err, s.removeOutput()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f := &follower{opt: &opt, screen: s.screen, jobs: map[job.ID]*followed{}, patience: queuePatience}
	f.open = func(j *followed, path string) *tail { return s.openOutput(ctx, j, path) }
	for _, j := range q.Jobs {
		if err := s.submitJob(ctx, f, j); err != nil {
			return 0, errors.Join(err, s.abandonJobs(f))
		}
	}
	f.many = len(f.order) > 1
	f.unread = func() { s.cancelJobs(ctx, f.order, -1) }
	ids := slices.Clone(f.order)
	release := handleSignals(ctx, &opt, func(ctx context.Context, grace time.Duration) { s.cancelJobs(ctx, ids, grace) })
	defer release()
	if err := f.followChanges(ctx, s.feed(ctx, ids)); err != nil {
		return 0, err
	}
	s.screen.clearStatus()
	return f.summarizeJobs(s.lastingFiles), nil
}

// queueSession is one such run.
type queueSession struct {
	opt     *Options
	screen  *screen
	queue   *Queued
	output  string        // folder of the output of commands, removed at the end; "" until one is needed
	changed chan struct{} // something was heard of a job; holds one
	from    uint64        // the last event before the first submission
}

// submitJob submits one job and says what was understood.
func (s *queueSession) submitJob(ctx context.Context, f *follower, j *api.Submit) error {
	c := s.queue.Client
	if len(f.order) == 0 {
		info, err := c.Info(ctx)
		if err != nil {
			return err
		}
		s.from = info.Change
	}
	if err := s.hideOutput(ctx, j); err != nil {
		return err
	}
	done, err := c.Submit(ctx, j)
	if err != nil {
		return adviseHere(err)
	}
	if done.ID == 0 {
		return fault.New(fault.Invalid, "--test-only: cox run runs its job").Advise("cox submit --test-only asks when it would start")
	}
	shown, err := c.Job(ctx, done.ID.String())
	if err != nil {
		return err
	}
	s.screen.printNote("%s", jobHeadline(shown.Spec))
	for _, w := range done.Warnings {
		s.screen.printNote("  ! %s", warningText(&w))
	}
	s.screen.printNote("queue    job %s of the server at %s; --here runs it beside that server", done.ID, c.Address())
	for i := range max(done.Tasks, 1) {
		f.add(done.ID + job.ID(i))
	}
	f.noteChange(viewOf(shown))
	return nil
}

// adviseHere adds to a server's refusal the way past it.
func adviseHere(err error) error {
	const here = "cox run --here runs it past the queue, on virtual nodes that fit the job"
	var answer *api.Error
	if errors.As(err, &answer) && len(answer.Errors) > 0 {
		out := *answer
		if out.Remedy != "" {
			out.Remedy += "; "
		}
		out.Remedy += here
		return &out
	}
	remedy := fault.Remedy(err)
	if remedy != "" {
		remedy += "; "
	}
	return fault.New(fault.KindOf(err), "%w", err).Advise("%s", remedy+here)
}

func warningText(w *api.Warning) string {
	text := w.Message
	if w.Option != "" {
		text = w.Option + " " + text
	}
	if w.Line > 0 {
		text = fmt.Sprintf("%s:%d: %s", w.File, w.Line, text)
	}
	return text
}

// hideOutput has a command's output in a file that is removed at the end, since it is shown. Where
// a pool may be on other machines, that would be no place of theirs.
func (s *queueSession) hideOutput(ctx context.Context, j *api.Submit) error {
	if j.Form != api.FormCommand {
		return nil
	}
	pools, err := s.queue.Client.Pools(ctx)
	if err != nil || slices.ContainsFunc(pools.Pools, func(p api.Pool) bool { return p.Engine != "local" }) {
		return err
	}
	if s.output == "" {
		if s.output, err = os.MkdirTemp("", "cox-run-"); err != nil {
			return fault.New(fault.Exhausted, "make a folder for the output: %w", err).Advise("set TMPDIR to a folder with room")
		}
	}
	j.Args = append([]string{"--output=" + filepath.Join(s.output, "output-%j")}, j.Args...) // one that is asked for outranks it
	return nil
}

func (s *queueSession) removeOutput() error {
	if s.output == "" {
		return nil
	}
	return os.RemoveAll(s.output)
}

// lastingFiles leaves out the files that are removed at the end.
func (s *queueSession) lastingFiles(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return s.output != "" && filepath.Dir(f) == s.output })
}

// abandonJobs cancels what was submitted when the run itself cannot go on.
func (s *queueSession) abandonJobs(f *follower) error {
	if len(f.order) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	_, err := s.queue.Client.Change(ctx, s.cancelRequest(f.order, -1))
	return err
}

func (s *queueSession) cancelRequest(ids []job.ID, grace time.Duration) *api.Change {
	ch := &api.Change{Verb: api.VerbCancel}
	for _, id := range ids {
		ch.Select.IDs = append(ch.Select.IDs, id.String())
	}
	if grace < 0 && s.queue.Grace != nil {
		grace = *s.queue.Grace
	}
	if grace >= 0 {
		seconds := grace.Seconds()
		ch.Grace = &seconds
	}
	return ch
}

// cancelJobs asks for the end of jobs. One that has ended needs nothing.
func (s *queueSession) cancelJobs(ctx context.Context, ids []job.ID, grace time.Duration) {
	if _, err := s.queue.Client.Change(ctx, s.cancelRequest(ids, grace)); err != nil && ctx.Err() == nil {
		fmt.Fprintf(s.opt.Err, "cox: the jobs cannot be cancelled: %v\n", err)
	}
}

// How often a server is asked about jobs: about few that run, whose tasks come and go without an
// event; about all, in case an event was missed; and again after a server that did not answer.
const (
	askRunning = 200 * time.Millisecond
	askAll     = 10 * time.Second
	askAgain   = time.Second
)

// feed follows the jobs by the server's events and by asking.
func (s *queueSession) feed(ctx context.Context, ids []job.ID) changeFeed {
	var mu sync.Mutex
	dirty := map[job.ID]bool{}
	mark := func(ids ...job.ID) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			dirty[id] = true
		}
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	mark(ids...)
	var names []string
	for _, id := range ids {
		names = append(names, id.String())
	}
	go func() {
		_ = s.queue.Client.Watch(ctx, client.WatchOptions{After: s.from, Jobs: names}, func(ev api.Event) error { // until ctx ends; asking goes on
			if ev.Kind == api.KindGap {
				mark(ids...)
			} else if slices.Contains(ids, ev.Job) {
				mark(ev.Job)
			}
			return nil
		})
	}()
	live := map[job.ID]bool{}
	for _, id := range ids {
		live[id] = true
	}
	running := map[job.ID]bool{}
	var asked time.Time
	return changeFeed{next: func(ctx context.Context) ([]state.View, error) {
		pause := askAll
		if len(ids) <= manyJobs && len(running) > 0 {
			pause = askRunning
		}
		select {
		case <-s.changed:
		case <-time.After(pause):
			for id := range running {
				mark(id)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if time.Since(asked) > askAll {
			asked = time.Now()
			for id := range live {
				mark(id)
			}
		}
		mu.Lock()
		var ask []job.ID
		for id := range dirty {
			ask = append(ask, id)
		}
		clear(dirty)
		mu.Unlock()
		slices.Sort(ask)
		var views []state.View
		for _, id := range ask {
			if !live[id] {
				continue
			}
			j, err := s.askJob(ctx, id)
			if err != nil {
				return nil, err
			}
			v := viewOf(j)
			delete(running, id)
			switch {
			case v.Job.State.Final():
				delete(live, id)
			case v.Job.State == job.Running:
				running[id] = true
			}
			views = append(views, v)
		}
		return views, nil
	}}
}

// askJob asks about a job, over a restart of the server too.
func (s *queueSession) askJob(ctx context.Context, id job.ID) (*api.Job, error) {
	for {
		j, err := s.queue.Client.Job(ctx, id.String())
		if err == nil || ctx.Err() != nil || fault.KindOf(err) != fault.Unavailable {
			return j, err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// viewOf is a job as the API shows it, in the form of one's own control plane.
func viewOf(j *api.Job) state.View {
	v := state.View{
		Job: job.Job{
			ID: j.ID, Array: j.Array, Attempt: j.Attempt, Exit: j.Exit, Spec: j.Spec,
			Submitted: j.Submitted, Started: j.Started, Ended: j.Ended,
		},
		Pool: j.Pool,
	}
	if v.Job.State.UnmarshalText([]byte(j.State)) != nil {
		v.Job.State = job.Pending // one of a later version: not an end that is known
	}
	if j.Why != nil {
		v.Why = *j.Why
	}
	r := &v.Report
	r.Files, r.Message = j.Files, j.Message
	if v.Job.State != job.Pending {
		r.Started = j.Started
	}
	for _, c := range j.Claims {
		claim := fleet.Claim{
			Node: c.Node, Group: c.Group, Tasks: c.Tasks, Whole: c.Whole,
			Take: resource.Vector{CPU: resource.Amount(c.CPUs * float64(resource.OneCPU)), Memory: resource.Amount(c.Memory)},
		}
		for _, d := range c.Devices {
			claim.Devices = append(claim.Devices, fleet.DeviceClaim{Index: d, Share: resource.WholeDevice})
		}
		v.Claims = append(v.Claims, claim)
		if !slices.ContainsFunc(r.Nodes, func(n engine.NodeReport) bool { return n.Node == c.Node }) {
			r.Nodes = append(r.Nodes, engine.NodeReport{Node: c.Node, Phase: engine.Running})
		}
	}
	for _, t := range j.Tasks {
		task := engine.TaskReport{
			Step: t.Step, Rank: t.Rank, Node: t.Node, Running: t.Running, Started: t.Started, Ended: t.Ended, Exit: t.Exit, Cause: engine.Cause(t.Cause),
		}
		if t.Log && t.Step >= 0 {
			task.Log = rankLog(t.Step, t.Rank)
		}
		r.Tasks = append(r.Tasks, task)
	}
	return v
}

// rankLog names the log of a rank, which the server reads for us. It is no path.
func rankLog(step, rank int) string { return "rank:" + strconv.Itoa(step) + "." + strconv.Itoa(rank) }
