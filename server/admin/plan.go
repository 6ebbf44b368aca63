package admin

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
)

type planInput struct {
	Hours float64 `query:"hours" minimum:"0" maximum:"168" doc:"how far it looks; 0: 24"`
	Limit int     `query:"limit" minimum:"0" maximum:"5000" doc:"jobs that run, and jobs that wait, at most; 0: 500"`
}

func (s *service) registerPlan() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/plan", Verb: auth.SeeNodes, ID: "plan", Tag: "nodes",
		Summary: "What runs, is planned and is reserved over the next hours", About: "Starts are those that why shows: the scheduler's own, on estimated run times. " +
			"Jobs that the caller may not see are counted and not named.",
	}, func(c *call, in *planInput) (*api.Plan, error) { return s.showPlan(c, in) })
}

func (s *service) showPlan(c *call, in *planInput) (*api.Plan, error) {
	f, err := s.cfg.Plane.Forecast(c.Ctx())
	if err != nil {
		return nil, err
	}
	now := s.cfg.Now().UTC()
	out := &api.Plan{
		From: now, Until: now.Add(time.Duration(cmp.Or(in.Hours, 24) * float64(time.Hour))), Made: f.At,
		Running: []api.PlannedJob{}, Waiting: []api.PlannedJob{}, Reservations: []api.Reservation{},
	}
	limit := cmp.Or(in.Limit, 500)
	p := &planner{call: c, forecast: &f, until: out.Until}
	s.cfg.Plane.Scan(query.Filter{Live: true}, p.add)
	out.Running, out.MoreRunning = firstBy(p.running, limit, func(j *api.PlannedJob) time.Time {
		if !j.Expected.IsZero() {
			return j.Expected
		}
		return j.End
	}, p.hiddenRunning)
	out.Waiting, out.MoreWaiting = firstBy(p.waiting, limit, func(j *api.PlannedJob) time.Time { return j.Start }, p.hiddenWaiting)
	list, err := c.listReservations()
	if err != nil {
		return nil, err
	}
	for _, r := range list.Reservations {
		if r.From != nil && r.From.Before(out.Until) && r.Until.After(now) {
			out.Reservations = append(out.Reservations, r)
		}
	}
	return out, nil
}

// planner collects the jobs of a plan.
type planner struct {
	call     *call
	forecast *query.Forecast
	until    time.Time

	running, waiting             []api.PlannedJob
	hiddenRunning, hiddenWaiting int
}

func (p *planner) add(v *state.View) bool {
	switch {
	case v.Job.State == job.Pending:
		start := p.forecast.Start(v.Job.ID)
		if start.IsZero() {
			start = v.StartsBy
		}
		if start.IsZero() || start.After(p.until) || !p.call.MaySee(v) {
			p.hiddenWaiting++
			return true
		}
		j := plannedJob(v, start)
		j.NodeList = compressNodes(p.forecast.Nodes(v.Job.ID))
		p.waiting = append(p.waiting, j)
	case v.Job.Started.IsZero() || !p.call.MaySee(v):
		p.hiddenRunning++
	default:
		j := plannedJob(v, v.Job.Started)
		j.NodeList = claimedNodes(v.Claims)
		if end := p.forecast.End(v); !end.IsZero() && (j.End.IsZero() || end.Before(j.End)) {
			j.Expected = end
		}
		p.running = append(p.running, j)
	}
	return true
}

func plannedJob(v *state.View, start time.Time) api.PlannedJob {
	sp, d := v.Job.Spec, v.Demand()
	out := api.PlannedJob{
		Job: v.Job.Name(), JobName: sp.Name, User: sp.Owner.User, Account: sp.Account, Pool: cmp.Or(v.Pool, sp.Pool),
		Nodes: d.Nodes, GPUs: d.GPUs, Start: start.UTC(),
	}
	if sp.TimeLimit > 0 {
		out.End = out.Start.Add(sp.TimeLimit)
	}
	return out
}

func claimedNodes(claims []fleet.Claim) string {
	names := make([]string, len(claims))
	for i := range claims {
		names[i] = claims[i].Node
	}
	return compressNodes(names)
}

// compressNodes is a host list of names in which a name may follow itself.
func compressNodes(names []string) string {
	return hostlist.Compress(slices.Compact(slices.Clone(names)))
}

// firstBy are the jobs whose instants come first, those without one last, and how many are left out.
func firstBy(list []api.PlannedJob, most int, at func(*api.PlannedJob) time.Time, left int) ([]api.PlannedJob, int) {
	slices.SortStableFunc(list, func(a, b api.PlannedJob) int {
		x, y := at(&a), at(&b)
		switch {
		case x.IsZero() && !y.IsZero():
			return 1
		case y.IsZero() && !x.IsZero():
			return -1
		}
		return x.Compare(y)
	})
	if len(list) > most {
		left += len(list) - most
		list = list[:most]
	}
	if list == nil {
		list = []api.PlannedJob{}
	}
	return list, left
}
