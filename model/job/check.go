package job

import (
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// Bounds of what a Spec may hold. Front ends have their own, smaller ones, and say
// more; these keep the sums and products that are made of a Spec within an int64.
const (
	maxCount    = 1 << 24 // nodes, tasks, CPUs, devices, groups
	maxPriority = 1 << 53 // which JSON's readers keep exactly
	maxLimit    = 100 * 365 * 24 * time.Hour
	maxAmount   = resource.Amount(1 << 60)
	maxBytes    = resource.Amount(1 << 50) // of one device
)

// Check reports the first field whose value no job can have, whoever wrote it.
func (s *Spec) Check() error {
	if err := s.CheckOrder(); err != nil {
		return err
	}
	if err := s.Part.check(); err != nil {
		return err
	}
	return s.CheckRequest()
}

// CheckOrder is the part of Check that concerns when a job may start: its order in
// the queue, times, dependency, array.
func (s *Spec) CheckOrder() error {
	for _, c := range []struct {
		name string
		n    int64
	}{{"nice", s.Nice}, {"priority", s.Priority}} {
		if c.n > maxPriority || c.n < -maxPriority {
			return fmt.Errorf("%s %d is not within ±2^53", c.name, c.n)
		}
	}
	for _, c := range []struct {
		name string
		t    time.Time
	}{{"begin", s.Begin}, {"deadline", s.Deadline}} {
		if y := c.t.Year(); !c.t.IsZero() && (y < 1970 || y >= 2262) {
			return fmt.Errorf("%s %s is not between the years 1970 and 2261", c.name, c.t.Format(time.RFC3339))
		}
	}
	for _, c := range s.Depends.Clauses {
		if c.Delay < 0 || c.Delay > maxLimit {
			return fmt.Errorf("the delay %s of a dependency is not between 0 and 100 years", c.Delay)
		}
	}
	for _, err := range []error{s.Retries.check(), s.Rerun.Check(), s.RequeueExit.Check(), s.RequeueExitHold.Check()} {
		if err != nil {
			return err
		}
	}
	return s.Array.checkArray()
}

func (a *ArraySpec) checkArray() error {
	if a == nil {
		return nil
	}
	if len(a.Indices) == 0 {
		return fmt.Errorf("an array needs at least one index")
	}
	for i := 1; i < len(a.Indices); i++ {
		if a.Indices[i] <= a.Indices[i-1] {
			return fmt.Errorf("the array's index %d comes after %d", a.Indices[i], a.Indices[i-1])
		}
	}
	return nil
}

// CheckRequest is the part of Check that concerns what a job needs.
func (s *Spec) CheckRequest() error {
	if err := s.checkSecrets(); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		d    time.Duration
	}{{"time_limit", s.TimeLimit}, {"time_min", s.TimeMin}, {"signal.before", s.Signal.beforeEnd()}} {
		if c.d < 0 || c.d > maxLimit {
			return fmt.Errorf("%s %s is not between 0 and 100 years", c.name, c.d)
		}
	}
	switch n := len(s.Groups); {
	case n == 0:
		return fmt.Errorf("a job needs at least one task group")
	case n > maxCount:
		return fmt.Errorf("%d task groups are too many", n)
	}
	for i := range s.Groups {
		if err := s.Groups[i].checkGroup(); err != nil {
			return fmt.Errorf("groups[%d].%w", i, err)
		}
		if err := s.Groups[i].checkElastic(); err != nil {
			return fmt.Errorf("groups[%d].%w", i, err)
		}
	}
	if s.Serve != nil && s.Program.Kind == BareAllocation {
		return fmt.Errorf("serve: an allocation without a program has no ports")
	}
	if err := s.Serve.check(); err != nil {
		return err
	}
	if s.Elastic() && (s.Within != 0 || s.Wishful()) {
		return fmt.Errorf("elastic: does not go together with a place for all of the job's nodes, or with what it would rather have")
	}
	return s.checkWishes()
}

func (s *SignalSpec) beforeEnd() time.Duration {
	if s == nil {
		return 0
	}
	return s.Before
}

func (g *TaskGroup) checkGroup() error {
	if err := g.checkTopology(); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		n    int
	}{
		{"nodes.min", g.Nodes.Min},
		{"nodes.max", g.Nodes.Max},
		{"tasks.min", g.Tasks.Min},
		{"tasks.want", g.Tasks.Want},
		{"tasks_per_node", g.TasksPerNode},
		{"cpus_per_task", g.CPUsPerTask},
		{"segment", g.Segment},
		{"switches", g.Switches},
		{"subgroup", g.Subgroup},
	} {
		if err := checkCount(c.name, c.n); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		name string
		r    resource.Requirements
	}{{"per_node", g.PerNode}, {"per_task", g.PerTask}, {"per_device", resource.Requirements{Vector: g.PerDevice}}, {"total", g.Total}} {
		if err := checkRequirements(c.name, c.r); err != nil {
			return err
		}
	}
	return g.checkParts()
}

// checkParts refuses parts of devices by memory beside parts in thousandths: a claim on a
// device is counted in one or the other.
func (g *TaskGroup) checkParts() error {
	memory, thousandths := false, false
	for _, list := range [][]resource.DeviceRequest{g.PerNode.Devices, g.PerTask.Devices, g.Total.Devices} {
		for _, d := range list {
			memory = memory || d.Bytes > 0
			thousandths = thousandths || d.Bytes == 0 && d.Profile == "" && !d.Whole()
		}
	}
	if memory && thousandths {
		return fmt.Errorf("devices: a group asks for parts by memory and for parts in thousandths; ask for one of them, or in two groups")
	}
	return nil
}

func checkCount(name string, n int) error {
	if n < 0 || n > maxCount {
		return fmt.Errorf("%s %d is not between 0 and %d", name, n, maxCount)
	}
	return nil
}

func checkRequirements(name string, r resource.Requirements) error {
	for _, c := range []struct {
		name string
		n    resource.Amount
	}{{"cpu", r.CPU}, {"memory", r.Memory}, {"disk", r.Disk}} {
		if err := checkAmount(name+"."+c.name, c.n); err != nil {
			return err
		}
	}
	for i, x := range r.Named {
		if err := checkAmount(name+"."+x.Name, x.Amount); err != nil {
			return err
		}
		if i > 0 && r.Named[i-1].Name >= x.Name {
			return fmt.Errorf("%s: resource %q comes after %q", name, x.Name, r.Named[i-1].Name)
		}
	}
	devices := 0
	for _, d := range r.Devices {
		if err := checkCount(name+".devices.count", d.Count); err != nil {
			return err
		}
		if d.Share < 0 || d.Share > resource.WholeDevice {
			return fmt.Errorf("%s.devices.share %d is not between 0 and %d", name, d.Share, resource.WholeDevice)
		}
		if err := checkAmount(name+".devices.memory", d.Memory); err != nil {
			return err
		}
		if d.Bytes < 0 || d.Bytes > maxBytes || d.Bytes > 0 && d.Profile != "" {
			return fmt.Errorf("%s.devices.bytes %d is not between 0 and 2^50, or of a MIG instance", name, d.Bytes)
		}
		if devices += d.Count; devices > maxCount {
			return fmt.Errorf("%s asks for more than %d devices", name, maxCount)
		}
	}
	return nil
}

func checkAmount(name string, n resource.Amount) error {
	if n < 0 || n > maxAmount {
		return fmt.Errorf("%s %d is not between 0 and 2^60", name, n)
	}
	return nil
}

// checkTopology reports what cannot be asked of the topology.
func (g *TaskGroup) checkTopology() error {
	switch n := g.Nodes.Min; {
	case g.Spread && (g.Segment > 1 || g.Contiguous || g.Switches > 0 || g.Wishes.Switches.N > 0):
		return fmt.Errorf("spread: does not go together with segments, contiguous nodes or few switches")
	case g.Segment <= 1:
		return nil
	case len(g.NodeList) > 0, g.Contiguous:
		return fmt.Errorf("segment: does not go together with named or contiguous nodes")
	case n != g.Nodes.Max || n == 0:
		return fmt.Errorf("segment: needs a fixed number of nodes")
	case n > g.Segment && n%g.Segment != 0:
		return fmt.Errorf("segment: %d nodes are no multiple of %d", n, g.Segment)
	}
	return nil
}

// checkElastic reports what a group that changes its size cannot ask for: it has a
// smallest and a largest number of nodes, the same number of tasks on each, and
// nothing that binds all of its nodes together.
func (g *TaskGroup) checkElastic() error {
	if !g.Elastic {
		if g.Subgroup > 0 {
			return fmt.Errorf("subgroup: is for elastic groups")
		}
		return nil
	}
	n, unit := g.Nodes, g.Unit()
	switch {
	case n.Min < 1 || n.Max <= n.Min:
		return fmt.Errorf("elastic: needs a smallest and a larger number of nodes, not %d-%d", n.Min, n.Max)
	case n.Min%unit != 0 || n.Max%unit != 0:
		return fmt.Errorf("elastic: %d-%d nodes are no multiples of the subgroup, %d", n.Min, n.Max, unit)
	case g.Tasks != Count{}:
		return fmt.Errorf("elastic: the number of tasks follows from the nodes: tasks_per_node says how many each has")
	case len(g.Total.Devices) > 0 || !g.Total.Vector.IsZero():
		return fmt.Errorf("elastic: nothing can be collected in total, since the total changes")
	case len(g.NodeList) > 0, g.Contiguous, g.Constraint.Same, g.Within != 0, g.Switches > 0, g.Spread, g.Segment > 1:
		return fmt.Errorf("elastic: does not go together with named or contiguous nodes, [a|b], within, switches, spread and segment")
	}
	return nil
}
