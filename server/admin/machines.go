package admin

import (
	"context"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/account"
)

// rulesWithoutEffect finds what contradicts the pools of the rules of hand-over that are in force: pools may have
// changed since they were set.
func (s *service) rulesWithoutEffect(ctx context.Context) ([]account.Problem, error) {
	p, err := s.cfg.Plane.Policy(ctx, 0)
	if err != nil || p.Rules == nil {
		return nil, err
	}
	return s.handoverProblems(ctx, p.Rules)
}

// listMachines lists the machines, with the marks of their nodes. Who may not see the jobs of others is not
// told which of them a hand-over waits for.
func (s *service) listMachines(c *call) (*api.Machines, error) {
	views := s.cfg.Plane.MarkedMachines()
	out := &api.Machines{Machines: make([]api.Machine, len(views))}
	for i := range views {
		v, o := &views[i], &views[i].Owner
		if !c.SeesAll() {
			hidden := o.WithoutWork()
			o = &hidden
		}
		m := api.Machine{
			Name: o.Machine, Pool: o.Pool, Epoch: o.Epoch, To: o.Next, Last: o.Last, Step: string(o.Step), Back: o.Back, Waits: o.Waits,
			Evidence: o.Evidence, Deadline: o.Deadline, By: o.By, Reason: o.Reason, At: o.At, Closed: o.Fenced, Nodes: []api.MachineNode{},
		}
		for j := range v.Nodes {
			n := &v.Nodes[j]
			shown := api.MachineNode{Pool: n.Node.Pool, Engine: n.Engine, Node: n.Node.Name, State: string(n.Node.State), Why: n.Node.Why, Fence: n.Node.Fence}
			if n.Drained != nil {
				shown.Drained = n.Drained.Reason
			}
			if m.Nodes = append(m.Nodes, shown); n.CanStart() {
				m.Open = append(m.Open, n.Node.Pool)
			}
		}
		out.Machines[i] = m
	}
	problems, err := s.rulesWithoutEffect(c.Ctx())
	for _, p := range problems {
		out.Warnings = append(out.Warnings, api.MachineWarning{Text: "the rules of hand-over in force (cox policy show), " + p.Path + ": " + p.Message, Do: p.Remedy})
	}
	return out, err
}
