package priority

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
)

// Flags are the words that Weights.Flags may have. account.Instead knows what Slurm has
// beside them.
var Flags = []string{
	"accrue_always", "depth_oblivious", "no_fair_tree", "small_relative_to_time", "no_normal_all", "no_normal_assoc", "no_normal_part", "no_normal_qos", "no_normal_tres",
}

// Rules is the priorities of a policy, compiled.
type Rules struct {
	Names  []string // things that Weights.TRES weighs, in ascending order
	Always bool     // age counts from the submission on, whatever kept the job from being considered

	age, association, fairShare, size, partition, qos float64
	tres                                              []float64 // by Names
	maxAge                                            float64   // seconds
	small, relative                                   bool
	highest                                           struct{ association, partition, qos float64 } // that a factor is a part of; 1: raw
	rawTRES                                           bool
}

// Compile compiles the weights of a policy; nil if none counts.
func Compile(p *account.Policy) *Rules {
	w := &p.Priority
	if w.Zero() {
		return nil
	}
	r := &Rules{
		Names: slices.Sorted(maps.Keys(w.TRES)),
		age:   float64(w.Age), association: float64(w.Association), fairShare: float64(w.FairShare),
		size: float64(w.JobSize), partition: float64(w.Partition), qos: float64(w.QOS), small: w.FavorSmall,
		maxAge: (7 * 24 * time.Hour).Seconds(),
	}
	for _, name := range r.Names {
		r.tres = append(r.tres, float64(w.TRES[name]))
	}
	if w.MaxAge > 0 {
		r.maxAge = max(math.Floor(time.Duration(w.MaxAge).Seconds()), 1)
	}
	has := func(flag string) bool { return slices.Contains(w.Flags, flag) }
	r.Always, r.relative = has("accrue_always"), has("small_relative_to_time")
	r.rawTRES = has("no_normal_tres") || has("no_normal_all")
	r.highest.association = rawFactor(has("no_normal_assoc") || has("no_normal_all"), highestAssociation(p))
	r.highest.partition, r.highest.qos = 0, 0
	for i := range p.Partitions {
		r.highest.partition = max(r.highest.partition, float64(p.Partitions[i].Priority))
	}
	for i := range p.QOS {
		r.highest.qos = max(r.highest.qos, float64(p.QOS[i].Priority))
	}
	r.highest.partition = rawFactor(has("no_normal_part") || has("no_normal_all"), r.highest.partition)
	r.highest.qos = rawFactor(has("no_normal_qos") || has("no_normal_all"), r.highest.qos)
	return r
}

func rawFactor(is bool, highest float64) float64 {
	if is {
		return 1
	}
	return highest
}

func highestAssociation(p *account.Policy) (top float64) {
	for i := range p.Accounts {
		a := &p.Accounts[i]
		top = max(top, float64(a.Priority))
		for j := range a.Users {
			top = max(top, float64(a.Users[j].Priority))
		}
	}
	return top
}

// Ages reports whether the time counts that a job waits.
func (r *Rules) Ages() bool { return r.age > 0 }

// Shares reports whether past usage counts.
func (r *Rules) Shares() bool { return r.fairShare > 0 }

// Association, Partition and QOS are the factors of the numbers that the policy has.
func (r *Rules) Association(n uint32) float64 { return partOf(float64(n), r.highest.association) }
func (r *Rules) Partition(n uint32) float64   { return partOf(float64(n), r.highest.partition) }
func (r *Rules) QOS(n uint32) float64         { return partOf(float64(n), r.highest.qos) }

func partOf(n, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return n / of
}

// TRES is the factor of a thing of which a job wants so many, and its partition has so
// many.
func (r *Rules) TRES(want, total float64) float64 {
	if r.rawTRES {
		return max(want, 0)
	}
	return clampUnit(partOf(want, total))
}

// Age is the factor of a job that may be considered since a second; 0: it may not.
func (r *Rules) Age(now, since int64) float64 {
	if since <= 0 || now <= since {
		return 0
	}
	return min(float64(now-since)/r.maxAge, 1)
}

// Size is what the factor of size looks at.
type Size struct {
	Nodes, CPUs float64       // that the job wants at least
	Limit       time.Duration // its own, or its partition's; 0: none

	AllNodes, AllCPUs float64 // of the cluster
}

// JobSize is the factor of a job's size.
func (r *Rules) JobSize(s *Size) float64 {
	if s.AllNodes <= 0 {
		return 0
	}
	if r.relative {
		return r.relativeSize(s)
	}
	nodes, cpus := s.Nodes/s.AllNodes, partOf(s.CPUs, s.AllCPUs)
	if r.small {
		nodes, cpus = max(s.AllNodes-s.Nodes, 0)/s.AllNodes, partOf(s.AllCPUs-s.CPUs, s.AllCPUs)
	}
	if s.CPUs <= 0 || s.AllCPUs <= 0 {
		return clampUnit(nodes)
	}
	return clampUnit((nodes + cpus) / 2)
}

// relativeSize is the size as a part of the cluster by minute of the limit.
func (r *Rules) relativeSize(s *Size) float64 {
	x := 0.0
	if s.Limit > 0 && s.AllCPUs > 0 {
		minutes := math.Ceil(s.Limit.Minutes())
		x = clampUnit(max(float64(s.Nodes*s.AllCPUs)/s.AllNodes, s.CPUs) / minutes / s.AllCPUs)
	}
	if r.small {
		return 1 - x
	}
	return x
}

func clampUnit(x float64) float64 { return min(max(x, 0), 1) }
