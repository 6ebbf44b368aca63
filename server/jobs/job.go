package jobs

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store"
)

// JobPath is the job that a path names.
type JobPath struct {
	Job string `path:"job" doc:"7, or 7_3 for a task of an array" example:"7_3"`
}

func (s *Service) registerJob() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{job}", Verb: auth.SeeJob, ID: "getJob", Tag: "jobs", Owned: true,
		Summary: "Show one job", About: "Also one that ended long ago, as long as the history keeps it. The number of an array names its first task; once that is no longer kept, another one.",
	}, func(c *call, in *JobPath) (*api.Job, error) {
		v, err := c.findAny(in.Job, auth.SeeJob)
		if err != nil {
			return nil, err
		}
		return c.shownJob(&v), nil
	})
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{job}/why", Verb: auth.SeeJob, ID: "why", Tag: "jobs", Owned: true,
		Summary: "Everything that keeps a job waiting", About: "The number of an array names a task of it, as with getJob.",
	}, func(c *call, in *JobPath) (*api.Why, error) { return s.whyPending(c, in.Job) })
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{job}/script", Verb: auth.SeeScript, ID: "getScript", Tag: "jobs", Owned: true,
		Media: []string{"text/plain"}, Summary: "The batch script as it was submitted",
	}, func(c *call, in *JobPath) error {
		return s.serveBlob(c, in.Job, auth.SeeScript, "text/plain; charset=utf-8", func(j *job.Job) (string, error) {
			if j.Spec.Program.ScriptHash == "" {
				return "", fault.New(fault.NotFound, "job %s has no script: it runs a command", j.Name()).Advise("cox show %s", j.Name())
			}
			return j.Spec.Program.ScriptHash, nil
		})
	})
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{job}/environment", Verb: auth.SeeEnvironment, ID: "getEnvironment", Tag: "jobs", Owned: true,
		Media: []string{"application/octet-stream"}, Summary: "The environment that was submitted", About: "NAME=VALUE, each with a NUL behind it.",
	}, func(c *call, in *JobPath) error {
		return s.serveBlob(c, in.Job, auth.SeeEnvironment, "application/octet-stream", func(j *job.Job) (string, error) { return j.Spec.Env.Hash, nil })
	})
	type waitInput struct {
		JobPath
		Timeout int `query:"timeout" minimum:"0" maximum:"3600" doc:"seconds; 0: do not wait"`
	}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{job}/wait", Verb: auth.SeeJob, ID: "wait", Tag: "jobs", Owned: true, Lasts: true,
		Summary: "Wait until a job has ended",
		About:   "204 at the time-out: ask again. Of a whole array the task with the highest exit code is the answer, when all have ended.",
	}, func(c *call, in *waitInput) (*api.Job, error) {
		return s.waitForEnd(c, in.Job, time.Duration(in.Timeout)*time.Second)
	})
}

func (s *Service) whyPending(c *call, name string) (*api.Why, error) {
	v, err := c.findAny(name, auth.SeeJob)
	if err != nil {
		return nil, err
	}
	w, err := s.cfg.Plane.Why(c.Ctx(), v.Job.ID)
	if fault.KindOf(err) == fault.NotFound { // it ended and left memory
		w, err = query.Why{}, nil
	}
	if err != nil {
		return nil, err
	}
	out := &api.Why{Job: v.Job.ID, Name: v.Job.Name(), State: v.Job.State.String(), Since: w.Since, Reasons: append([]reason.Reason{}, w.Reasons...), StartsBy: w.StartsBy}
	c.addExpectations(out, &w)
	if v.Job.State == job.Pending {
		if out.Elsewhere, err = s.startsElsewhere(c.Ctx(), v.Job.Spec); err != nil {
			return nil, err
		}
	}
	if x := w.Here; x.Pool != "" {
		out.Here = &api.PoolStart{Pool: x.Pool, Start: x.Start, By: x.By, Why: x.Why, Lacks: x.Lacks}
	}
	for _, r := range w.Reasons {
		out.Lines = append(out.Lines, r.String()+s.explainDelegated(&r)+s.explainFences(&v, &r))
	}
	return out, nil
}

// startsElsewhere says when the other pools to which a waiting job may move would start it.
func (s *Service) startsElsewhere(ctx context.Context, spec *job.Spec) (out []api.PoolStart, err error) {
	if spec.Chosen == nil || len(spec.Chosen.Among) == 0 {
		return nil, nil
	}
	var script []byte
	if hash := spec.Program.ScriptHash; hash != "" {
		if script, err = s.cfg.Plane.Blob(ctx, hash); err != nil {
			return nil, err
		}
	}
	places, err := s.intake.Places(ctx, spec, script, nil)
	for i := range places {
		x := &places[i].Start
		out = append(out, api.PoolStart{Pool: x.Pool, Start: x.Start, By: x.By, Why: x.Why, Lacks: x.Lacks})
	}
	return out, err
}

// explainDelegated says of a reason that is a word of another scheduler's what it means there, and
// what would help.
func (s *Service) explainDelegated(r *reason.Reason) string {
	if _, there := r.Code.There(); !there {
		return ""
	}
	x, ok := s.cfg.Plane.AddedEngine(r.Holder).(engine.Explainer)
	if !ok {
		return ""
	}
	what, help := x.Explain(r.Want)
	if what == "" {
		return ""
	}
	return ": " + what + ". What would help: " + help
}

// fencesShown bounds the fences that are named beside a reason.
const fencesShown = 4

// explainFences names what failed checks keep from a job that waits for nodes or devices.
func (s *Service) explainFences(v *state.View, r *reason.Reason) string {
	switch r.Code {
	case reason.NodeDown, reason.Resources, reason.NodeCount, reason.TooLarge:
	default:
		return ""
	}
	var texts []string
	more := 0
	named := strings.Split(r.Want, ",")
	for _, h := range s.cfg.Plane.Fenced(v.Job.Spec.Pool) {
		if r.Code == reason.NodeDown && !slices.Contains(named, h.Node) && !slices.Contains(named, "…") {
			continue
		}
		for _, f := range h.Fences {
			if f.Device != nil && !strings.HasPrefix(r.Resource, "gpu") && r.Resource != "nodes" && r.Resource != "tasks" {
				continue
			}
			if len(texts) == fencesShown {
				more++
				continue
			}
			texts = append(texts, strings.TrimSpace(h.Node+" "+fleet.Subject(f.Device))+": "+f.String())
		}
	}
	if len(texts) == 0 {
		return ""
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return "; out of use: " + strings.Join(texts, "; ")
}

func (s *Service) serveBlob(c *call, name string, verb auth.Verb, media string, which func(*job.Job) (string, error)) error {
	v, err := c.findAny(name, verb)
	if err != nil {
		return err
	}
	hash, err := which(&v.Job)
	if err != nil {
		return err
	}
	var b []byte
	if hash != "" {
		if b, err = s.cfg.Plane.Blob(c.Ctx(), hash); err != nil {
			return err
		}
	}
	c.W.Header().Set("X-Content-Type-Options", "nosniff")
	c.WriteBody(http.StatusOK, media, b)
	return nil
}

// waitForEnd answers when the job, or every task of the array, has ended.
func (s *Service) waitForEnd(c *call, name string, timeout time.Duration) (*api.Job, error) {
	ctx, cancel := c.streamContext()
	defer cancel()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	s.Metrics.Waiters.Add(1)
	defer s.Metrics.Waiters.Add(-1)
	ids, err := parseIDs([]string{name})
	if err != nil {
		return nil, err
	}
	mine := c.watchedNumbers(ids)
	after := s.hub.lastSeq()
	for late := job.ID(0); ; {
		if !c.isAlive(late) {
			v, err := c.endedJob(name)
			if err != nil || v != nil {
				return v, err
			}
			late = c.lateTask(ids[0])
		}
		for again := true; again; {
			items, last, wake, ok := s.hub.next(after)
			after = max(last, after)
			if !ok {
				after = s.hub.lastSeq()
				break
			}
			for i := range items {
				again = again && !(items[i].final && items[i].concernsAny(mine))
			}
			if !again {
				break
			}
			select {
			case <-wake:
			case <-timer.C:
				return nil, nil
			case <-ctx.Done():
				return nil, fault.New(fault.Unavailable, "the wait was broken off: %w", context.Cause(ctx)).Advise("ask again")
			}
		}
	}
}

// lateTask is a task of an array that has not ended, one of the last: as long as it lives the others
// need no look, of which there may be a hundred thousand. 0: there is none, or it is no array.
func (c *call) lateTask(id slurmfmt.JobID) job.ID {
	if id.Tasks != "" {
		return 0
	}
	for _, task := range slices.Backward(c.s.cfg.Plane.Tasks(job.ID(id.Job))) {
		if c.isAlive(task) {
			return task
		}
	}
	return 0
}

// isAlive reports whether a job is there that the caller may see and that has not ended.
func (c *call) isAlive(id job.ID) bool {
	if id == 0 || c.Ctx().Err() != nil {
		return false
	}
	v, err := c.s.cfg.Plane.Job(c.Ctx(), id)
	return err == nil && !v.Job.State.Final() && c.MaySee(&v)
}

// endedJob returns the job if it has ended; of an array the task with the highest exit
// code, when all have.
func (c *call) endedJob(name string) (*api.Job, error) {
	id, err := slurmfmt.ParseJobID(name)
	if err != nil {
		return nil, badJob(name, err)
	}
	set := false // of tasks, of which some are in memory
	if id.Tasks != "" {
		numbers, _ := c.selectedNumbers([]slurmfmt.JobID{id})
		set = len(numbers) > 1
	}
	whole, tasks := false, 0 // it is the number of an array, of so many tasks
	if !set {
		v, err := c.findAny(name, auth.SeeJob) // of its first task the history may be over
		if err != nil {
			return nil, err
		}
		whole = id.Tasks == "" && v.Job.Array != nil && uint64(v.Job.Array.Job) == id.Job
		switch {
		case whole:
			tasks = int(v.Job.Array.Count)
		case !v.Job.State.Final():
			return nil, nil
		default:
			return c.shownJob(&v), nil
		}
	}
	var worst job.ID
	exit, seen, all := -1, true, true
	var inMemory []job.ID // ascending
	look := func(v *state.View) bool {
		seen, all = c.MaySee(v), v.Job.State.Final()
		if n := v.Job.Exit.Shell(); n > exit || n == exit && v.Job.ID < worst {
			worst, exit = v.Job.ID, n
		}
		return seen && all
	}
	c.eachSelected(&selection{ids: []slurmfmt.JobID{id}, states: allStates}, 0, false, func(v *state.View) bool {
		inMemory = append(inMemory, v.Job.ID)
		return look(v)
	})
	if whole && seen && all && len(inMemory) < tasks { // those that left memory; the history may have dropped some
		_, err := c.s.cfg.Plane.History(c.Ctx(), store.Query{Array: id.Job}, func(v *state.View) bool {
			_, there := slices.BinarySearch(inMemory, v.Job.ID)
			return there || look(v)
		})
		if err != nil {
			return nil, err
		}
	}
	switch {
	case worst == 0 || !seen:
		return nil, unknownJob(name)
	case !all:
		return nil, nil
	}
	v, err := c.findJob(worst.String(), auth.SeeJob)
	if err != nil {
		return nil, err
	}
	return c.shownJob(&v), nil
}

// holdersShown bounds the running jobs that are named beside a waiting one.
const holdersShown = 8

// addExpectations adds to the reasons of a wait when it may end and what would end it.
func (c *call) addExpectations(out *api.Why, w *query.Why) {
	if e := &w.Expected; !e.Start.IsZero() {
		out.Expected = &api.Expected{Start: e.Start, From: e.From, To: e.To, Late: e.Late.Seconds(), Known: e.Known}
	}
	for _, h := range w.Holders[:min(len(w.Holders), holdersShown)] {
		shown := api.Holder{Nodes: h.Nodes, Until: timeOf(int64(h.Until))}
		if v, err := c.s.cfg.Plane.Job(c.Ctx(), h.Job); err == nil && c.MaySee(&v) {
			shown.Job, shown.User = v.Job.Name(), v.Job.Spec.Owner.User
		}
		out.Holders = append(out.Holders, shown)
	}
	for _, s := range w.Changes {
		out.Changes = append(out.Changes, api.Smaller{Option: s.Option, Value: s.Value, Of: s.Of})
	}
}
