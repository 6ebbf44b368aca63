package limit

import (
	"math/bits"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// This file is the QOS flag relative: amounts that a QOS limits are parts of what there
// is, in hundredths. Of what: of the partition whose QOS it is, else of the cluster. A
// part that is not whole is cut off, and more than all is all.
//
// What there is belongs to the fleet: the Book is told (Measure), and rules that it
// resolved before are brought up to date (Scale). Until it is told, such limits bound
// nothing.
//
// Source: Slurm's page on QOS, "Relative QOS" (qos.html).

// Whole is what there is of each countable thing, by number in the table.
type Whole []resource.Amount

// Bases lists the partitions of which some relative QOS has parts, each once; "" is the cluster.
func (b *Book) Bases() (out []string) {
	for i := range b.policy.QOS {
		if q := &b.policy.QOS[i]; hasFlag(q, account.FlagRelative) {
			out = append(out, b.basePartition(q))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// basePartition is the partition whose QOS it is; "": none's.
func (b *Book) basePartition(q *account.QOS) string {
	for i := range b.policy.Partitions {
		if p := &b.policy.Partitions[i]; p.QOS == q.Name {
			return p.Name
		}
	}
	return ""
}

// Measure tells how much there is in a partition; "": in the cluster. It reports whether
// that is another amount than before.
func (b *Book) Measure(base string, all Whole) bool {
	old, told := b.wholes[base]
	same := told
	for i := range all {
		same = same && old[i] == all[i]
	}
	if same {
		return false
	}
	if b.wholes == nil {
		b.wholes = map[string]Whole{}
	}
	b.wholes[base] = all
	return true
}

// Scale brings bounds that are parts up to date with what there is.
func (b *Book) Scale(r *Rules) {
	if r == nil {
		return
	}
	for i := range r.Checks {
		if c := &r.Checks[i]; c.part != nil {
			b.scaleCheck(c)
		}
	}
}

func (b *Book) scaleCheck(c *Check) {
	bound := resource.Unlimited
	if all, told := b.wholes[c.part.of]; told {
		bound = Part(b.Table.names[c.tres], c.part.amount, all[c.tres])
	}
	c.Why.Most = int64(bound)
	if c.need == overall {
		bound = minutesToSeconds(c.tres, bound)
		c.Why.Most = int64(bound)
	}
	c.Bound = bound
}

// part is a bound as it is written.
type part struct {
	amount resource.Amount
	of     string // partition; "": the cluster
}

// Part is so much of what there is of a thing: amounts are hundredths of it, of memory and
// disk a MiB each.
func Part(name string, amount, all resource.Amount) resource.Amount {
	milli, whole := min(amount, 100)*1000, resource.Amount(1) // of a hundredth
	switch {
	case name == "memory" || name == "disk":
		milli = min(amount, 100*resource.MiB) * 1000 / resource.MiB
	case inThousandths(name):
		milli, whole = min(amount, 100_000), 1000
	}
	high, low := bits.Mul64(uint64(milli), uint64(max(all, 0)))
	n, _ := bits.Div64(high, low, 100_000)
	return resource.Amount(n) / whole * whole
}

// inThousandths reports whether a thing is counted in thousandths.
func inThousandths(name string) bool {
	f := familyOf(name)
	return f == ofCPU || f == ofGRES
}
