package local

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/exec"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var _ engine.Execer = (*Engine)(nil)

// Exec runs a command beside the tasks of an attempt; see engine.Execer. Its process
// is a child of the node's supervisor, in the attempt's control group.
func (e *Engine) Exec(ctx context.Context, ref engine.Ref, r engine.ExecRequest) (job.ExitCode, error) {
	if len(r.Command) == 0 || r.Command[0] == "" {
		return job.ExitCode{}, fault.New(fault.Invalid, "no command is given")
	}
	x := &wire.Exec{Args: r.Command, Env: r.Env, Step: r.Step, Rank: r.Rank}
	var who *barrier.Identity
	ran := false
	err := e.askGang(ctx, ref, func(g *gang) error {
		ran = true
		who = g.launch.User
		return g.placeExec(x, r)
	})
	if err == nil && !ran {
		err = fault.New(fault.Conflict, "attempt %s has ended", ref)
	}
	if err != nil {
		return job.ExitCode{}, err
	}
	code, err := exec.Run(ctx, x, r, who)
	if err != nil && ctx.Err() == nil {
		err = fault.New(fault.KindOf(err), "command in attempt %s: %w", ref, err)
	}
	return code, err
}

// placeExec finds the node of a command, on the gang's goroutine.
func (g *gang) placeExec(x *wire.Exec, r engine.ExecRequest) error {
	if g.decided != attempt.EntryGo || g.phase != engine.Running {
		return fault.New(fault.Conflict, "attempt %s does not run", g.launch.Ref)
	}
	node := r.Node
	if node == "" {
		node = g.parts[0].node.Name
		if r.Rank != nil {
			node = g.nodeOf(r)
		}
	}
	i := slices.IndexFunc(g.parts, func(p *nodeAttempt) bool { return p.node.Name == node })
	switch {
	case node == "":
		return fault.New(fault.NotFound, "attempt %s has no task %d that runs", g.launch.Ref, *r.Rank)
	case i < 0:
		return fault.New(fault.NotFound, "attempt %s has no node %s", g.launch.Ref, node)
	}
	x.Socket, x.Job, x.Attempt = g.parts[i].at.StepSocket(), g.launch.Job.ID, max(g.launch.Ref.Attempt, 1)
	return nil
}

// nodeOf is where a rank runs, in the last step in which it does; "" if nowhere.
func (g *gang) nodeOf(r engine.ExecRequest) string {
	node, last := "", engine.BatchStep
	for _, p := range g.parts {
		for _, t := range p.state.Tasks {
			if t.Running && t.Rank == *r.Rank && t.Step > last && (r.Step == nil || t.Step == *r.Step) {
				node, last = p.node.Name, t.Step
			}
		}
	}
	return node
}
