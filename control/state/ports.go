package state

import (
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// FixedPorts are the numbers of ports that jobs in memory have chosen themselves. Each is a counted
// resource of every node, of which a node has one; core and ledger are told of those that somebody asks
// for. Nodes that share the network of a machine share it: the first of them, by name, has it.
type FixedPorts struct {
	jobs  map[int]int // by port, how many jobs ask for it
	stale bool        // nodes are known with other ports
}

func newFixedPorts() FixedPorts { return FixedPorts{jobs: map[int]int{}} }

func (p *FixedPorts) count(e *JobRecord, n int) {
	for _, number := range e.Shared.Spec.Serve.FixedPorts() {
		was := p.jobs[number]
		p.jobs[number] += n
		switch {
		case was == 0:
			p.stale = true
		case p.jobs[number] == 0:
			delete(p.jobs, number)
			p.stale = true
		}
	}
}

// TakeStale reports, once, whether all nodes have to be told again because of their ports.
func (p *FixedPorts) TakeStale() bool {
	was := p.stale
	p.stale = false
	return was
}

// MarkStale has all nodes told again: there are others now.
func (p *FixedPorts) MarkStale() { p.stale = len(p.jobs) > 0 }

// NodeWithPorts is a node as core and ledger know it: with its ports.
func (s *State) NodeWithPorts(n fleet.Node) fleet.Node {
	if len(s.Ports.jobs) == 0 || s.AddressedPools[n.Pool] || !s.hasPorts(&n) {
		return n
	}
	amount := resource.Amount(1)
	if aggregate.Is(n.Name) {
		amount = n.Capacity.Get(aggregate.Whole)
	}
	for number := range s.Ports.jobs {
		n.Capacity = n.Capacity.With(portResource(number), amount)
	}
	return n
}

// hasPorts reports whether a node has ports of its own, or is the first of those that share them.
func (s *State) hasPorts(n *fleet.Node) bool {
	if !sharesNetwork(n) {
		return true
	}
	for k, o := range s.Nodes.All() {
		if k.Pool == n.Pool && k.Name < n.Name && sharesNetwork(&o) {
			return false
		}
	}
	return true
}

// sharesNetwork reports whether a node has no network of its own, only an address among those of its
// machine.
func sharesNetwork(n *fleet.Node) bool { return n.Virtual && strings.HasPrefix(n.Address, "127.") }

func portResource(number int) string { return reason.PortResource + strconv.Itoa(number) }

// withPorts is what a job asks for with the ports that it has chosen. They are taken on each node of its
// first group: it is not known before on which of them its first task is.
func withPorts(s *job.Spec, numbers []int) *job.Spec {
	out := *s
	out.Groups = slices.Clone(s.Groups)
	for _, number := range numbers {
		g := &out.Groups[0].PerNode
		g.Vector = g.With(portResource(number), 1)
	}
	return &out
}
