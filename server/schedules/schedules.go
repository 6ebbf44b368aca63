// Package schedules has the routes of schedules: list, show, suspend, resume, run now, stop. A schedule is
// made, and changed, by a submission (server/jobs).
package schedules

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/service/schedule/controller"
)

// Controller runs schedules; *controller.Controller is one.
type Controller interface {
	Submit(ctx context.Context, by job.Actor, spec schedule.Spec, allowed func(job.Owner) error) (controller.Submitted, error)
	List(context.Context) ([]controller.Status, error)
	Get(ctx context.Context, name string) (controller.Status, error)
	Suspend(ctx context.Context, by job.Actor, name string) error
	Resume(ctx context.Context, by job.Actor, name string) error
	RunNow(ctx context.Context, by job.Actor, name string) (schedule.Run, error)
	Stop(ctx context.Context, by job.Actor, name string, cancel bool) ([]job.ID, error)
}

// Config has the parts that the routes need.
type Config struct {
	Controller Controller // nil: this server keeps no schedules
	Policy     auth.Policy
}

// Service has the routes' handlers.
type Service struct {
	cfg Config
}

// namePath names a schedule.
type namePath struct {
	Name    string `path:"name"`
	Account string `query:"account" doc:"that it belongs to"`
}

func (p *namePath) fullName() string { return schedule.FullName(p.Account, p.Name) }

// stopPath names a schedule that is to be stopped.
type stopPath struct {
	Name    string `path:"name"`
	Account string `query:"account" doc:"that it belongs to"`
	Cancel  bool   `query:"cancel" doc:"cancel the runs that have not ended; else they go on"`
}

type call = transport.Call

// Register adds the routes to a server.
func Register(t *transport.Server, cfg Config) *Service {
	s := &Service{cfg: cfg}
	route := func(method, path string, verb auth.Verb, id, summary, about string) transport.Route {
		return transport.Route{Method: method, Path: "/v1/schedules" + path, Verb: verb, Owned: true, ID: id, Tag: "schedules", Summary: summary, About: about}
	}
	transport.AddRoute(t, route(http.MethodGet, "", auth.SeeSchedule, "listSchedules", "List the schedules",
		"Without their runs, but the newest of each. They are sorted by name, state, owner, next or last (the time of the newest run). The answer has the number of all rows: total, and the header Cox-Total."),
		func(c *call, in *listInput) (*api.Schedules, error) { return s.listSchedules(c, in) })
	transport.AddRoute(t, route(http.MethodGet, "/{name}", auth.SeeSchedule, "showSchedule", "Show a schedule", "With the runs that are kept."),
		func(c *call, in *namePath) (*api.Schedule, error) { return s.showSchedule(c, in.fullName()) })
	transport.AddRoute(t, route(http.MethodPost, "/{name}/suspend", auth.SetSchedule, "suspendSchedule", "Suspend a schedule", "There are no runs by the clock until it is resumed. Runs that were begun go on."),
		func(c *call, in *namePath) (*api.Schedule, error) { return s.suspendSchedule(c, in.fullName()) })
	transport.AddRoute(t, route(http.MethodPost, "/{name}/resume", auth.SetSchedule, "resumeSchedule", "Resume a schedule", "It goes on with its next time."),
		func(c *call, in *namePath) (*api.Schedule, error) { return s.resumeSchedule(c, in.fullName()) })
	transport.AddRoute(t, route(http.MethodPost, "/{name}/run", auth.SetSchedule, "runSchedule", "Begin a run by hand", "Now, besides the times of the schedule, of which none changes. The job is its owner's."),
		func(c *call, in *namePath) (*api.ScheduledRun, error) { return s.runSchedule(c, in.fullName()) })
	transport.AddRoute(t, route(http.MethodDelete, "/{name}", auth.SetSchedule, "stopSchedule", "Stop a schedule", "It is gone; runs that were begun go on, or are cancelled."),
		func(c *call, in *stopPath) (*api.StoppedSchedule, error) {
			return s.stopSchedule(c, schedule.FullName(in.Account, in.Name), in.Cancel)
		})
	return s
}

func refuseSchedules() error {
	return fault.New(fault.Unsupported, "this server keeps no schedules").Advise("start one that does: cox up")
}

func unknownSchedule(name string) error {
	return fault.New(fault.NotFound, "there is no schedule %s", name).Advise("cox schedule list shows the schedules that you may see")
}

// maySee reports whether a caller may know of a schedule.
func (s *Service) maySee(c *call, st *controller.Status) bool {
	return !s.cfg.Policy.Private || c.ID.Admin || st.Owner.UID == c.ID.UID
}

// list lists the schedules that a caller may know of.
func (s *Service) list(c *call) ([]controller.Status, error) {
	if s.cfg.Controller == nil {
		return nil, nil
	}
	all, err := s.cfg.Controller.List(c.Ctx())
	return slices.DeleteFunc(all, func(st controller.Status) bool { return !s.maySee(c, &st) }), err
}

func (s *Service) listSchedules(c *call, in *listInput) (*api.Schedules, error) {
	all, err := s.list(c)
	if err != nil {
		return nil, err
	}
	list := make([]api.Schedule, len(all))
	for i := range all {
		list[i] = *shownSchedule(&all[i])
		list[i].Runs = nil
	}
	page, err := scheduleList.Page(&in.ListQuery, list)
	if err != nil {
		return nil, err
	}
	c.SetTotal(page.Total)
	return &api.Schedules{Schedules: page.Rows, Total: page.Total, Next: page.Next, States: page.States}, nil
}

// find returns a schedule about which the caller may do something. One that he may not see is as one
// that is not there.
func (s *Service) find(c *call, name string, verb auth.Verb) (controller.Status, error) {
	all, err := s.list(c)
	if err != nil {
		return controller.Status{}, err
	}
	var found []controller.Status
	for i := range all {
		if all[i].Name == name {
			found = all[i : i+1]
			break
		}
		if !strings.Contains(name, "/") && strings.HasSuffix(all[i].Name, "/"+name) {
			found = append(found, all[i])
		}
	}
	switch len(found) {
	case 0:
		return controller.Status{}, unknownSchedule(name)
	case 1:
		st := found[0]
		return st, c.Allowed(verb, auth.Object{Name: "schedule " + st.Name, Owned: true, UID: st.Owner.UID})
	}
	names := make([]string, len(found))
	for i := range found {
		names[i] = found[i].Name
	}
	return controller.Status{}, fault.New(fault.Invalid, "%s: several schedules have this name: %s", name, strings.Join(names, ", ")).
		Advise("write the account too: %s", names[0])
}

func (s *Service) showSchedule(c *call, name string) (*api.Schedule, error) {
	st, err := s.find(c, name, auth.SeeSchedule)
	if err != nil {
		return nil, err
	}
	out := shownSchedule(&st)
	if c.ID.Admin || st.Owner.UID == c.ID.UID {
		out.Text = st.Doc.Spec.Text
	}
	return out, nil
}

// changed shows a schedule after a change.
func (s *Service) changed(c *call, name string, err error) (*api.Schedule, error) {
	if err != nil {
		return nil, err
	}
	st, err := s.cfg.Controller.Get(c.Ctx(), name)
	if err != nil {
		return nil, err
	}
	return shownSchedule(&st), nil
}

func (s *Service) suspendSchedule(c *call, name string) (*api.Schedule, error) {
	st, err := s.find(c, name, auth.SetSchedule)
	if err != nil {
		return nil, err
	}
	return s.changed(c, st.Name, s.cfg.Controller.Suspend(c.Ctx(), c.ID.Actor(), st.Name))
}

func (s *Service) resumeSchedule(c *call, name string) (*api.Schedule, error) {
	st, err := s.find(c, name, auth.SetSchedule)
	if err != nil {
		return nil, err
	}
	return s.changed(c, st.Name, s.cfg.Controller.Resume(c.Ctx(), c.ID.Actor(), st.Name))
}

func (s *Service) runSchedule(c *call, name string) (*api.ScheduledRun, error) {
	st, err := s.find(c, name, auth.SetSchedule)
	if err != nil {
		return nil, err
	}
	run, err := s.cfg.Controller.RunNow(c.Ctx(), c.ID.Actor(), st.Name)
	if err != nil {
		return nil, err
	}
	out := shownRun(&st, &run)
	return &out, nil
}

func (s *Service) stopSchedule(c *call, name string, cancel bool) (*api.StoppedSchedule, error) {
	st, err := s.find(c, name, auth.SetSchedule)
	if err != nil {
		return nil, err
	}
	jobs, err := s.cfg.Controller.Stop(c.Ctx(), c.ID.Actor(), st.Name, cancel)
	if err != nil {
		return nil, err
	}
	return &api.StoppedSchedule{Name: st.Name, Jobs: jobs, Cancelled: cancel && len(jobs) > 0}, nil
}

// Submit makes a schedule of a specification whose job was admitted, or changes the one of its name. A
// schedule of somebody else is fault.Permission.
func (s *Service) Submit(ctx context.Context, id auth.Identity, spec *schedule.Spec) (*api.SubmittedSchedule, error) {
	if s.cfg.Controller == nil {
		return nil, refuseSchedules()
	}
	name := schedule.FullName(spec.Account, spec.Name)
	did, err := s.cfg.Controller.Submit(ctx, id.Actor(), *spec, func(owner job.Owner) error {
		return s.cfg.Policy.Allowed(id, auth.SetSchedule, auth.Object{Name: "schedule " + name, Owned: true, UID: owner.UID})
	})
	if err != nil {
		return nil, err
	}
	st, err := s.cfg.Controller.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return &api.SubmittedSchedule{Name: name, Revision: did.Revision, Created: did.Created, Changed: did.Changed, Next: st.Next, TimeZone: zoneName(&st)}, nil
}

// zoneName is the name of a schedule's time zone.
func zoneName(st *controller.Status) string {
	if zone := st.Doc.Spec.Zone; zone != "" {
		return zone
	}
	if name := st.Zone.String(); name != "Local" {
		return name
	}
	name, _ := time.Now().In(st.Zone).Zone()
	return name
}

// shownSchedule is a schedule as the API has it.
func shownSchedule(st *controller.Status) *api.Schedule {
	d := st.Doc
	out := &api.Schedule{
		Name: st.Name, Owner: st.Owner.User, Revision: d.Revision, Cron: d.Spec.Cron, TimeZone: zoneName(st), Overlap: string(d.Spec.Overlap),
		Late: d.Spec.Late.Seconds(), Keep: d.Spec.Keep.Done, Failed: d.Spec.Keep.Failed, State: "waiting",
		SuspendedAt: d.SuspendedAt, SuspendedBy: d.SuspendedBy, Next: st.Next, Why: st.Trouble, Created: d.Created, At: d.At, By: d.By,
	}
	for _, j := range st.Jobs {
		out.Jobs = append(out.Jobs, j.ID)
	}
	switch {
	case d.Suspended:
		out.State = "suspended"
	case len(st.Jobs) > 0:
		out.State = "running"
	}
	for i := range slices.Backward(d.Runs) {
		out.Runs = append(out.Runs, shownRun(st, &d.Runs[i]))
	}
	if len(out.Runs) > 0 {
		out.Last = &out.Runs[0]
	}
	return out
}

func shownRun(st *controller.Status, r *schedule.Run) api.ScheduledRun {
	out := api.ScheduledRun{Time: r.At.In(st.Zone), By: r.By, Revision: r.Revision, Job: r.Job, Ended: r.Ended, Exit: r.Exit, Missed: r.Missed, Why: r.Why}
	switch r.State {
	case schedule.Ended:
		out.State = r.Outcome.String()
		if r.Outcome == job.Pending {
			out.State = "UNKNOWN"
		}
	case schedule.Live:
		out.State = job.Pending.String()
		for _, j := range st.Jobs {
			if j.Part == r.Part("") && j.State != job.Pending { // of an array: a task that runs
				out.State = j.State.String()
			}
		}
	default:
		out.State = strings.ToUpper(string(r.State))
	}
	return out
}
