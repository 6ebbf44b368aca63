package demand

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
)

// Site is what a control plane knows. Nothing of it is written to.
type Site struct {
	State  *sched.Snapshot
	Now    sched.Instant
	Took   whatif.Took
	Why    map[job.ID]reason.Code // the first reason why a job waits
	Owners []fleet.MachineOwner   // a machine without one belongs to the first pool that has it up
	Held   func(service string) int
	Stop   func() bool // nil: the look ahead is made to its bounds
}

// Bounds of the look ahead.
const (
	aheadSteps = 10_000
	aheadFar   = 24 * time.Hour
	mostWants  = 1000
)

// Observe makes the input of a decision. It looks ahead to estimate when waiting work starts if no machine
// moves. Machines are those that one node of each pool is on alone; pools whose own scheduler chooses nodes
// have none.
func Observe(s *Site, rules *account.Handover) *Input {
	o := &observer{Site: s, rules: rules, in: &Input{Now: time.Unix(0, int64(s.Now)).UTC(), Rules: *rules}, machines: map[string]*Machine{}, at: map[fleet.NodeKey]string{}}
	o.findMachines()
	o.addRuns()
	o.addWaiting()
	return o.in
}

type observer struct {
	*Site
	rules    *account.Handover
	in       *Input
	cpus     bool
	machines map[string]*Machine
	at       map[fleet.NodeKey]string // machine of a node
}

func (o *observer) findMachines() {
	owners := map[string]*fleet.MachineOwner{}
	for i := range o.Owners {
		owners[o.Owners[i].Machine] = &o.Owners[i]
	}
	o.cpus = !slices.ContainsFunc(o.State.Nodes, func(n fleet.Node) bool { return len(n.Devices) > 0 && o.rules.Pool(n.Pool) != nil })
	o.in.Unit = "GPU"
	if o.cpus {
		o.in.Unit = "CPU"
	}
	var names []string
	up := map[string]bool{}
	for i := range o.State.Nodes {
		n := &o.State.Nodes[i]
		on := n.Machines()
		if o.rules.Pool(n.Pool) == nil || len(on) != 1 || strings.HasPrefix(n.Name, "@") {
			continue
		}
		m := o.machines[on[0]]
		if m == nil {
			m = &Machine{Name: on[0], Pool: n.Pool}
			o.machines[m.Name] = m
			names = append(names, m.Name)
		}
		o.at[n.Key()] = m.Name
		if !slices.Contains(m.Could, n.Pool) {
			m.Could = append(m.Could, n.Pool)
		}
		if owner := owners[m.Name]; owner != nil {
			m.Pool = owner.Pool
		} else if n.State == fleet.Up && !up[m.Name] {
			m.Pool = n.Pool
		}
		up[m.Name] = up[m.Name] || n.State == fleet.Up && n.Pool == m.Pool
	}
	for i := range o.State.Nodes {
		n := &o.State.Nodes[i]
		if m := o.machines[o.at[n.Key()]]; m != nil && n.Pool == m.Pool {
			m.Units += o.unitsOf(n)
			m.Away = m.Away || n.State != fleet.Up
		}
	}
	slices.Sort(names)
	for _, name := range names {
		m := o.machines[name]
		slices.Sort(m.Could)
		if owner := owners[name]; owner != nil {
			applyOwner(m, owner)
		}
		if o.rules.Pool(m.Pool) != nil || o.rules.Pool(m.To) != nil {
			o.in.Machines = append(o.in.Machines, *m)
		}
	}
	o.machines = map[string]*Machine{}
	for i := range o.in.Machines {
		o.machines[o.in.Machines[i].Name] = &o.in.Machines[i]
	}
}

// applyOwner notes what the record of a machine says.
func applyOwner(m *Machine, o *fleet.MachineOwner) {
	switch {
	case o.Moving() && o.Back:
		m.Tried, m.Away = o.At, true // it stays, once that is done
	case o.Moving():
		m.To = o.Next
	case o.Step == fleet.StepRelease && o.Last != "" && o.Last != o.Pool:
		m.Came = o.At
	case o.Step == fleet.StepRelease:
		m.Tried = o.At
	}
}

func (o *observer) unitsOf(n *fleet.Node) int {
	if o.cpus {
		return int(n.Capacity.CPU / resource.OneCPU)
	}
	return len(n.Devices)
}

func (o *observer) addRuns() {
	for i := range o.State.Running {
		x := &o.State.Running[i]
		thousandths, all := map[string]int{}, 0
		for k := range x.Claims {
			c := &x.Claims[k]
			n := 0
			if o.cpus {
				n = int(c.Take.CPU)
			}
			for _, d := range c.Devices {
				if !o.cpus {
					n += int(d.Share)
				}
			}
			all += n
			thousandths[o.at[fleet.NodeKey{Pool: cmp.Or(c.Pool, poolOf(x.Spec)), Name: c.Node}]] += n
		}
		r := o.runOf(x, (all+999)/1000)
		for name, n := range thousandths {
			if m := o.machines[name]; m != nil {
				r.Units = (n + 999) / 1000
				m.Runs = append(m.Runs, r) // by number of the job, as the state lists them
			}
		}
	}
}

// runOf is a running job, which holds so many units in all.
func (o *observer) runOf(x *sched.Restored, units int) Run {
	if x.Spec == nil {
		return Run{Job: x.Job}
	}
	r := Run{Job: x.Job, Requeue: x.Spec.Requeue}
	if part := x.Spec.Part; part != nil && strings.HasPrefix(part.Controller, service.ControllerKind+"/") {
		r.Replica, r.Requeue = true, false
	}
	ran := max(time.Duration(o.Now-x.Began), 0)
	if x.Began == 0 {
		ran = 0
	}
	if kept := max(x.Began, x.Saved); kept > 0 {
		r.Lost = int64(units) * wholeSeconds(max(time.Duration(o.Now-kept), 0))
	}
	switch {
	case x.Stopping:
		r.Ends = o.in.Now
	case x.Spec.Endless() && x.Until == 0:
	case x.Spec.Endless():
		r.Ends = time.Unix(0, int64(x.Until)).UTC()
	default:
		ends := o.Now - sched.Instant(ran) + sched.Instant(o.Took(x.Job, x.Spec, ran))
		if x.Until != 0 {
			ends = min(ends, x.Until)
		}
		r.Ends = time.Unix(0, int64(ends)).UTC()
	}
	return r
}

// poolOf is the pool in which a job runs or waits.
func poolOf(spec *job.Spec) string {
	if spec == nil {
		return ""
	}
	return spec.Pool
}

// lacksRoom reports whether a job waits for room, as far as anybody knows.
func lacksRoom(why reason.Code) bool {
	switch why {
	case reason.None, reason.Resources, reason.Priority, reason.Preempting, reason.Endless, reason.Reserved, reason.NodeCount, reason.NodeDown:
		return true
	}
	return false
}

// addWaiting adds the waiting work, in the order in which it is expected to start.
func (o *observer) addWaiting() {
	ahead := whatif.Run(o.State, o.Now, &whatif.Change{}, o.Took, whatif.Bounds{Steps: aheadSteps, Horizon: aheadFar, Stop: o.Stop})
	var list []*whatif.Job
	for i := range ahead.Jobs {
		if x := &ahead.Jobs[i]; !x.Fixed && o.rules.Pool(x.Spec.Pool) != nil && lacksRoom(o.Why[x.ID]) {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b *whatif.Job) int {
		if (a.Start == 0) != (b.Start == 0) {
			return cmp.Compare(b.Start, a.Start) // those of which nobody knows come last
		}
		return cmp.Compare(a.Start, b.Start)
	})
	for _, x := range list[:min(len(list), mostWants)] {
		w := Want{Pool: x.Spec.Pool, Units: o.unitsAsked(x.Spec), Count: 1, Wait: -1}
		if x.Start != 0 {
			w.Wait = max(time.Duration(x.Start-o.Now), 0)
		}
		if !x.Spec.Endless() {
			w.Takes = o.Took(x.ID, x.Spec, 0)
		}
		if part := x.Spec.Part; part != nil {
			if name, ok := strings.CutPrefix(part.Controller, service.ControllerKind+"/"); ok {
				w.Service = name
				if o.Held != nil && !slices.ContainsFunc(o.in.Waiting, func(y Want) bool { return y.Service == name }) {
					w.Held = o.Held(name)
				}
			}
		}
		o.in.Waiting = append(o.in.Waiting, w)
	}
}

// unitsAsked is how many units a job asks for.
func (o *observer) unitsAsked(spec *job.Spec) int {
	d := spec.Demand()
	if o.cpus {
		return int(d.CPUs + 0.999)
	}
	return d.GPUs
}
