package kube

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var _ engine.Execer = (*Engine)(nil)

// Exec runs a command beside the tasks of an attempt; see engine.Execer. It is a child of the
// supervisor in the pod, so it has the job's environment, user and devices; what goes through
// its streams goes over the API server and the kubelet (crew.Converse).
func (e *Engine) Exec(ctx context.Context, ref engine.Ref, r engine.ExecRequest) (job.ExitCode, error) {
	if len(r.Command) == 0 || r.Command[0] == "" {
		return job.ExitCode{}, fault.New(fault.Invalid, "no command is given")
	}
	a, err := e.runningAttempt(ref)
	if err != nil {
		return job.ExitCode{}, err
	}
	if a.hasNoAgent() {
		return job.ExitCode{}, agentlessError("cox runs no commands in", "use kubectl exec: kubectl get pods -l "+render.LabelAllocation+"="+strconv.FormatUint(ref.Allocation, 10)+" --namespace "+a.namespace+" lists the pods")
	}
	at, err := e.placeFor(ctx, ref, &r)
	if err != nil {
		return job.ExitCode{}, err
	}
	code, err := podagent.Converse(ctx, r, func(ctx context.Context, in io.Reader, out io.Writer) error {
		_, err := e.calls.inPod(ctx, at, in, out, "exec")
		return err
	})
	if err != nil && ctx.Err() == nil {
		kind := fault.KindOf(err)
		if _, over := e.runningAttempt(ref); kind == fault.Unavailable && over != nil {
			kind = fault.Conflict // the end of its pod
		}
		err = fault.New(kind, "command in attempt %s: %w", ref, err)
	}
	return code, err
}

// runningAttempt is an attempt in which something can be run.
func (e *Engine) runningAttempt(ref engine.Ref) (*attempt, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.attempts[ref]
	switch {
	case a == nil:
		return nil, kit.UnknownAttempt(engineName, ref)
	case a.ended:
		return nil, fault.New(fault.Conflict, "attempt %s has ended", ref)
	case a.report.Phase != engine.Running:
		return nil, fault.New(fault.Conflict, "attempt %s does not run", ref)
	}
	return a, nil
}

// seat is the pod of a member.
type seat struct{ namespace, pod string }

// placeFor is the pod that a command is for.
func (e *Engine) placeFor(ctx context.Context, ref engine.Ref, r *engine.ExecRequest) (seat, error) {
	a, err := e.runningAttempt(ref)
	if err != nil {
		return seat{}, err
	}
	if r.Node == "" && r.Rank != nil {
		i, err := e.calls.findRank(ctx, a, podagent.Find{Rank: *r.Rank, Step: r.Step})
		return e.calls.execTarget(a, i), err
	}
	if r.Node == "" {
		return e.calls.execTarget(a, 0), nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !a.ended {
		for i := range a.order.Nodes {
			if a.nodeOf(i) == r.Node {
				return e.calls.execTarget(a, i), nil
			}
		}
	}
	return seat{}, fault.New(fault.NotFound, "attempt %s has no node %s", ref, r.Node)
}

// findRank asks the crew on which member a rank runs.
func (c *clusterCalls) findRank(ctx context.Context, a *attempt, f podagent.Find) (int, error) {
	text, err := json.Marshal(podagent.Question{Find: &f})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	said := beginning{most: fewBytes}
	code, err := c.inPod(ctx, c.execTarget(a, 0), nil, &said, "ask", string(text))
	if code == fault.NotFound.ExitCode() {
		return 0, fault.New(fault.NotFound, "attempt %s has no task %d that runs", a.ref, f.Rank)
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(said.String()))
}

// fewBytes is how much is kept of short answers: what answers runs in the job's pod, and may be
// anything.
const fewBytes = 16 << 10

// beginning is the beginning of what is written to it.
type beginning struct {
	strings.Builder
	most int // bytes
}

// Write takes all and keeps the beginning.
func (b *beginning) Write(p []byte) (int, error) {
	_, err := b.Builder.Write(p[:min(len(p), max(0, b.most-b.Len()))])
	return len(p), err
}
