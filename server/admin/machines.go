package admin

import "github.com/coxswain-sched/coxswain/api"

// listMachines lists the machines, with the marks of their nodes.
func (s *service) listMachines() *api.Machines {
	views := s.cfg.Plane.MarkedMachines()
	out := &api.Machines{Machines: make([]api.Machine, len(views))}
	for i := range views {
		v, o := &views[i], &views[i].Owner
		m := api.Machine{
			Name: o.Machine, Pool: o.Pool, Epoch: o.Epoch, To: o.Next, Last: o.Last, Step: string(o.Step), Back: o.Back, Waits: o.Waits,
			Evidence: o.Evidence, Deadline: o.Deadline, By: o.By, Reason: o.Reason, At: o.At, Nodes: []api.MachineNode{},
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
	return out
}
