package state

import (
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// CoreSpec is what the core is told that a job asks for: in a pool with a scheduler of its own,
// claims on that pool as a whole. The caller holds the lock.
func (s *State) CoreSpec(f *SharedSpec) *job.Spec {
	delegated, ports := s.DelegatedPools[f.Spec.Pool], f.Spec.Serve.FixedPorts()
	if s.AddressedPools[f.Spec.Pool] {
		ports = nil
	}
	if !delegated && len(ports) == 0 {
		return &f.Spec
	}
	if f.folded == nil {
		f.folded = &f.Spec
		if len(ports) > 0 {
			f.folded = withPorts(f.folded, ports)
		}
		if delegated {
			f.folded = aggregate.Spec(f.folded)
		}
	}
	return f.folded
}

// IsDelegated reports whether claims are on a pool as a whole, whose own scheduler chooses the
// nodes.
func IsDelegated(claims []fleet.Claim) bool { return len(claims) > 0 && aggregate.Is(claims[0].Node) }

// NoteNodes notes the nodes of an attempt whose claims are on a pool as a whole.
func (a *Attempt) NoteNodes(nodes []string) {
	if len(nodes) > 0 && IsDelegated(a.Claims) {
		a.seen = aggregate.Seen(a.Claims, nodes)
	}
}

// NodeClaims are the claims of an attempt on real nodes: of one on a pool as a whole where it was seen.
func (a *Attempt) NodeClaims() []fleet.Claim {
	if IsDelegated(a.Claims) {
		return a.seen
	}
	return a.Claims
}

// heldDevices counts the devices of an attempt, and adds up their parts: half a device is one of count and 0.5 of
// whole. Claims on a pool as a whole have GPUs alone, by their number.
func (a *Attempt) heldDevices() (count int, whole float64) {
	delegated, share := IsDelegated(a.Claims), int64(0)
	for i := range a.Claims {
		c := &a.Claims[i]
		if delegated {
			gpus := int(c.Take.Get(aggregate.Device("gpu")))
			count, share = count+gpus, share+int64(gpus)*int64(resource.WholeDevice)
			continue
		}
		count += len(c.Devices)
		for _, d := range c.Devices {
			share += int64(d.Share)
		}
	}
	return count, float64(share) / float64(resource.WholeDevice)
}

// ChargedFrom is when the charge of an attempt begins that started on a pool as a whole: not
// before it was handed over, whatever the clock of that pool says.
func (a *Attempt) ChargedFrom(started int64) sched.Instant {
	return sched.Instant(max(started, a.Handed))
}

// NodesIn lists the nodes of a report.
func NodesIn(r *engine.Report) []string {
	out := make([]string, len(r.Nodes))
	for i := range r.Nodes {
		out[i] = r.Nodes[i].Node
	}
	return out
}

// WaitsInPool reports whether a job was handed over and has no nodes yet: it waits in the
// queue of its pool's own scheduler.
func (e *JobRecord) WaitsInPool() bool {
	return e.State == job.Running && e.Flags&job.Configuring != 0 && e.Last.Handed != 0 && e.Report().Phase < engine.Ready
}

// IsRequeuedToMove reports whether the job is being taken back from a pool's scheduler for another pool, and nobody has
// asked for it to run again.
func (e *JobRecord) IsRequeuedToMove() bool {
	return e.ExtraOrZero().PoolMoves.Under != nil && e.Last != nil && e.Last.Requeue != nil && e.Last.Requeue.State == nil
}

// dropPoolMove forgets that the job is being taken back for a move. What a person asked for stays.
func (e *JobRecord) dropPoolMove() {
	if e.IsRequeuedToMove() {
		e.Last.Requeue = nil
	}
	if m := e.Extra; m != nil {
		m.PoolMoves.Under = nil
	}
}

// Ending reports whether the end of the job's attempt was asked for.
func (e *JobRecord) Ending() bool {
	a := e.Last
	return a != nil && e.State.Holds() && (a.Cancel != nil || a.Requeue != nil || a.Expired != nil || a.Preempted != nil)
}

// PoolWaitReason is the reason why a handed-over job waits, in the words of its pool's own
// scheduler.
func (e *JobRecord) PoolWaitReason() reason.Reason {
	r := e.Report()
	word, _, _ := strings.Cut(strings.Trim(r.Message, "()"), ",")
	if strings.ContainsAny(word, " \t\n") { // it is no word of a scheduler's
		word = ""
	}
	at := e.Last.Handed / int64(time.Second)
	return reason.Reason{Code: reason.Elsewhere(word), Holder: e.Last.Pool, Resource: r.Native, Want: r.Message, Until: at, Since: at}
}

// StatusText is a job's state in messages of refusal.
func (e *JobRecord) StatusText() string {
	if e.WaitsInPool() {
		return "handed over to pool " + e.Last.Pool
	}
	return e.State.String()
}

// RefuseHandedOver is the error for a change that a job in another scheduler's queue cannot
// take.
func (e *JobRecord) RefuseHandedOver(what string) error {
	return fault.New(fault.Conflict, "the %s of job %s cannot change now: it stands in the queue of pool %s, as it was handed over", what, e.Name(), e.Last.Pool).
		Advise("take it back and change it: cox hold %s, then the change, then cox release %s", e.Name(), e.Name())
}

// isElastic reports whether the engine of a job's pool can change its gang while it runs.
func (s *State) isElastic(e *JobRecord) bool {
	return e.Shared.Spec.Elastic() && e.Last != nil && s.ElasticPools[e.Last.Pool]
}

// AggregateSpec is what the core is asked about for a job that is not kept, in a pool: in one
// with a scheduler of its own, claims on that pool as a whole. The caller holds the lock.
func (s *State) AggregateSpec(spec *job.Spec, pool string) *job.Spec {
	if s.DelegatedPools[pool] {
		return aggregate.Spec(spec)
	}
	return spec
}
