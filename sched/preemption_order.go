package sched

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// preemptionRank is what preemption looks at in a job beside its priority: QOS and
// partition. Terms share them; there are as many as a site has of these pairs.
type preemptionRank struct {
	qos   int    // in the policy's list; -1: none that it knows
	tier  int32  // of the partition
	worth uint32 // the QOS's priority

	mode   string // how its jobs are taken back; PreemptOff: not at all
	grace  time.Duration
	most   time.Duration // of grace that a job's --signal may ask for
	exempt Instant       // a job that ran shorter is left alone

	partition string
	slice     Instant // of turns; 0: its jobs take none

	runs int   // that hold resources
	held int64 // devices of these, in thousandths
}

// preemptionRules is the compiled rules of who may take whose place. All that the policy
// names must hold: with "qos", the QOS lists the other's; with "partition", the
// partition is of a higher tier; with "priority", the job's own priority is higher.
// So nobody gets back by it what was taken from him: the order has no circle. Where
// the lists of QOS have one, those of its members do not count among each other.
//
// Sources: Slurm's preempt/qos and preempt/partition_prio (its page preempt.html).
type preemptionRules struct {
	policy                         *account.Policy
	byQOS, byPartition, byPriority bool
	byQuota                        bool     // quota_reclaim.go
	over                           [][]bool // by index of QOS: may take from
	standings                      map[preemptionKey]*preemptionRank
	all                            []*preemptionRank // in order of first use
}

type preemptionKey struct{ qos, partition string }

// newPreemption compiles the rules; nil: nobody takes anything.
func newPreemption(p *account.Policy) *preemptionRules {
	if p == nil {
		return nil
	}
	x := &preemptionRules{policy: p, standings: map[preemptionKey]*preemptionRank{}}
	for _, by := range p.Preemption.By {
		x.byQOS = x.byQOS || by == "qos"
		x.byPartition = x.byPartition || by == "partition"
		x.byPriority = x.byPriority || by == "priority"
		x.byQuota = x.byQuota || by == "quota"
	}
	slices := slices.ContainsFunc(p.Partitions, func(a account.Partition) bool { return a.TimeSlice > 0 })
	if !x.byQOS && !x.byPartition && !x.byPriority && !x.byQuota && !slices {
		return nil
	}
	x.over = preemptionMatrix(p.QOS)
	return x
}

// preemptionMatrix works out whose QOS may take from whose, without circles.
func preemptionMatrix(list []account.QOS) [][]bool {
	n := len(list)
	direct, reach := make([][]bool, n), make([][]bool, n)
	for i := range list {
		direct[i], reach[i] = make([]bool, n), make([]bool, n)
		for j := range list {
			direct[i][j] = i != j && slices.Contains(list[i].Preempts, list[j].Name)
			reach[i][j] = direct[i][j]
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	for i := range n {
		for j := range n {
			direct[i][j] = direct[i][j] && !reach[j][i]
		}
	}
	return direct
}

// standingOf returns the preemption rank of jobs with one policy.
func (x *preemptionRules) standingOf(key policyKey) *preemptionRank {
	if x == nil {
		return nil
	}
	at := preemptionKey{key.qos, key.partition}
	s := x.standings[at]
	if s == nil {
		s = x.compileStanding(at)
		x.standings[at] = s
		x.all = append(x.all, s)
	}
	return s
}

// compileStanding finds mode, grace and exempt time: the QOS's own, else the partition's,
// else those for all. With preemption by partition alone the partition goes first,
// as in Slurm.
func (x *preemptionRules) compileStanding(key preemptionKey) *preemptionRank {
	p := x.policy
	s := &preemptionRank{qos: -1, tier: 1, mode: p.Taken(key.qos, key.partition), grace: time.Duration(p.Preemption.Grace), exempt: Instant(p.Preemption.Exempt)}
	partition := func() {
		if i := slices.IndexFunc(p.Partitions, func(a account.Partition) bool { return a.Name == key.partition }); i >= 0 {
			a := &p.Partitions[i]
			s.tier, s.partition, s.slice = cmp.Or(a.Tier, 1), a.Name, Instant(a.TimeSlice)
			s.overrideTimes(a.Grace, 0)
		}
	}
	qos := func() {
		if i := slices.IndexFunc(p.QOS, func(a account.QOS) bool { return a.Name == key.qos }); i >= 0 {
			a := &p.QOS[i]
			s.qos, s.worth = i, a.Priority
			s.overrideTimes(a.Grace, a.Exempt)
		}
	}
	if x.byPartition && !x.byQOS {
		qos()
		partition()
	} else {
		partition()
		qos()
	}
	s.most = max(s.grace, time.Duration(p.Preemption.MaxGrace))
	return s
}

// graceOf is how long a job has to save: what its --signal asks for, as far as the site
// lets it.
func (s *preemptionRank) graceOf(spec *job.Spec) time.Duration {
	if spec == nil || spec.Signal == nil || spec.Signal.Before <= 0 || s.most == 0 {
		return s.grace
	}
	return min(spec.Signal.Before, s.most)
}

// overrideTimes overrides what is given.
func (s *preemptionRank) overrideTimes(grace, exempt account.Duration) {
	if grace != 0 {
		s.grace = time.Duration(grace)
	}
	if exempt != 0 {
		s.exempt = Instant(exempt)
	}
}

// mayTakeFrom reports whether a job may take another one's place, running or next in
// the queue. It is a strict order.
func (x *preemptionRules) mayTakeFrom(a *preemptionRank, priority int64, b *preemptionRank, other int64) bool {
	switch {
	case !x.byQOS && !x.byPartition && !x.byPriority:
		return false
	case x.byQOS && (a.qos < 0 || b.qos < 0 || !x.over[a.qos][b.qos]):
		return false
	case x.byPartition && a.tier <= b.tier:
		return false
	}
	return !x.byPriority || priority > other
}

// reclaimsQuota reports whether what others borrowed may be taken back.
func (x *preemptionRules) reclaimsQuota() bool { return x != nil && x.byQuota }

// mayPreempt reports whether jobs of a preemption rank may take from any other that the site
// could have.
func (x *preemptionRules) mayPreempt(s *preemptionRank) bool {
	switch {
	case s != nil && s.slice > 0:
		return true
	case s == nil, !x.byQOS && !x.byPartition && !x.byPriority:
		return false
	case x.byQOS && (s.qos < 0 || !slices.Contains(x.over[s.qos], true)):
		return false
	}
	return true
}

// claimWeight is how much claims hold, for the price of taking it back: thousandths of
// devices, and of CPUs a 64th.
func claimWeight(r *run) (devices, all int64) {
	cpu := resource.Amount(0)
	for i := range r.claims {
		cpu += r.claims[i].Take.CPU
		devices += int64(aggregate.Count(r.claims[i].Take, "gpu"))
		for _, d := range r.claims[i].Devices {
			devices += int64(d.Share)
		}
	}
	return devices, max(devices+int64(cpu)/64, 1)
}
