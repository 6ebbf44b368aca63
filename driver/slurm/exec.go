package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step/holder"
	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs"
	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/driver/slurm/srunargs"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var _ engine.Execer = (*Engine)(nil)

// Exec runs a command beside the tasks of an attempt, by the site's srun --jobid --overlap on one
// node, as the job's user in Slurm; see engine.Execer. A command "srun" is a step of the whole
// allocation instead. Ranks are refused where the job has several nodes: Slurm does not tell where
// they run.
func (e *Engine) Exec(ctx context.Context, ref engine.Ref, r engine.ExecRequest) (job.ExitCode, error) {
	if len(r.Command) == 0 || r.Command[0] == "" {
		return job.ExitCode{}, fault.New(fault.Invalid, "no command is given")
	}
	p, err := e.awaitStepPlace(ctx, ref, &r)
	if err != nil {
		return job.ExitCode{}, err
	}
	if code, asked, err := e.endAllocation(ctx, p, r.Command); asked {
		return code, err
	}
	by, ok := e.cfg.Site.(site.Stepper)
	if !ok {
		return job.ExitCode{}, fault.New(fault.Unsupported, "the way into the cluster of pool %s starts no steps", e.cfg.Pool)
	}
	flush := hideChatter(p, &r)
	s, err := e.renderStep(ctx, p, &r)
	if err != nil {
		return job.ExitCode{}, err
	}
	code, err := by.Step(ctx, s)
	flush()
	switch {
	case ctx.Err() != nil:
		return code, context.Cause(ctx)
	case err != nil:
		return code, fault.New(fault.KindOf(err), "command in attempt %s: %w", ref, err).Advise("%s", fault.Remedy(err))
	}
	return code, nil
}

// hideChatter has what srun says by itself of one command left out, until flush is called.
func hideChatter(p *stepPlace, r *engine.ExecRequest) (flush func()) {
	to := &r.Stderr
	if r.TTY {
		to = &r.Stdout
	}
	if c := (srunargs.Call{Command: r.Command}); c.IsStep() || *to == nil {
		return func() {}
	}
	x := &srunargs.Chatter{To: *to, Node: p.node}
	*to = x
	return x.Flush
}

// stepPlace is an attempt that runs, and a node of it.
type stepPlace struct {
	ref   engine.Ref
	order *order
	id    uint32
	user  string
	guard script.Guard
	base  int // as attempt.base
	node  string
	nodes int
}

// placeWait is how long a command waits until Slurm has said on which nodes an attempt runs: its own word
// that it has begun comes before that.
const placeWait = 15 * time.Second

// awaitStepPlace is findStepPlace once the nodes of an attempt that has begun are known.
func (e *Engine) awaitStepPlace(ctx context.Context, ref engine.Ref, r *engine.ExecRequest) (*stepPlace, error) {
	for end := time.Now().Add(placeWait); ; {
		p, err := e.findStepPlace(ref, r)
		if !errors.Is(err, errNoPlaceYet) || time.Now().After(end) {
			return p, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// errNoPlaceYet is in the error of an attempt that has not ended, and of which no node is known.
var errNoPlaceYet = errors.New("does not run")

// findStepPlace is where a command is to run.
func (e *Engine) findStepPlace(ref engine.Ref, r *engine.ExecRequest) (*stepPlace, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.attempts[ref]
	switch {
	case a == nil:
		return nil, kit.UnknownAttempt(engineName, ref)
	case a.ended:
		return nil, fault.New(fault.Conflict, "attempt %s has ended", ref)
	case a.report.Phase != engine.Running || a.id == 0 || len(a.report.Nodes) == 0:
		return nil, fault.New(fault.Conflict, "attempt %s %w", ref, errNoPlaceYet)
	}
	p := &stepPlace{ref: ref, order: a.order, id: a.id, user: a.user, guard: a.guard, base: a.base, node: a.report.Nodes[0].Node, nodes: len(a.report.Nodes)}
	if r.Node == "" && r.Rank != nil && p.nodes > 1 {
		return nil, fault.New(fault.Unsupported, "Slurm does not tell on which of its nodes task %d of attempt %s runs", *r.Rank, ref).
			Advise("name a node: %s", nodeNames(a.report.Nodes))
	}
	if r.Node == "" {
		return p, nil
	}
	i := slices.IndexFunc(a.report.Nodes, func(n engine.NodeReport) bool { return n.Node == r.Node })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "attempt %s has no node %s", ref, r.Node).Advise("it has %s", nodeNames(a.report.Nodes))
	}
	if j := a.poll.job; j != nil && j.Het != 0 && !slices.Contains(j.Nodes, r.Node) {
		return nil, fault.New(fault.Unsupported, "node %s is of another component of the heterogeneous job %d", r.Node, a.id).
			Advise("on a login node: srun --jobid=%d --het-group=NUMBER --overlap --pty bash", a.id)
	}
	p.node = r.Node
	return p, nil
}

// nodeNames are the names of nodes for people, the first sixteen of them.
func nodeNames(nodes []engine.NodeReport) string {
	var out []string
	for _, n := range nodes[:min(len(nodes), 16)] {
		out = append(out, n.Node)
	}
	if len(nodes) > 16 {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}

// renderStep is a command as the site's srun takes it.
func (e *Engine) renderStep(ctx context.Context, p *stepPlace, r *engine.ExecRequest) (*site.Step, error) {
	var submitted []string
	if r.Submitted != nil {
		var err error
		if submitted, err = r.Submitted(ctx); err != nil {
			return nil, err
		}
	}
	env := slices.DeleteFunc(sbatchargs.Environment(p.order.Job, submitted, &p.guard), func(v string) bool {
		return strings.HasPrefix(v, "SLURM") && !strings.HasPrefix(v, "SLURM_ARRAY_")
	})
	c := srunargs.Call{Command: r.Command, Node: p.node, Dir: p.order.Job.Spec.WorkDir, Terminal: r.TTY}
	if !c.IsStep() {
		env = append(env, sbatchargs.TaskCounts(p.order.Job.Spec, p.order.Claims, p.nodes)...)
	}
	if c.Secrets = p.order.Job.Spec.Secrets; len(c.Secrets) > 0 {
		env = append(env, "COX_SECRETS_DIR="+p.guard.SecretsDir(p.base))
	}
	c.Env = append(env, r.Env...)
	words, err := c.Words()
	if err != nil {
		return nil, err
	}
	s := &site.Step{Job: p.id, User: p.user, Words: words, Env: c.Environ()}
	if c.IsStep() { // which srun has from its environment, as in a shell of salloc
		s.Env = append(s.Env, sbatchargs.TaskCounts(p.order.Job.Spec, p.order.Claims, p.nodes)...)
	}
	if !c.Names() {
		s.Name = "cox-" + strings.ToLower(randomWord()[:8])
	}
	s.Streams = *r
	s.Streams.Command = nil
	return s, nil
}

// endAllocation ends an allocation in which nothing runs, if a command asks for that: its salloc has
// ended, with an exit code that the job gets as 0 or 1.
func (e *Engine) endAllocation(ctx context.Context, p *stepPlace, command []string) (code job.ExitCode, asked bool, err error) {
	if len(command) != 4 || command[0] != "cox" || command[1] != holder.Command || command[2] != holder.EndWord {
		return code, false, nil
	}
	if p.order.Job.Spec.Program.Kind != job.BareAllocation {
		return code, true, fault.New(fault.Invalid, "attempt %s is no allocation that a client ends", p.ref)
	}
	signal := sbatchargs.EndWell
	if command[3] != "0" {
		signal = sbatchargs.EndBadly
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	if err := e.owners.siteToChange(p.user).Signal(ctx, p.id, signal, site.ToBatch); err != nil {
		return code, true, fmt.Errorf("end the allocation: %w", err)
	}
	return code, true, nil
}
