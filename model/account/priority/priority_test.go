package priority_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/priority"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// ask is everything that a priority depends on.
type ask struct {
	policy                 account.Policy
	assoc, part, qos       uint32
	share                  float64
	size                   priority.Size
	want, total            map[string]float64
	waited, site, nice     int64
	names                  []string
	maxAssoc, maxPart, max uint32
}

func draw(t *rapid.T) *ask {
	weight := func(name string) uint32 {
		return rapid.SampledFrom([]uint32{0, 1, 10, 1000, 12345, 1 << 20, 1<<32 - 1}).Draw(t, name)
	}
	a := &ask{want: map[string]float64{}, total: map[string]float64{}}
	a.policy.Priority = account.Weights{
		Age: weight("age"), Association: weight("association"), FairShare: weight("fair share"), JobSize: weight("size"),
		Partition: weight("partition"), QOS: weight("qos"), FavorSmall: rapid.Bool().Draw(t, "small"),
		MaxAge: account.Duration(rapid.IntRange(0, 100000).Draw(t, "max age")) * account.Duration(time.Second),
	}
	for _, f := range priority.Flags {
		if rapid.IntRange(0, 4).Draw(t, f) == 0 {
			a.policy.Priority.Flags = append(a.policy.Priority.Flags, f)
		}
	}
	for _, name := range []string{"cpu", "gpu", "memory"} {
		if rapid.Bool().Draw(t, name) {
			if a.policy.Priority.TRES == nil {
				a.policy.Priority.TRES = map[string]uint32{}
			}
			a.policy.Priority.TRES[name] = weight("weight of " + name)
			a.want[name], a.total[name] = float64(rapid.IntRange(0, 50).Draw(t, "want")), float64(rapid.IntRange(0, 40).Draw(t, "total"))
			a.names = append(a.names, name)
		}
	}
	numbers := func(label string) (n, top uint32) {
		list := rapid.SliceOfN(rapid.SampledFrom([]uint32{0, 1, 7, 1000}), 1, 3).Draw(t, label)
		return list[0], slices.Max(list)
	}
	a.assoc, a.maxAssoc = numbers("associations")
	a.part, a.maxPart = numbers("partitions")
	a.qos, a.max = numbers("QOS")
	a.policy.Accounts = []account.Account{{Name: "a", Priority: a.assoc, Users: []account.User{{Name: "u", Priority: a.maxAssoc}}}}
	a.policy.Partitions = []account.Partition{{Name: "p", Priority: a.maxPart}, {Name: "q", Priority: a.part}}
	a.policy.QOS = []account.QOS{{Name: "x", Priority: a.max}, {Name: "y", Priority: a.qos}}
	a.share = float64(rapid.IntRange(0, 7).Draw(t, "share")) / 7
	a.size = priority.Size{
		Nodes: float64(rapid.IntRange(1, 20).Draw(t, "nodes")), CPUs: float64(rapid.IntRange(0, 200).Draw(t, "CPUs")),
		Limit:    time.Duration(rapid.IntRange(0, 1000).Draw(t, "limit")) * time.Second,
		AllNodes: float64(rapid.IntRange(0, 16).Draw(t, "all nodes")), AllCPUs: float64(rapid.IntRange(0, 128).Draw(t, "all CPUs")),
	}
	a.waited = int64(rapid.IntRange(0, 200000).Draw(t, "waited"))
	a.site, a.nice = int64(rapid.IntRange(-100, 100).Draw(t, "site")), int64(rapid.SampledFrom([]int{0, 1, -50, 1 << 31, -(1 << 31)}).Draw(t, "nice"))
	return a
}

// reference is Slurm's page priority_multifactor.html read once more, factor by factor.
func (a *ask) reference() int64 {
	w := &a.policy.Priority
	flag := func(name string) bool { return slices.Contains(w.Flags, name) }
	all := flag("no_normal_all")
	number := func(n, top uint32, is string) float64 {
		if all || flag(is) {
			return float64(n)
		}
		if top == 0 {
			return 0
		}
		return float64(n) / float64(top)
	}
	p := float64(float64(w.Association) * number(a.assoc, a.maxAssoc, "no_normal_assoc"))
	p += float64(float64(w.FairShare) * a.share)
	p += float64(float64(w.JobSize) * a.refSize(flag("small_relative_to_time")))
	p += float64(float64(w.Partition) * number(a.part, a.maxPart, "no_normal_part"))
	p += float64(float64(w.QOS) * number(a.qos, a.max, "no_normal_qos"))
	for _, name := range a.names {
		x := a.want[name]
		if !all && !flag("no_normal_tres") {
			switch {
			case a.total[name] == 0:
				x = 0
			case x > a.total[name]:
				x = 1
			default:
				x /= a.total[name]
			}
		}
		p += float64(float64(w.TRES[name]) * x)
	}
	p += float64(a.site - a.nice)
	maxAge := float64(w.MaxAge / account.Duration(time.Second))
	if maxAge == 0 {
		maxAge = 7 * 86400
	}
	p += float64(float64(w.Age) * math.Min(float64(a.waited)/maxAge, 1))
	switch {
	case p < 1:
		return 1
	case p > 4294967295:
		return 4294967295
	}
	return int64(math.Trunc(p))
}

func (a *ask) refSize(relative bool) float64 {
	s, small := a.size, a.policy.Priority.FavorSmall
	n, c := s.AllNodes, s.AllCPUs
	bound := func(x float64) float64 { return math.Max(0, math.Min(1, x)) }
	switch {
	case n == 0:
		return 0
	case relative:
		x := 0.0
		if s.Limit != 0 && c != 0 {
			x = bound(math.Max(float64(s.Nodes*c)/n, s.CPUs) / math.Ceil(s.Limit.Minutes()) / c)
		}
		if small {
			x = 1 - x
		}
		return x
	case small && (s.CPUs == 0 || c == 0):
		return bound(math.Max(n-s.Nodes, 0) / n)
	case small:
		return bound((math.Max(n-s.Nodes, 0)/n + (c-s.CPUs)/c) / 2)
	case s.CPUs == 0 || c == 0:
		return bound(s.Nodes / n)
	}
	return bound((s.Nodes/n + s.CPUs/c) / 2)
}

func (a *ask) factors(r *priority.Rules) *priority.Factors {
	f := &priority.Factors{
		Association: r.Association(a.assoc), FairShare: a.share, JobSize: r.JobSize(&a.size), Partition: r.Partition(a.part), QOS: r.QOS(a.qos),
		Age: r.Age(1000+a.waited, 1000),
	}
	for _, name := range r.Names {
		f.TRES = append(f.TRES, r.TRES(a.want[name], a.total[name]))
	}
	return f
}

// TestPointsAreTheReference: the same number for any configuration; what is explained
// adds up to it; and the longer a job waits the higher it stands.
//
// Seen to fail with: the mean of nodes and CPUs where a job wants no CPUs, a factor of
// TRES above 1, minutes of the limit rounded down.
func TestPointsAreTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := draw(t)
		r := priority.Compile(&a.policy)
		if r == nil {
			if !a.policy.Priority.Zero() {
				t.Fatal("the weights are not compiled")
			}
			return
		}
		f := a.factors(r)
		base := r.Base(f, a.site-a.nice)
		got := r.Points(base, f.Age)
		if want := a.reference(); got != want {
			t.Fatalf("priority %d, want %d: %+v", got, want, a)
		}
		sum, adjust := 0.0, 0.0
		for _, item := range r.Explain(f, a.site, a.nice) {
			switch item.Name {
			case "site":
				adjust = item.Points
			case "nice":
				sum += adjust + item.Points
			default:
				sum += item.Points
			}
		}
		if shown := int64(min(max(sum, 1), priority.Highest)); shown != got {
			t.Fatalf("priority %d, what is shown adds up to %d", got, shown)
		}
		if older := r.Points(base, r.Age(1000+a.waited+int64(rapid.IntRange(0, 100000).Draw(t, "later")), 1000)); older < got {
			t.Fatalf("it waited longer and fell from %d to %d", got, older)
		}
	})
}

// TestBilling: the example of Slurm's page, 1 CPU and 60 GiB of a node with 16 and 64,
// and devices and licences.
func TestBilling(t *testing.T) {
	units := func(p account.Partition, amounts map[string]resource.Amount) float64 {
		b := priority.CompileBilling(&p)
		list := make([]resource.Amount, len(b.Names))
		for i, name := range b.Names {
			list[i] = amounts[name]
		}
		return b.Units(list)
	}
	job := map[string]resource.Amount{"cpu": 1000, "memory": 60 * resource.GiB, "gpu": 2000, "gpu:a100": 2000, "license/matlab": 3}
	weights := map[string]float64{"cpu": 1, "memory": 0.25}
	more := map[string]float64{"cpu": 1, "memory": 0.25, "gpu": 9, "gpu:a100": 2, "license/matlab": 2}
	for _, c := range []struct {
		p    account.Partition
		want float64
	}{
		{account.Partition{}, 1}, // CPUs
		{account.Partition{Billing: weights}, 16},
		{account.Partition{Billing: weights, BillingRule: "max"}, 15},
		{account.Partition{Billing: more}, 1 + 15 + 18 + 4 + 6},
		{account.Partition{Billing: more, BillingRule: "max"}, 18 + 6},
		{account.Partition{Billing: more, BillingRule: "max_gres"}, 15 + 18 + 4 + 6},
	} {
		if got := units(c.p, job); got != c.want {
			t.Errorf("%+v: %v units, want %v", c.p, got, c.want)
		}
	}
	if got := priority.CompileBilling(nil).Units([]resource.Amount{2500}); got != 2.5 {
		t.Errorf("without a partition %v units for 2.5 CPUs", got)
	}
}
