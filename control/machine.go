package control

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/sched/fold"
)

// machines is whose each machine is: of the nodes that pools other than one have.
type machines map[string]*fleet.Node

// machinesBut lists the machines of all pools but one. It is empty where no node says that it
// is on a machine of another name: then names alone tell machines apart.
func machinesBut(pool string, known map[string]fleet.Node, nodes []fleet.Node) machines {
	said := false
	for i := range nodes {
		said = said || len(nodes[i].Hosts) > 0
	}
	for _, n := range known {
		said = said || n.Pool != pool && len(n.Hosts) > 0
	}
	if !said {
		return nil
	}
	m := machines{}
	for _, n := range known {
		if n.Pool == pool {
			continue
		}
		for _, host := range n.Machines() {
			if was := m[host]; was == nil || n.Name < was.Name {
				m[host] = &n
			}
		}
	}
	return m
}

// twin is the first machine of a node that another pool has, with the node that it is there.
func (m machines) twin(n *fleet.Node) (string, *fleet.Node) {
	if len(m) > 0 {
		for _, host := range n.Machines() {
			if o := m[host]; o != nil {
				return host, o
			}
		}
	}
	return "", nil
}

// whoseMachine says why a node is not used.
func whoseMachine(host string, o *fleet.Node) string {
	if fold.Is(o.Name) {
		return fmt.Sprintf("it is on machine %s, which pool %s has", host, o.Pool)
	}
	return fmt.Sprintf("it is on machine %s, which pool %s has as %s", host, o.Pool, o.Name)
}

// twice finds nodes of a pool on machines that other pools have: they are left to these. A
// pool of which nothing would be left is not to be added.
func (c *Control) twice(pool string, nodes []fleet.Node) []engine.Finding {
	c.state.mu.RLock()
	defer c.state.mu.RUnlock()
	m := machinesBut(pool, c.nodes, nodes)
	var names []string
	why := ""
	for i := range nodes {
		if host, o := m.twin(&nodes[i]); o != nil && o.Name != nodes[i].Name {
			if names = append(names, nodes[i].Name); why == "" {
				why = whoseMachine(host, o)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	f := engine.Finding{
		What: "machines", State: engine.Warning, Text: fmt.Sprintf("%s: %s; a machine is in one pool only", hostlist.Compress(names), why),
		Mend: "give these machines to one of the two pools, or remove the other: cox pool remove",
	}
	if len(names) == len(nodes) {
		f.State = engine.Missing
	}
	return []engine.Finding{f}
}
