package slurm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// nodeProbe asks the nodes of an attempt that Slurm lost, and that had begun, whether anything of
// it lives: by a job of its own on each, of the same user, that looks for processes with the
// attempt's name in their environment, which all of its processes inherit. slurmctld ends
// what it does not know on nodes that register anew, and so such an attempt is mostly dead;
// but nobody says so. Its lock is taken, so it does not begin again meanwhile.
//
// A process that has cleared its environment is not seen.
type nodeProbe struct {
	at    time.Time // when it was sent
	seen  time.Time // when its answers were looked for
	nodes []string
}

// mostProbed is how many nodes may be asked: those that an attempt had, and all of the cluster
// for a heterogeneous one of which nobody knows which it had.
const mostProbed = 64

// probeAgain is after how many Settles a probe that said nothing, or that something lives, is
// sent again.
const probeAgain = 12

// probeAnswerFile is the file in which the probe of a node writes what it found: beside the lock. That
// nothing lives stays true, whichever probe says so.
func (a *attempt) probeAnswerFile(node string) string {
	return fmt.Sprintf("%s.%d.probe.%s", a.prefix, a.base, node)
}

// probeNodes sends probes, or reads what they said. gone: nothing of the attempt lives.
func (e *Engine) probeNodes(a *attempt, b *startRecord) (gone bool, err error) {
	e.mu.Lock()
	p, hinter := a.check.probe, a.hint.writer
	e.mu.Unlock()
	switch {
	case p == nil:
		return false, e.sendTo(a, b)
	case time.Since(p.seen) < e.cfg.Settle/4:
		return false, nil
	}
	p.seen = time.Now() // the attempt's goroutine alone has it
	var names []string
	for _, n := range p.nodes {
		names = append(names, a.probeAnswerFile(n))
	}
	ctx, cancel := e.controller.callContext()
	defer cancel()
	marks, err := e.cfg.Room.Look(ctx, names)
	if err != nil {
		return false, err
	}
	if len(marks) == len(names) && !slices.ContainsFunc(marks, func(m lockdir.Mark) bool { return m.Text != "none" || hinter != "" && m.Owner != hinter }) {
		return true, nil
	}
	if time.Since(p.at) > probeAgain*e.cfg.Settle {
		return false, e.sendTo(a, b)
	}
	return false, nil
}

// sendTo sends probes to all nodes on which something of an attempt may live, if they are not too
// many.
func (e *Engine) sendTo(a *attempt, b *startRecord) error {
	nodes := b.nodes
	if len(a.order.Job.Spec.Groups) > 1 { // the lock has those of the first component alone
		nodes = nil
		if e.cfg.Placed {
			for i := range a.order.Claims {
				nodes = append(nodes, a.order.Claims[i].Node)
			}
		} else {
			ctx, cancel := e.controller.callContext()
			defer cancel()
			all, err := e.cfg.Site.Nodes(ctx)
			if err != nil {
				return err
			}
			for i := range all {
				nodes = append(nodes, all[i].Name)
			}
		}
		nodes = sortedUnique(nodes)
	}
	if len(nodes) == 0 || len(nodes) > mostProbed {
		return nil
	}
	return e.sendProbes(a, &nodeProbe{nodes: nodes})
}

// provenGone reports whether nothing of an attempt lives whose job slurmctld calls failed for a
// node. It says so at once, of a job whose partition is gone even, and ends what lives on its
// nodes when these register: those that answer are asked. Of those that are down its word counts.
func (e *Engine) provenGone(a *attempt, j *site.Job, b *startRecord) (bool, error) {
	if e.blind || j.State != site.NodeFailed || len(b.nodes) == 0 || len(b.nodes) > mostProbed || len(a.order.Job.Spec.Groups) > 1 {
		return true, nil
	}
	ctx, cancel := e.controller.callContext()
	defer cancel()
	up := *b
	var err error
	if up.nodes, err = e.controller.answeringNodes(ctx, b.nodes); err != nil || len(up.nodes) == 0 {
		return err == nil, err
	}
	gone, err := e.probeNodes(a, &up)
	if err == nil && !gone {
		e.reportUncertain(a, fmt.Sprintf("Slurm says that a node of job %d failed; whether it lives on %s is not known", a.id, strings.Join(up.nodes, ",")))
	}
	return gone, err
}

// sendProbes sends one to each node. One that is refused, or lost, is sent again later.
func (e *Engine) sendProbes(a *attempt, p *nodeProbe) error {
	p.at = time.Now()
	e.mu.Lock()
	a.check.probe = p
	e.mu.Unlock()
	mark := "COX_ATTEMPT=" + a.guard.Dir + ":" + a.guard.Ref.String()
	for _, n := range p.nodes {
		file := a.guard.Dir + "/" + a.probeAnswerFile(n)
		s := &site.Submission{
			Script: fmt.Appendf(nil, `#!/bin/sh
# coxswain: does anything of attempt %s live here?
if grep -qszxF %s /proc/[0-9]*/environ; then echo lives; else echo none; fi >%s.new && mv %[3]s.new %[3]s
`, a.guard.Ref, shellQuote(mark), shellQuote(file)),
			Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/",
		}
		s.User = a.user
		own := []string{
			"--job-name=cox-probe", "--comment=cox-probe:" + e.log.cluster + ":" + a.ref.String(), "--nodelist=" + n, "--nodes=1", "--ntasks=1", "--mem=1M", "--time=5",
			"--output=/dev/null", "--no-requeue",
		}
		s.Options = append(append(slices.Clone(e.cfg.Options), e.cfg.sbatchSettings().OwnershipOptions(a.order.Job)...), own...)
		_, err := e.controller.submit(s)
		if err != nil && fault.KindOf(err) != fault.Unavailable { // its partition is gone, or its reservation
			s.Options = own
			_, err = e.controller.submit(s)
		}
		if err != nil && fault.KindOf(err) != fault.Unavailable {
			e.cfg.Log.Warn("slurm: a node cannot be asked whether an attempt lives there", "attempt", a.ref.String(), "node", n, "error", err)
		}
	}
	return nil
}

// shellQuote makes one word of a text, for a shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// reportVanished reports an attempt that Slurm lost and of which nothing lives on its nodes.
func (e *Engine) reportVanished(a *attempt) error {
	e.mu.Lock()
	r := a.report
	e.mu.Unlock()
	r.Ended, r.Exit = time.Now(), job.ExitCode{Signal: sigkill}
	if r.Cause == "" || r.Cause == engine.NodeLost {
		r.Cause = engine.NodeLost
		r.Message = fmt.Sprintf("Slurm lost job %d, which had begun, and nothing of it lives on its nodes", a.id)
	}
	return e.reportEnded(a, r)
}
