package local

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

var _ engine.Validator = (*Engine)(nil)

// Admit is engine.Validator's: what is asked of pods is refused, since there are none.
func (e *Engine) Admit(_ context.Context, d *engine.JobDraft) error {
	if err := e.checkUpload(d.Spec); err != nil {
		return err
	}
	if err := e.admitContainer(d.Spec); err != nil {
		return err
	}
	if err := e.admitPods(d); err != nil {
		return err
	}
	if d.Spec.Pod == nil {
		return nil
	}
	return engine.About(fault.New(fault.Unsupported, "kubernetes (or --pods) asks something of pods, and jobs of this pool run in none").
		Advise("leave it out, or name a pool of Kubernetes"), "kubernetes")
}

var _ engine.Checker = (*Engine)(nil)

// Check is engine.Checker's: what users of this machine should know of its services.
func (e *Engine) Check(ctx context.Context) ([]engine.Finding, error) {
	text := "the ports of services are open to every user of this machine, at 127.0.0.1 and past the gateway with its tokens and limits"
	mend := "have a service ask for a token of its own where others must not use it"
	if e.fence.apply != nil {
		err := e.fence.applyNow()
		if err == nil {
			return []engine.Finding{{What: "services", State: engine.Found, Text: "the ports of services are closed to other users of this machine and to their jobs: they go through the gateway"}}, ctx.Err()
		}
		text = fmt.Sprintf("the ports of services are open to every user of this machine and to the jobs of other nodes, past the gateway with its tokens and limits: %v", err)
	} else if os.Geteuid() == 0 {
		mend += ", or give the nodes networks of their own: more than one node, and room.network: own"
	}
	return []engine.Finding{{What: "services", State: engine.Warning, Text: text, Mend: mend}}, ctx.Err()
}

var _ engine.NodeChecker = (*Engine)(nil)

// checkLaunch asks whether the nodes of a gang may get its work, beside the start of its supervisors; its barrier
// waits for the answer.
func (g *gang) checkLaunch() {
	if g.e.cfg.Fit == nil || g.decided != "" {
		return
	}
	g.unchecked = len(g.parts)
	for _, p := range g.parts {
		g.e.wg.Go(func() {
			ctx, cancel := context.WithTimeout(g.e.ctx, g.e.cfg.FitWithin)
			defer cancel()
			why := g.e.cfg.Fit(ctx, p.node.Name, devicesOn(g.launch.Claims, p.node.Name))
			p.onGang(func() { g.unchecked--; p.unfit = why })
		})
	}
}

// unfitAttempt is a part whose node may not get the work; nil: none is known.
func (g *gang) unfitAttempt() *nodeAttempt {
	for _, p := range g.parts {
		if p.unfit != "" {
			return p
		}
	}
	return nil
}

// devicesOn are the indexes of the devices that claims take of a node.
func devicesOn(claims []fleet.Claim, node string) (out []int) {
	for i := range claims {
		for _, d := range claims[i].Devices {
			if claims[i].Node == node && !slices.Contains(out, d.Index) {
				out = append(out, d.Index)
			}
		}
	}
	return out
}

// CheckNode is engine.NodeChecker's.
func (e *Engine) CheckNode(ctx context.Context, node string) ([]fleet.CheckResult, error) {
	at := slices.IndexFunc(e.cfg.Nodes, func(n fleet.Node) bool { return n.Name == node })
	switch {
	case at < 0:
		return nil, fault.New(fault.NotFound, "there is no node %s here", node)
	case e.cfg.Checks == nil:
		return nil, ctx.Err()
	}
	return e.cfg.Checks.CheckNode(ctx, e.cfg.Nodes[at])
}
