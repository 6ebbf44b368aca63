package services

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/service/controller"
	"github.com/coxswain-sched/coxswain/service/decide"
	"github.com/coxswain-sched/coxswain/service/endpoints"
)

// Controller runs services; *controller.Controller is one.
type Controller interface {
	Submit(ctx context.Context, by job.Actor, spec service.Spec, allowed func(job.Owner) error) (decide.Submitted, error)
	List(context.Context) ([]controller.Status, error)
	Get(ctx context.Context, name string) (controller.Status, error)
	Scale(ctx context.Context, by job.Actor, name string, n int) error
	Pause(ctx context.Context, by job.Actor, name string) error
	Resume(ctx context.Context, by job.Actor, name string) error
	Undo(ctx context.Context, by job.Actor, name string, to uint32) (decide.Submitted, error)
	Stop(ctx context.Context, by job.Actor, name string) error
}

// Config has the parts that the routes need.
type Config struct {
	Controller Controller // nil: this server runs no services
	Policy     auth.Policy

	// URL is where a route is reached; empty: no gateway is known.
	URL func(api.ServiceRoute) string

	Hub       Hub           // of gateways; nil: this server has none
	Heartbeat time.Duration // of a stream of routes
	Stall     time.Duration // how long a gateway may not read
}

// Service has the routes' handlers.
type Service struct {
	cfg Config
}

// namePath names a service.
type namePath struct {
	Name    string `path:"name"`
	Account string `query:"account" doc:"that it belongs to"`
}

func (p *namePath) fullName() string { return service.FullName(p.Account, p.Name) }

type call = transport.Call

// Register adds the routes to a server.
func Register(t *transport.Server, cfg Config) *Service {
	if cfg.Controller == nil {
		cfg.Controller = none{}
	}
	s := &Service{cfg: cfg}
	transport.AddRoute(t, transport.Route{
		Method: http.MethodGet, Path: "/v1/services", Verb: auth.SeeService, Owned: true, ID: "listServices", Tag: "services",
		Summary: "List the services", About: "Without their replicas and revisions. They are sorted by name, state, owner, revision, ready, requests_per_second, failed_per_second, in_flight, p50, p95, p99 or since; " +
			"an unknown number is less than 0. The answer has the number of all rows: total, and the header Cox-Total.",
	}, func(c *call, in *listInput) (*api.Services, error) { return s.listServices(c, in) })
	transport.AddRoute(t, transport.Route{
		Method: http.MethodGet, Path: "/v1/services/{name}", Verb: auth.SeeService, Owned: true, ID: "showService", Tag: "services",
		Summary: "Show a service", About: "With its replicas and the revisions that are kept.",
	}, func(c *call, in *namePath) (*api.Service, error) { return s.showService(c, in.fullName()) })
	transport.AddRoute(t, transport.Route{
		Method: http.MethodPost, Path: "/v1/services/{name}/scale", Verb: auth.SetService, Owned: true, ID: "scaleService", Tag: "services",
		Summary: "Set the number of replicas", Body: transport.TypeOf[api.ServiceScale](), Example: &api.ServiceScale{Replicas: 3},
		About: "Between min and max of its file. A service with scale goes on from there by its load.",
	}, func(c *call, in *namePath) (*api.Service, error) { return s.scaleService(c, in.fullName()) })
	transport.AddRoute(t, transport.Route{
		Method: http.MethodPost, Path: "/v1/services/{name}/rollout", Verb: auth.SetService, Owned: true, ID: "rolloutService", Tag: "services",
		Summary: "Pause, resume or undo an update", Body: transport.TypeOf[api.ServiceRollout](), Example: &api.ServiceRollout{Action: "undo", To: 3},
	}, func(c *call, in *namePath) (*api.Service, error) { return s.changeRollout(c, in.fullName()) })
	transport.AddRoute(t, transport.Route{
		Method: http.MethodDelete, Path: "/v1/services/{name}", Verb: auth.SetService, Owned: true, ID: "stopService", Tag: "services",
		Summary: "End a service", About: "Its replicas are drained and end; then it is gone.",
	}, func(c *call, in *namePath) (*api.Service, error) { return s.stopService(c, in.fullName()) })
	s.registerGateway(t)
	return s
}

// maySee reports whether a caller may know of a service.
func (s *Service) maySee(c *call, st *controller.Status) bool {
	return !s.cfg.Policy.Private || c.ID.Admin || st.Owner.UID == c.ID.UID
}

func (s *Service) listServices(c *call, in *listInput) (*api.Services, error) {
	all, err := s.cfg.Controller.List(c.Ctx())
	if err != nil {
		return nil, err
	}
	var list []api.Service
	for i := range all {
		if s.maySee(c, &all[i]) {
			one := s.shown(&all[i])
			one.Parts, one.Revisions = nil, nil
			list = append(list, *one)
		}
	}
	page, err := serviceList.Page(&in.ListQuery, list)
	if err != nil {
		return nil, err
	}
	c.SetTotal(page.Total)
	return &api.Services{Services: page.Rows, Total: page.Total, Next: page.Next, States: page.States}, nil
}

// find returns a service about which the caller may do something. One that he may not see is as one
// that is not there.
func (s *Service) find(c *call, name string, verb auth.Verb) (controller.Status, error) {
	st, err := s.cfg.Controller.Get(c.Ctx(), name)
	if fault.KindOf(err) == fault.NotFound && !strings.Contains(name, "/") {
		st, err = s.findInAccounts(c, name, err)
	}
	switch {
	case err != nil:
		return st, err
	case !s.maySee(c, &st):
		return st, unknownService(name)
	}
	return st, c.Allowed(verb, auth.Object{Name: "service " + st.Name, Owned: true, UID: st.Owner.UID})
}

// findInAccounts finds a service whose name was given without its account, if one alone has it.
func (s *Service) findInAccounts(c *call, name string, none error) (controller.Status, error) {
	all, err := s.cfg.Controller.List(c.Ctx())
	if err != nil {
		return controller.Status{}, err
	}
	all = slices.DeleteFunc(all, func(st controller.Status) bool {
		return !strings.HasSuffix(st.Name, "/"+name) || !s.maySee(c, &st)
	})
	switch len(all) {
	case 0:
		return controller.Status{}, none
	case 1:
		return all[0], nil
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return controller.Status{}, fault.New(fault.Invalid, "%s: several services have this name: %s", name, strings.Join(names, ", ")).
		Advise("write the account too: %s", names[0])
}

func (s *Service) showService(c *call, name string) (*api.Service, error) {
	st, err := s.find(c, name, auth.SeeService)
	if err != nil {
		return nil, err
	}
	out := s.shown(&st)
	if c.ID.Admin || st.Owner.UID == c.ID.UID {
		for i := range out.Revisions {
			out.Revisions[i].Text = st.Revisions[len(st.Revisions)-1-i].Spec.Text
		}
	}
	return out, nil
}

// changed shows a service after a change.
func (s *Service) changed(c *call, name string, err error) (*api.Service, error) {
	if err != nil {
		return nil, err
	}
	st, err := s.cfg.Controller.Get(c.Ctx(), name)
	if err != nil {
		return nil, err
	}
	return s.shown(&st), nil
}

func (s *Service) scaleService(c *call, name string) (*api.Service, error) {
	st, err := s.find(c, name, auth.SetService)
	if err != nil {
		return nil, err
	}
	req, err := transport.DecodeBody[api.ServiceScale](c)
	if err != nil {
		return nil, err
	}
	return s.changed(c, st.Name, s.cfg.Controller.Scale(c.Ctx(), c.ID.Actor(), st.Name, req.Replicas))
}

func (s *Service) changeRollout(c *call, name string) (*api.Service, error) {
	st, err := s.find(c, name, auth.SetService)
	if err != nil {
		return nil, err
	}
	req, err := transport.DecodeBody[api.ServiceRollout](c)
	if err != nil {
		return nil, err
	}
	if req.To != 0 && req.Action != "undo" {
		return nil, fault.New(fault.Invalid, "to is for undo, and the action is %.40q", req.Action).Advise("leave it out")
	}
	by := c.ID.Actor()
	switch req.Action {
	case "pause":
		err = s.cfg.Controller.Pause(c.Ctx(), by, st.Name)
	case "resume":
		err = s.cfg.Controller.Resume(c.Ctx(), by, st.Name)
	case "undo":
		_, err = s.cfg.Controller.Undo(c.Ctx(), by, st.Name, req.To)
		err = s.hideOwner(c.ID, err)
	default:
		err = fault.New(fault.Invalid, "action: %.40q is none of pause, resume, undo", req.Action)
	}
	return s.changed(c, st.Name, err)
}

func (s *Service) stopService(c *call, name string) (*api.Service, error) {
	st, err := s.find(c, name, auth.SetService)
	if err != nil {
		return nil, err
	}
	if err := s.cfg.Controller.Stop(c.Ctx(), c.ID.Actor(), st.Name); err != nil {
		return nil, err
	}
	st.Stopping = true
	if now, err := s.cfg.Controller.Get(c.Ctx(), st.Name); err == nil {
		st = now
	}
	return s.shown(&st), nil
}

// Submit makes a service of a specification that was admitted, or gives it its next revision. A service
// of somebody else is fault.Permission.
func (s *Service) Submit(ctx context.Context, id auth.Identity, spec *service.Spec) (*api.SubmittedService, error) {
	name := service.FullName(spec.Account, spec.Name)
	old, err := s.cfg.Controller.Get(ctx, name)
	fresh := fault.KindOf(err) == fault.NotFound
	switch {
	case err != nil && !fresh:
		return nil, err
	case !fresh && old.Stopping:
		return nil, fault.New(fault.Conflict, "service %s is stopping", name).Advise("wait until cox service list does not show it any more")
	}
	did, err := s.cfg.Controller.Submit(ctx, id.Actor(), *spec, func(owner job.Owner) error {
		return s.cfg.Policy.Allowed(id, auth.SetService, auth.Object{Name: "service " + name, Owned: true, UID: owner.UID})
	})
	if err != nil {
		return nil, s.hideOwner(id, err)
	}
	out := &api.SubmittedService{Name: name, Revision: did.Revision, Created: fresh, Changed: did.New || did.Changed}
	if st, err := s.cfg.Controller.Get(ctx, name); err == nil {
		out.URL = s.url(&st)
	}
	return out, nil
}

// hideOwner leaves the names of another user's service out of an error if the caller may not see it.
func (s *Service) hideOwner(id auth.Identity, err error) error {
	var taken *controller.HostTaken
	if !errors.As(err, &taken) || !s.cfg.Policy.Private || id.Admin {
		return err
	}
	hidden := fault.New(fault.Conflict, "route: another user has the host %s", taken.Host).Advise("give this service another host (route: {host: …})")
	return engine.About(hidden, "route.host", "name")
}

func (s *Service) url(st *controller.Status) string {
	if s.cfg.URL == nil {
		return ""
	}
	return s.cfg.URL(st.Route)
}

// shown is a service as the API has it.
func (s *Service) shown(st *controller.Status) *api.Service {
	out := &api.Service{
		Name: st.Name, Owner: st.Owner.User, Revision: st.Revision, URL: s.url(st), Host: st.Route.Host, Path: st.Route.Path,
		State:    stateOf(st),
		Replicas: api.ServiceCounts{Want: st.Want, Ready: st.Ready, Min: st.Spec.Replicas.Min, Max: st.Spec.Replicas.Max},
		Load:     shownLoad(&st.Load),
		Parts:    []api.Replica{},
	}
	if r := st.Rollout; r != nil && r.Phase != service.Done {
		out.Rollout = &api.Rollout{From: r.From, To: r.To, Phase: string(r.Phase), Since: r.Since, Why: r.Why}
		if list := st.Spec.Update.Canary; r.Phase == service.Rolling && r.Step < len(list) {
			out.Rollout.Step = fmt.Sprintf("%d%%", list[r.Step])
		}
	}
	for _, r := range st.Reasons {
		out.Reasons = append(out.Reasons, r.Text)
	}
	for i := range st.Replicas {
		r := &st.Replicas[i]
		state := r.State
		if state == "" {
			state = "not submitted yet"
			if r.Try > 0 {
				state = "waits to begin anew"
			}
		}
		out.Parts = append(out.Parts, api.Replica{
			Index: r.Index, Revision: r.Revision, Try: r.Try, Job: r.Job, State: state, Ready: r.Ready, Node: r.Node, Address: r.Address, Why: r.Why,
		})
	}
	for i := range slices.Backward(st.Revisions) {
		r := &st.Revisions[i]
		out.Revisions = append(out.Revisions, api.Revision{Number: r.Number, At: r.At, By: r.By, Note: r.Note})
	}
	if len(st.Revisions) > 0 {
		out.Since = st.Revisions[0].At
	}
	return out
}

// shownLoad is what gateways saw; nil: none answers, so that nothing is known.
func shownLoad(l *endpoints.Load) *api.Load {
	if !l.Known {
		return nil
	}
	out := &api.Load{InFlight: l.InFlight, Rate: l.Rate, Held: l.Held, Failed: l.FailedRate}
	if q := l.Latency; q != nil {
		out.Latency = &api.Latency{P50: q.P50.Seconds(), P95: q.P95.Seconds(), P99: q.P99.Seconds(), Answered: q.Answered}
	}
	return out
}

// stateOf is the state of a service in one word.
func stateOf(st *controller.Status) string {
	r := st.Rollout
	switch {
	case st.Stopping:
		return "stopping"
	case r != nil && r.Phase == service.Paused:
		return "paused"
	case r != nil && r.Phase == service.Halted && st.Ready == 0 && st.Want > 0:
		return "failed" // no revision serves
	case r != nil && r.Phase == service.Halted && r.From != 0:
		return "halted"
	case !r.Over() && r.From != 0:
		return "updating"
	case st.Asleep:
		return "asleep"
	case st.Ready >= st.Want:
		return "ready"
	case r != nil && r.Phase == service.Halted:
		return "degraded" // of the first revision some replicas do not get ready
	case !r.Over() || st.Ready == 0 && len(st.Revisions) == 1:
		return "starting"
	}
	return "degraded"
}
