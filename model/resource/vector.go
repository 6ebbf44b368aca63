package resource

import (
	"slices"
	"strings"
)

// Named is an amount of a resource that only its name describes: a licence, a
// local disk class, a vendor's extended resource. Unit: whatever the site counts.
type Named struct {
	Name   string `json:"name"`
	Amount Amount `json:"amount"`
}

// Vector is a bundle of countable resources. Devices with an identity (GPUs) are
// not in it: they are claimed one by one (fleet.DeviceClaim).
type Vector struct {
	CPU    Amount  `json:"cpu,omitempty"`    // thousandths of a logical CPU
	Memory Amount  `json:"memory,omitempty"` // bytes
	Disk   Amount  `json:"disk,omitempty"`   // bytes of node-local scratch
	Named  []Named `json:"named,omitempty"`  // sorted by name, each name once
}

// IsZero reports whether the vector asks for nothing.
func (v Vector) IsZero() bool {
	return v.CPU == 0 && v.Memory == 0 && v.Disk == 0 && len(v.Named) == 0
}

// Add returns v+w, saturating in every component.
func (v Vector) Add(w Vector) Vector { return v.combine(w, Amount.Add) }

// Sub returns v-w, component by component; components may become negative.
func (v Vector) Sub(w Vector) Vector { return v.combine(w, Amount.Sub) }

// Scale returns v*n, saturating.
func (v Vector) Scale(n int) Vector {
	out := Vector{CPU: v.CPU.Mul(n), Memory: v.Memory.Mul(n), Disk: v.Disk.Mul(n)}
	if n == 0 {
		return out
	}
	for _, x := range v.Named {
		out.Named = append(out.Named, Named{x.Name, x.Amount.Mul(n)})
	}
	return out
}

// Get returns the amount of a named resource, zero if the vector has none.
func (v Vector) Get(name string) Amount {
	for _, x := range v.Named {
		if x.Name == name {
			return x.Amount
		}
	}
	return 0
}

// With returns a copy of v in which the named resource has the given amount.
func (v Vector) With(name string, a Amount) Vector {
	out := v
	out.Named = slices.Clone(v.Named)
	i, found := slices.BinarySearchFunc(out.Named, name, func(x Named, n string) int { return strings.Compare(x.Name, n) })
	switch {
	case found && a == 0:
		out.Named = slices.Delete(out.Named, i, i+1)
	case found:
		out.Named[i].Amount = a
	case a != 0:
		out.Named = slices.Insert(out.Named, i, Named{name, a})
	}
	return out
}

// Shortage returns the first resource of need that v does not cover, with how
// much is missing, in the fixed order cpu, memory, disk, then names. The name is
// empty if v covers all of need.
func (v Vector) Shortage(need Vector) (name string, missing Amount) {
	switch {
	case need.CPU > v.CPU:
		return "cpu", need.CPU.Sub(v.CPU)
	case need.Memory > v.Memory:
		return "memory", need.Memory.Sub(v.Memory)
	case need.Disk > v.Disk:
		return "disk", need.Disk.Sub(v.Disk)
	}
	for _, x := range need.Named {
		if have := v.Get(x.Name); x.Amount > have {
			return x.Name, x.Amount.Sub(have)
		}
	}
	return "", 0
}

// Covers reports whether v has at least need in every component.
func (v Vector) Covers(need Vector) bool {
	name, _ := v.Shortage(need)
	return name == ""
}

// Times returns how many times need fits into v; a need of nothing fits limit
// times, and no answer exceeds limit.
func (v Vector) Times(need Vector, limit int) int {
	n := Amount(limit)
	at := func(have, want Amount) {
		if want > 0 {
			n = min(n, max(have, 0)/want)
		}
	}
	at(v.CPU, need.CPU)
	at(v.Memory, need.Memory)
	at(v.Disk, need.Disk)
	for _, x := range need.Named {
		at(v.Get(x.Name), x.Amount)
	}
	return int(n)
}

func (v Vector) combine(w Vector, op func(Amount, Amount) Amount) Vector {
	out := Vector{CPU: op(v.CPU, w.CPU), Memory: op(v.Memory, w.Memory), Disk: op(v.Disk, w.Disk)}
	i, j := 0, 0
	put := func(name string, a Amount) {
		if a != 0 {
			out.Named = append(out.Named, Named{name, a})
		}
	}
	for i < len(v.Named) || j < len(w.Named) {
		switch {
		case j == len(w.Named) || i < len(v.Named) && v.Named[i].Name < w.Named[j].Name:
			put(v.Named[i].Name, v.Named[i].Amount)
			i++
		case i == len(v.Named) || w.Named[j].Name < v.Named[i].Name:
			put(w.Named[j].Name, op(0, w.Named[j].Amount))
			j++
		default:
			put(v.Named[i].Name, op(v.Named[i].Amount, w.Named[j].Amount))
			i, j = i+1, j+1
		}
	}
	return out
}
