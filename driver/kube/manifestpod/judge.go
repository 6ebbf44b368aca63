package manifestpod

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Task is which of its role's pods one is.
type Task struct{ Group, Index int }

// Tasks are those of an attempt's claims, one for each pod.
func Tasks(claims []fleet.Claim) []Task {
	out, next := make([]Task, len(claims)), map[int]int{}
	for i := range claims {
		g := claims[i].Group
		out[i] = Task{g, next[g]}
		next[g]++
	}
	return out
}

// Spread are the claims of a job's pods whose nodes the cluster's scheduler chooses, and nodes with made-up names.
// What a pod asks for its template says, and so where it is to be: a constraint that nobody wrote but in the template
// is no other.
func Spread(s *job.Spec) (nodes []render.Node, claims []fleet.Claim, err error) {
	for g := range s.Groups {
		said := s.Groups[g]
		if s.Source.Given["constraint"] == "" {
			said.Constraint = job.Constraint{}
		}
		if err := render.RefusePlacement(&said); err != nil {
			return nil, nil, err
		}
		for range s.Groups[g].Tasks.Want {
			c := fleet.Claim{Node: fmt.Sprintf("node %d", len(nodes)), Group: g, Tasks: 1, Take: s.Groups[g].PerTask.Vector}
			nodes, claims = append(nodes, render.Node{Node: fleet.Node{Name: c.Node, Capacity: c.Take}}), append(claims, c)
		}
	}
	return nodes, claims, nil
}

// ContainersOf are the containers of a task's pod whose end is the pod's.
func (w *Work) ContainersOf(t Task) podstatus.Containers {
	return podstatus.Containers{Main: w.mainContainers(t.Group), Restarts: w.restarts(t.Group) != "Never"}
}

// Verdict is what the ends of some pods mean for the others.
type Verdict struct {
	Decided   bool // the others are to be ended
	Succeeded bool
	Reason    string // for people
}

// Judge says whether the pods that have ended decide the job: those that count have succeeded, or one has failed
// and the others do not go on without it.
func (w *Work) Judge(tasks []Task, members []podstatus.Member) Verdict {
	at, done := w.success(tasks, members)
	i, failed := firstFailure(members)
	switch {
	case done && (!failed || w.Set.KeepGoing || !members[i].Result.At.Before(at)):
		return Verdict{true, true, w.successText()}
	case w.Set.KeepGoing:
		return Verdict{}
	case failed:
		return Verdict{true, false, members[i].Why}
	}
	for i := range members { // of some the cluster took it all
		if m := &members[i]; m.Over && (m.Result == nil || !m.Result.Succeeded) {
			return Verdict{true, false, m.Why}
		}
	}
	return Verdict{}
}

// successText says why the other pods of a job are ended.
func (w *Work) successText() string {
	if w.Set.Complete == nil || len(w.Set.Complete.Roles) == 0 {
		return "its pods have succeeded"
	}
	return fmt.Sprintf("the pods that decide (%s) have succeeded", join(w.Set.Complete.Roles))
}

func join(all []string) string {
	out := ""
	for i, s := range all {
		if i > 0 {
			out += ", "
		}
		out += s
	}
	return out
}

// counts reports whether a pod counts for the job's success.
func (w *Work) counts(t Task) bool {
	c := w.Set.Complete
	if c == nil {
		return true
	}
	return (len(c.Roles) == 0 || slices.Contains(c.Roles, w.Set.Roles[t.Group].Name)) && (c.Index == nil || *c.Index == t.Index)
}

// success is when the pods that count had succeeded. false: they have not.
func (w *Work) success(tasks []Task, members []podstatus.Member) (at time.Time, ok bool) {
	anyOne := w.Set.Complete != nil && w.Set.Complete.Any
	counted := 0
	for i := range members {
		if !w.counts(tasks[i]) {
			continue
		}
		counted++
		r := members[i].Result
		succeeded := members[i].Over && r != nil && r.Succeeded
		switch {
		case anyOne && succeeded && (!ok || r.At.Before(at)):
			at, ok = r.At, true
		case !anyOne && !succeeded:
			return at, false
		case !anyOne && r.At.After(at):
			at = r.At
		}
	}
	return at, ok || !anyOne && counted > 0
}

// firstFailure is the pod that failed first by itself: nobody deleted it, and the cluster did not end it.
func firstFailure(members []podstatus.Member) (first int, ok bool) {
	for i := range members {
		m := &members[i]
		if !m.Over || m.Result == nil || m.Result.Succeeded || m.Cause != engine.Exited && m.Cause != engine.OutOfMemory && m.Cause != engine.TimedOut {
			continue
		}
		if !ok || m.Result.At.Before(members[first].Result.At) {
			first, ok = i, true
		}
	}
	return first, ok
}

// End is how an attempt ended of which all pods are over. stop: nil if nobody asked for its end. ran says that it
// is known to have begun.
func (w *Work) End(tasks []Task, members []podstatus.Member, stop *podstatus.Stop, ran bool) engine.Report {
	r := w.outcome(tasks, members, stop)
	podstatus.Conclude(&r, members, ran && r.Cause != engine.Refused) // some of its pods may have begun, and one never will
	return r
}

func (w *Work) outcome(tasks []Task, members []podstatus.Member, stop *podstatus.Stop) engine.Report {
	asked := stop != nil && stop.Cause != engine.Exited // by somebody, or a limit; not as pods have ended
	at, done := w.success(tasks, members)
	i, failed := firstFailure(members)
	switch {
	case done && (!failed || w.Set.KeepGoing && w.Set.Complete != nil || !members[i].Result.At.Before(at)):
		return engine.Report{Cause: engine.Exited, Ended: at}
	case failed && (!asked || !w.Set.KeepGoing):
		m := &members[i]
		return engine.Report{Cause: m.Cause, Exit: m.Result.Exit, Message: m.Why, Ended: m.Result.At}
	}
	r := engine.Report{Exit: job.ExitCode{Status: 1}}
	if asked {
		r.Cause, r.Message = stop.Cause, stop.Reason
		if stop.Cause == engine.Stopped {
			r.Exit = job.ExitCode{Signal: cmp.Or(stop.Signal, sigterm)}
		}
		return r
	}
	for i := range members { // the one for which the others were ended
		if m := &members[i]; stop != nil && m.Cause != "" && m.Why == stop.Reason {
			r.Cause, r.Message = m.Cause, m.Why
			return withKill(r)
		}
	}
	for i := range members {
		m := &members[i]
		if m.Cause != "" && (r.Cause == "" || r.Cause == engine.NodeLost && m.Cause != engine.NodeLost) && !(stop != nil && m.Cause == engine.Cancelled) {
			r.Cause, r.Message = m.Cause, m.Why
		}
	}
	r.Cause = cmp.Or(r.Cause, engine.NodeLost)
	return withKill(r)
}

// withKill is a report of an end whose exit code nobody knows.
func withKill(r engine.Report) engine.Report {
	if r.Cause == engine.OutOfMemory {
		r.Exit = job.ExitCode{Signal: sigkill}
	}
	return r
}

const (
	sigterm = 15
	sigkill = 9
)
