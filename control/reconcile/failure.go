package reconcile

import (
	"slices"

	"github.com/coxswain-sched/coxswain/engine"
)

// FailureOf says whose fault the end of an attempt was. A report that control has judged before
// says it itself; for others it is derived.
func FailureOf(r *engine.Report) engine.Failure {
	if r.Failure != engine.NoFailure {
		return r.Failure
	}
	switch r.Cause {
	case engine.NodeLost:
		return engine.NodeFailure
	case engine.LaunchFailed, engine.Unready:
		if slices.ContainsFunc(r.Nodes, func(n engine.NodeReport) bool { return n.Lost }) {
			return engine.NodeFailure // a check of it failed before the job began
		}
		return engine.EngineFailure
	case engine.TimedOut, engine.OutOfMemory, engine.Refused:
		return engine.JobFailure
	case engine.Exited:
		switch {
		case r.Exit.OK():
			return engine.NoFailure
		case r.DeviceError != "":
			return engine.NodeFailure
		}
		return engine.JobFailure
	}
	return engine.NoFailure // somebody asked for it, or a limit had no room
}

// FailedOn lists the nodes on which an attempt failed, in the order of the report: those that the
// engine says were lost, else those of the tasks that failed by themselves. It is nil where the
// report does not tell them from the others, unless the attempt had one node.
func FailedOn(r *engine.Report) []string {
	f := FailureOf(r)
	if f == engine.NoFailure {
		return nil
	}
	var out []string
	for i := range r.Nodes {
		if r.Nodes[i].Lost {
			out = append(out, r.Nodes[i].Node)
		}
	}
	if len(out) == 0 && (f == engine.JobFailure || r.DeviceError != "") {
		for i := range r.Tasks {
			t := &r.Tasks[i]
			bad := t.Cause == engine.OutOfMemory || t.Cause == engine.Exited && !t.Exit.OK() && t.Exit.Signal != sigterm && t.Exit.Signal != sigkill
			if t.Step >= 0 && bad && t.Node != "" && !slices.Contains(out, t.Node) {
				out = append(out, t.Node)
			}
		}
	}
	if len(out) == 0 && len(r.Nodes) == 1 {
		out = append(out, r.Nodes[0].Node)
	}
	return out
}

// The signals by which the tasks of a gang end because another one failed.
const (
	sigkill = 9
	sigterm = 15
)
