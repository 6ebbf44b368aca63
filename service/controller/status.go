package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/decide"
	"github.com/coxswain-sched/coxswain/service/endpoints"
)

// Reason is one thing that was decided, or that is missing.
type Reason = decide.Reason

// Status is a service as it is shown. What its fields point at is shared and not to be written to.
type Status struct {
	Name    string // "team/chat"
	Account string
	Owner   job.Owner

	Revision  uint32 // that is wanted in the end
	Serving   uint32 // that served before the rollout that is under way, else Revision
	Want      int
	Ready     int
	Stopping  bool
	Asleep    bool // scaled to zero: a request wakes it
	ScaledAt  time.Time
	ScaledWhy string

	Replicas  []Replica // by index, then revision
	Rollout   *service.Rollout
	Revisions []service.Revision // that are kept, ascending
	Weights   map[uint32]int     // per cent of the requests by revision; nil: every ready replica alike
	Reasons   []Reason
	Load      endpoints.Load

	Spec  *service.Spec    // of Revision
	Route api.ServiceRoute // without backends
}

// Replica is a replica as it is shown.
type Replica struct {
	Index    uint32
	Revision uint32
	Try      uint32
	Job      job.ID // 0: it is not submitted
	State    string // of its job, in Slurm's words; "" if it has none
	Ready    bool
	Since    time.Time // when it became ready; zero: it is not
	Ending   bool
	Node     string // of its first task; empty: it holds none
	Address  string // host:port that gets the requests; empty: not known
	Why      string // what is missing, for people
}

// List shows every service by name.
func (c *Controller) List(ctx context.Context) ([]Status, error) {
	var out []Status
	err := c.ask(ctx, func(ctx context.Context) error {
		for _, name := range slices.Sorted(maps.Keys(c.services)) {
			s, err := c.statusOf(ctx, c.services[name])
			if err != nil {
				return err
			}
			out = append(out, s)
		}
		return nil
	})
	return out, err
}

// Get shows one service; fault.NotFound: there is none of that name.
func (c *Controller) Get(ctx context.Context, name string) (Status, error) {
	var out Status
	err := c.ask(ctx, func(ctx context.Context) (err error) {
		m := c.services[name]
		if m == nil {
			return unknownService(name)
		}
		out, err = c.statusOf(ctx, m)
		return err
	})
	return out, err
}

// Next waits until a service may have changed after a version, and returns the version to go on from.
// After version 0 it returns at once.
func (c *Controller) Next(ctx context.Context, after uint64) (uint64, error) {
	for {
		c.mu.Lock()
		version, wait := c.version, c.changed
		c.mu.Unlock()
		if version > after {
			return version, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return after, ctx.Err()
		case <-c.ended:
			return after, fault.New(fault.Unavailable, "the server ends")
		}
	}
}

// noteChange wakes everybody who waits in Next.
func (c *Controller) noteChange() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Controller) statusOf(ctx context.Context, m *managed) (Status, error) {
	parts, err := c.cfg.Plane.Parts(ctx, controllerName(m.name))
	if err != nil {
		return Status{}, err
	}
	d, spec := m.doc, c.wanted(m)
	s := Status{
		Name: m.name, Account: spec.Account, Owner: spec.Owner, Revision: d.Target(), Serving: d.Current, Want: d.Want,
		Stopping: d.Stopping, Asleep: d.Want == 0 && spec.Scale != nil && !d.Stopping, ScaledAt: d.ScaledAt, ScaledWhy: d.ScaledWhy,
		Rollout: d.Rollout, Revisions: d.Revisions, Weights: m.last.Weights, Reasons: m.last.Reasons,
		Load: c.cfg.Hub.Load(m.name), Spec: spec,
	}
	s.Route = c.routeOf(m)
	for _, trouble := range []string{m.trouble, m.tokenTrouble, m.routeTrouble} {
		if trouble != "" {
			s.Reasons = append([]Reason{{Kind: decide.Refused, Text: trouble}}, s.Reasons...)
		}
	}
	if slow, ok := c.slowReason(m); ok {
		s.Reasons = append([]Reason{slow}, s.Reasons...)
	}
	s.Replicas = c.replicasOf(m, parts)
	for i := range s.Replicas {
		if s.Replicas[i].Ready {
			s.Ready++
		}
	}
	return s, nil
}

// replicasOf lists the replicas that are wanted, and those that still live.
func (c *Controller) replicasOf(m *managed, parts []Part) (out []Replica) {
	port := c.wanted(m).Route.Port
	for _, slot := range m.doc.Replicas {
		r := Replica{Index: slot.Index, Revision: slot.Revision, Try: slot.Try, Why: slot.Why}
		out = append(out, r)
	}
	for i := range parts {
		p := &parts[i]
		if p.Job.State.Final() {
			continue
		}
		at := slices.IndexFunc(out, func(r Replica) bool {
			return r.Index == p.Part.Index && r.Revision == p.Part.Revision && r.Try == p.Part.Try
		})
		if at < 0 {
			out = append(out, Replica{Index: p.Part.Index, Revision: p.Part.Revision, Try: p.Part.Try})
			at = len(out) - 1
		}
		c.fillReplica(&out[at], p, m, port)
	}
	for _, x := range m.last.Reasons {
		at := slices.IndexFunc(out, func(r Replica) bool {
			return x.Replica != "" && r.Index == x.Index && r.Revision == x.Revision && r.Job == x.Job
		})
		if at >= 0 {
			out[at].Why = x.Replica
		}
	}
	slices.SortFunc(out, func(a, b Replica) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Try, b.Try))
	})
	return out
}

func (c *Controller) fillReplica(r *Replica, p *Part, m *managed, port string) {
	r.Job, r.State, r.Ending = p.Job.ID, p.Job.State.String(), p.Ending
	if len(p.Claims) > 0 && p.Job.State.Holds() {
		r.Node = p.Claims[0].Node
	}
	if heard, ok := c.cfg.Hub.Replica(p.Job.ID); ok && heard.Ref == p.Ref {
		r.Ready, r.Since, r.Address = heard.Ready, heard.Since, heard.Address(port)
	}
	if r.Ready {
		r.Why = ""
	}
}
