package priority

import (
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Billing is the billing weights of a partition, compiled.
type Billing struct {
	Names   []string // things that are billed, in ascending order
	weights []float64
	units   []float64 // of an amount in one thing that the weight is for
	kinds   []kind
	rule    string
}

// kind says how a thing is billed where not all are summed.
type kind uint8

const (
	ofNode kind = iota // CPUs, memory and the like
	device
	global // licences
)

// CompileBilling compiles the weights of a partition; nil or without weights: a job is
// billed its CPUs, as in Slurm.
func CompileBilling(p *account.Partition) *Billing {
	b := &Billing{}
	weights := map[string]float64{"cpu": 1}
	if p != nil && len(p.Billing) > 0 {
		weights, b.rule = p.Billing, p.BillingRule
	}
	b.Names = slices.Sorted(maps.Keys(weights))
	for _, name := range b.Names {
		b.weights = append(b.weights, weights[name])
		b.units = append(b.units, Unit(name))
		k := ofNode
		switch {
		case strings.HasPrefix(name, "license/"):
			k = global
		case IsDevice(name):
			k = device
		}
		b.kinds = append(b.kinds, k)
	}
	return b
}

// Unit is how much of an amount is one of a thing, as weights count it: a CPU, a GiB,
// a device.
func Unit(name string) float64 {
	switch {
	case name == "cpu" || IsDevice(name):
		return 1000
	case name == "memory" || name == "disk":
		return float64(resource.GiB)
	}
	return 1
}

// IsDevice reports whether a thing is devices, of any or of one type.
func IsDevice(name string) bool { return name == "gpu" || strings.Contains(name, ":") }

// Units is what a job is billed for each second that it holds so much of Names.
func (b *Billing) Units(amounts []resource.Amount) float64 {
	sum, largest, devices, everywhere := 0.0, 0.0, 0.0, 0.0
	for i, a := range amounts {
		x := float64(float64(a) / b.units[i] * b.weights[i])
		sum += x
		switch b.kinds[i] {
		case global:
			everywhere += x
		case device:
			devices += x
			if b.rule == "max" {
				largest = max(largest, x)
			}
		default:
			largest = max(largest, x)
		}
	}
	switch b.rule {
	case "max":
		return largest + everywhere
	case "max_gres":
		return largest + devices + everywhere
	}
	return sum
}
