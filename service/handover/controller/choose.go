package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/service/handover/decide"
)

// Request asks for hand-overs.
type Request struct {
	// Nodes are names of nodes, POOL/NODE where several pools have one of the name, or of machines. Else it is
	// Count machines, all machines of Rack, or Count of Rack.
	Nodes []string
	Count int
	Rack  string // an element of the topology's path of a node; empty: any
	From  string // the pool that has the machines; empty: any other than To
	To    string

	Requeue  bool          // what runs there and may be requeued is, at once
	Deadline time.Duration // from now on; a hand-over that has not admitted To by then is walked back. 0: none
	Reason   string
	// Force takes machines without a proof that their pool reports no node on any more: who asks says that nothing of
	// that pool runs there. It needs names.
	Force  bool
	DryRun bool // choose and check; nothing moves
}

// Moved is what becomes of a machine.
type Moved struct {
	Machine, Node string // as From calls it
	From, To      string
	Epoch         uint64    // of the hand-over; 0: none began
	Why           string    // it was chosen, or what it costs to free it
	FreeBy        time.Time // what runs there has ended by then; zero: it is idle, or nobody knows
	Err           error     // nil: it is handed over

	stepped bool // Err is a conflict with a step that was done at the same time
}

// check refuses a request that cannot be.
func (r *Request) check(pools []string) error {
	known := func(pool string) error {
		if pool != "" && !slices.Contains(pools, pool) {
			return fault.New(fault.NotFound, "there is no pool %.70s", pool).Advise("pools here: %s", strings.Join(pools, ", "))
		}
		return nil
	}
	switch {
	case r.To == "":
		return fault.New(fault.Invalid, "to: which pool is to get the machines").Advise("--to POOL; pools here: %s", strings.Join(pools, ", "))
	case r.From == r.To:
		return fault.New(fault.Invalid, "from and to are the same pool, %s", r.To)
	case r.Count < 0:
		return fault.New(fault.Invalid, "count: %d machines cannot be moved", r.Count)
	case r.Deadline < 0:
		return fault.New(fault.Invalid, "deadline: %s is in the past", r.Deadline)
	case len(r.Nodes) > 0 && (r.Count > 0 || r.Rack != ""):
		return fault.New(fault.Invalid, "names of nodes, and a count or a rack").Advise("name the nodes, or let them be chosen: --count N, --rack R")
	case r.Force && len(r.Nodes) == 0:
		return fault.New(fault.Invalid, "force: machines that are taken without a proof have to be named")
	case len(r.Nodes) == 0 && r.Count == 0 && r.Rack == "":
		return fault.New(fault.Invalid, "no node is named").Advise("name nodes, or: --count N, --rack R")
	}
	if err := known(r.To); err != nil {
		return err
	}
	return known(r.From)
}

// chooseMachines finds the machines that a request is about, in the order in which they are freed.
func chooseMachines(r *Request, list []Machine, now time.Time) ([]Moved, error) {
	if len(r.Nodes) > 0 {
		return namedMachines(r, list, now)
	}
	var out []Moved
	var other []string // why others cannot be moved
	for i := range list {
		m := &list[i]
		if r.From != "" && m.Owner.Pool != r.From || m.Owner.Pool == r.To || !m.isInRack(r.Rack) {
			continue
		}
		v := m.freeing(r, now)
		if err := m.checkMove(r); err != nil {
			other = append(other, err.Error())
			continue
		}
		out = append(out, v)
	}
	slices.SortStableFunc(out, func(a, b Moved) int { return compareFreeing(list, a, b, r.Requeue) })
	if r.Count > 0 && len(out) < r.Count || len(out) == 0 {
		return nil, tooFew(r, len(out), other)
	}
	if r.Count > 0 {
		out = out[:r.Count]
	}
	return out, nil
}

// tooFew refuses a request for more machines than there are.
func tooFew(r *Request, found int, other []string) error {
	where := "other pools"
	if r.From != "" {
		where = "pool " + r.From
	}
	if r.Rack != "" {
		where += " in rack " + r.Rack
	}
	err := fault.New(fault.Invalid, "%s: %d machines can be moved to pool %s", where, found, r.To)
	if r.Count > 0 {
		err = fault.New(fault.Invalid, "%s: %d machines can be moved to pool %s, and %d are wanted", where, found, r.To, r.Count)
	}
	if len(other) > 0 {
		return fault.New(fault.Invalid, "%w; of others: %s", err, other[0])
	}
	return err.Advise("cox machines shows who owns which machine")
}

// namedMachines finds the machines that names mean. A name that means nothing, or several, refuses all.
func namedMachines(r *Request, list []Machine, now time.Time) ([]Moved, error) {
	names, err := hostlist.Expand(strings.Join(r.Nodes, ","))
	if err != nil {
		return nil, fault.New(fault.Invalid, "nodes: %w", err).Advise("names or host lists: v[1-4]")
	}
	var out []Moved
	for _, name := range names {
		m, err := machineNamed(name, list)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(v Moved) bool { return v.Machine == m.Owner.Machine }) {
			continue
		}
		v := m.freeing(r, now)
		v.Err = m.checkMove(r)
		if r.From != "" && m.Owner.Pool != r.From {
			v.Err = fault.New(fault.Conflict, "machine %s is pool %s's, not pool %s's", m.Owner.Machine, m.Owner.Pool, r.From)
		}
		out = append(out, v)
	}
	return out, nil
}

// machineNamed finds a machine by its name, or by that of a node on it.
func machineNamed(name string, list []Machine) (*Machine, error) {
	pool, node, qualified := strings.Cut(name, "/")
	var found []*Machine
	for i := range list {
		m := &list[i]
		on := func(n MachineNode) bool { return n.Name == name || qualified && n.Pool == pool && n.Name == node }
		if m.Owner.Machine == name || slices.ContainsFunc(m.Nodes, on) {
			found = append(found, m)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fault.New(fault.NotFound, "there is no node %.70s on a machine that several pools have", name).Advise("cox machines shows the machines and their nodes")
	case len(found) > 1:
		return nil, fault.New(fault.Invalid, "node %s is on machines %s and %s", name, found[0].Owner.Machine, found[1].Owner.Machine).Advise("name the pool too, POOL/NODE, or the machine")
	}
	return found[0], nil
}

func (m *Machine) isInRack(rack string) bool {
	return rack == "" || slices.ContainsFunc(m.Nodes, func(n MachineNode) bool { return slices.Contains(n.Path, rack) })
}

// nodesIn lists the nodes that a pool has on the machine.
func (m *Machine) nodesIn(pool string) (out []MachineNode) {
	for _, n := range m.Nodes {
		if n.Pool == pool {
			out = append(out, n)
		}
	}
	return out
}

// freeing tells what it costs to free a machine.
func (m *Machine) freeing(r *Request, now time.Time) Moved {
	v := Moved{Machine: m.Owner.Machine, From: m.Owner.Pool, To: r.To, Why: "idle"}
	if on := m.nodesIn(m.Owner.Pool); len(on) > 0 {
		v.Node = on[0].Name
		if on[0].State != fleet.Up {
			v.Why = fmt.Sprintf("idle, and %s", on[0].State)
		}
	}
	if len(m.Work) == 0 {
		return v
	}
	last := &m.Work[0]
	forever := false
	for i := range m.Work {
		w := &m.Work[i]
		forever = forever || w.Until.IsZero()
		if w.Until.After(last.Until) {
			last = w
		}
	}
	what := fmt.Sprintf("%d jobs run", len(m.Work))
	if len(m.Work) == 1 {
		what = "job " + last.Name + " runs"
	}
	switch stay := m.staying(r.Requeue); {
	case r.Requeue && stay == 0:
		v.Why = what + ", which is requeued"
	case forever:
		v.Why = what + ", without a time limit"
	default:
		v.FreeBy, v.Why = last.Until, fmt.Sprintf("%s, until %s at the latest", what, last.Until.UTC().Format("2006-01-02 15:04 UTC"))
	}
	_ = now
	return v
}

// staying is how much work is waited for.
func (m *Machine) staying(requeue bool) (n int) {
	for i := range m.Work {
		if !requeue || !m.Work[i].Requeues {
			n++
		}
	}
	return n
}

// compareFreeing orders machines: those that are up and idle, then idle ones, then by what is requeued there, then
// by the end of what runs, those that nobody knows the end of last.
func compareFreeing(list []Machine, a, b Moved, requeue bool) int {
	rank := func(v *Moved) int {
		i := slices.IndexFunc(list, func(m Machine) bool { return m.Owner.Machine == v.Machine })
		switch m := &list[i]; {
		case len(m.Work) == 0 && v.Why == "idle":
			return 0
		case len(m.Work) == 0:
			return 1
		case m.staying(requeue) == 0:
			return 2
		case !v.FreeBy.IsZero():
			return 3
		}
		return 4
	}
	return cmp.Or(cmp.Compare(rank(&a), rank(&b)), a.FreeBy.Compare(b.FreeBy), hostlist.Compare(a.Machine, b.Machine))
}

// checkMove says why a machine cannot be handed over to a pool.
func (m *Machine) checkMove(r *Request) error {
	o := &m.Owner
	switch {
	case o.Moving() && decide.CanWalkBack(o) && o.Back:
		return fault.New(fault.Conflict, "machine %s: its hand-over to pool %s is walked back", o.Machine, o.Next).Advise("wait until that is done: cox machines")
	case o.Moving() && decide.CanWalkBack(o):
		return fault.New(fault.Conflict, "machine %s is on its way from pool %s to pool %s already, step %s", o.Machine, o.Pool, o.Next, o.Step).
			Advise("cox node move --abort %s walks it back", o.Machine)
	case o.Pool == r.To && o.Moving():
		return fault.New(fault.Conflict, "machine %s has come to pool %s already, and is being checked", o.Machine, o.Pool).Advise("cox machines shows what it waits for")
	case o.Pool == r.To:
		return fault.New(fault.Conflict, "machine %s is pool %s's already", o.Machine, o.Pool)
	case r.Force && len(m.nodesIn(o.Pool)) > 0:
		return fault.New(fault.Conflict, "pool %s, which owns machine %s, reports node %s there, so it can prove that nothing runs", o.Pool, o.Machine, m.nodesIn(o.Pool)[0].Name).
			Advise("move it without --force")
	case len(m.nodesIn(o.Pool)) == 0 && slices.Contains(m.Unheard, o.Pool):
		return fault.New(fault.Unavailable, "pool %s, which owns machine %s, has not said yet which nodes it has", o.Pool, o.Machine).
			Advise("cox pool list shows whether its engine answers; if that cluster is gone: cox pool remove %s --force", o.Pool)
	case len(m.nodesIn(o.Pool)) == 0 && !r.Force:
		return fault.New(fault.Unavailable, "pool %s, which owns machine %s, does not report it", o.Pool, o.Machine).
			Advise("start its agent there; cox pool list shows whether its engine answers. If you have seen that nothing of pool %s runs there: cox node move %s --to %s --force", o.Pool, o.Machine, r.To)
	case len(m.nodesIn(r.To)) == 0:
		return fault.New(fault.Invalid, "pool %s does not report machine %s", r.To, o.Machine).Advise("start its agent there, a slurmd or a kubelet; cox nodes --pool %s lists its nodes", r.To)
	}
	for _, n := range slices.Concat(m.nodesIn(o.Pool), m.nodesIn(r.To)) {
		if n.Machines > 1 {
			return fault.New(fault.Unsupported, "node %s of pool %s is on %d machines, which cannot be handed over one by one", n.Name, n.Pool, n.Machines)
		}
	}
	return nil
}
