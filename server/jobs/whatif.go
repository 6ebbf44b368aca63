package jobs

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/sched/whatif"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/service/handover/ondemand"
)

func (s *Service) registerWhatIf() {
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/whatif", Verb: auth.AskWhatIf, ID: "whatIf", Tag: "policy", Body: transport.TypeOf[api.WhatIf](), Lasts: true,
		Example: &api.WhatIf{AddNodes: 4, Pool: "h100"},
		Summary: "What would happen with more nodes, other rules or another job",
		About:   "The scheduling core itself goes on from the state of now, on estimated run times, with the change and without it. Nothing is kept. Jobs that the caller may not see are counted and not named.",
	}, func(c *call, _ *transport.Nothing) (*api.WhatIfDone, error) { return s.whatIf(c) })
}

// movedShown bounds the jobs that are named.
const movedShown = 50

func (s *Service) whatIf(c *call) (*api.WhatIfDone, error) {
	req, err := transport.DecodeBody[api.WhatIf](c.Call)
	if err != nil {
		return nil, err
	}
	q := query.WhatIf{AddNodes: req.AddNodes, Like: req.Like, Pool: req.Pool, Drain: req.Drain, Quotas: req.Quotas}
	if req.Policy != "" {
		if q.Policy, err = policy.Parse(cmp.Or(req.File, "queues.yaml"), []byte(req.Policy)); err != nil {
			return nil, err
		}
	}
	q.Handover = ondemand.Plan
	for i := range req.Submit {
		sub, err := s.inventedJob(c, &req.Submit[i])
		if err != nil {
			return nil, err
		}
		q.Submit = append(q.Submit, sub)
	}
	done, err := s.cfg.Plane.WhatIf(c.Ctx(), &q)
	if err != nil {
		return nil, err
	}
	return c.shownWhatIf(done), nil
}

// inventedJob reads a job that is not to be kept.
func (s *Service) inventedJob(c *call, req *api.Submit) (*job.Spec, error) {
	r, err := s.admitText(c.Ctx(), c.ID, &submission{Submit: *req, script: []byte(req.Text)})
	if err != nil {
		return nil, err
	}
	return r.Spec, nil
}

// trialResults sums up what became of the invented jobs, arrays as a whole, in the order of
// the question.
func trialResults(d *query.WhatIfDone) (out []api.Tried) {
	var last *job.Spec
	for _, id := range slices.Sorted(maps.Keys(d.Submitted)) {
		spec, start := d.Submitted[id], d.Starts[id]
		if spec != last {
			last = spec
			out = append(out, api.Tried{Name: spec.Name})
		}
		t := &out[len(out)-1]
		t.Tasks++
		if start.IsZero() {
			continue
		}
		t.Began++
		if t.Start.IsZero() || start.Before(t.Start) {
			t.Start = start
		}
		if start.After(t.Last) {
			t.Last = start
		}
	}
	for i := range out {
		if t := &out[i]; t.Tasks == 1 {
			t.Tasks, t.Began, t.Last = 0, 0, time.Time{}
		}
	}
	return out
}

func (c *call) shownWhatIf(d *query.WhatIfDone) *api.WhatIfDone {
	out := &api.WhatIfDone{
		Now: d.Now, Added: d.Added, Drained: d.Drained, Before: shownFigures(&d.Before), After: shownFigures(&d.After), Moved: []api.Moved{},
	}
	for _, m := range d.Moved {
		switch {
		case m.After == 0:
			out.Never++
		case m.Before == 0 || m.After < m.Before:
			out.Sooner++
		default:
			out.Later++
		}
		v, err := c.s.cfg.Plane.Job(c.Ctx(), m.Job)
		if err != nil || !c.MaySee(&v) || len(out.Moved) >= movedShown {
			continue
		}
		out.Moved = append(out.Moved, api.Moved{
			Job: v.Job.Name(), Name: v.Job.Spec.Name, User: v.Job.Spec.Owner.User, Before: timeOf(int64(m.Before)), After: timeOf(int64(m.After)),
		})
	}
	for _, m := range d.Handover.Moves {
		out.Handovers = append(out.Handovers, api.HandoverMove{Machine: m.Machine, From: m.From, To: m.To, Takes: m.Takes.Seconds(), Reason: m.Reason})
	}
	for _, p := range d.Handover.Pools {
		out.Pools = append(out.Pools, api.HandoverPool(p))
	}
	out.Submitted = trialResults(d)
	return out
}

func shownFigures(f *whatif.Figures) api.Figures {
	out := api.Figures{
		Jobs: f.Jobs, Started: f.Started, Held: f.Held, Never: f.Never, Wait: shownWaits(f.Wait), Use: float64(f.Use) / 1000,
		Fair: float64(f.Fair) / 1000, Taken: f.Taken, Bounded: f.Bounded, Span: f.Span.Seconds(),
	}
	for _, p := range f.Sizes {
		out.Sizes = append(out.Sizes, api.Part{Name: p.Name, Jobs: p.Jobs, Started: p.Started, Wait: shownWaits(p.Wait)})
	}
	for _, p := range f.Account {
		out.Accounts = append(out.Accounts, api.Part{Name: p.Name, Jobs: p.Jobs, Started: p.Started, Wait: shownWaits(p.Wait)})
	}
	return out
}

func shownWaits(w whatif.Waits) api.Waits {
	return api.Waits{Median: w.Median.Seconds(), P90: w.P90.Seconds(), Mean: w.Mean.Seconds()}
}

// timeOf is an instant as the API shows it; 0: none.
func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}
