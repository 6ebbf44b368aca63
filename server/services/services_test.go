package services_test

import (
	"context"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/services"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/service/controller"
	"github.com/coxswain-sched/coxswain/service/decide"
	"github.com/coxswain-sched/coxswain/service/endpoints"
)

// oneService is a controller with the service chat of uid 4001; it counts what is done to it.
type oneService struct {
	changes int
	rollout *service.Rollout
	ready   int
	load    endpoints.Load
}

func (o *oneService) status() controller.Status {
	return controller.Status{Name: "chat", Owner: job.Owner{User: "owner", UID: 4001}, Spec: &service.Spec{}, Want: 2, Ready: o.ready, Rollout: o.rollout, Load: o.load}
}

func (o *oneService) Submit(_ context.Context, _ job.Actor, _ service.Spec, allowed func(job.Owner) error) (decide.Submitted, error) {
	if err := allowed(o.status().Owner); err != nil {
		return decide.Submitted{}, err
	}
	o.changes++
	return decide.Submitted{}, nil
}

func (o *oneService) List(context.Context) ([]controller.Status, error) {
	return []controller.Status{o.status()}, nil
}

func (o *oneService) Get(context.Context, string) (controller.Status, error) { return o.status(), nil }

func (o *oneService) change() error { o.changes++; return nil }

func (o *oneService) Scale(context.Context, job.Actor, string, int) error { return o.change() }
func (o *oneService) Pause(context.Context, job.Actor, string) error      { return o.change() }
func (o *oneService) Resume(context.Context, job.Actor, string) error     { return o.change() }
func (o *oneService) Stop(context.Context, job.Actor, string) error       { return o.change() }
func (o *oneService) Undo(context.Context, job.Actor, string, uint32) (decide.Submitted, error) {
	return decide.Submitted{}, o.change()
}

// TestServiceOfAnotherUser: a plain user changes nothing of another user's service, and does not know
// of it on a private server. An administrator may.
func TestServiceOfAnotherUser(t *testing.T) {
	for _, private := range []bool{false, true} {
		o := &oneService{}
		p, log, policy := servertest.NewPlane(), &servertest.Log{}, auth.Policy{Private: private}
		s := transport.New(transport.Config{Tokens: p, Policy: policy, Users: &user.Users{Lookup: servertest.Lookup}, Log: log.Logger(), Now: time.Now, Stall: 10 * time.Second, Patience: 10 * time.Second})
		routes := services.Register(s, services.Config{Controller: o, Policy: policy})
		r := servertest.Listen(t, p, log, s, s.Serve)
		plain, admin := r.Token(t, "anna", nil), r.Admin(t)
		want := 403
		if private {
			want = 404
		}
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/v1/services/chat/scale", `{"replicas":3}`},
			{"POST", "/v1/services/chat/rollout", `{"action":"undo"}`},
			{"DELETE", "/v1/services/chat", ""},
		} {
			if resp, text := r.Ask(t, c.method, c.path, plain, c.body, "Content-Type", "application/json"); resp.StatusCode != want {
				t.Errorf("private %t: %s %s: %d %s", private, c.method, c.path, resp.StatusCode, text)
			}
		}
		if _, err := routes.Submit(t.Context(), auth.Identity{Name: "anna", UID: 2001, Via: "token"}, &service.Spec{Name: "chat"}); fault.KindOf(err) != fault.Permission {
			t.Errorf("submit: %v", err)
		}
		if o.changes != 0 {
			t.Errorf("a plain user made %d changes", o.changes)
		}
		if _, err := admin.ScaleService(t.Context(), "chat", 3); err != nil {
			t.Error(err)
		}
		if _, err := admin.StopService(t.Context(), "chat"); err != nil {
			t.Error(err)
		}
		if _, err := routes.Submit(t.Context(), auth.Identity{Name: "root", Admin: true, Via: "socket"}, &service.Spec{Name: "chat"}); err != nil || o.changes != 3 {
			t.Errorf("an administrator: %v, %d changes", err, o.changes)
		}
	}
}

// TestStateOfAFailedRollout: failed says that nothing serves; halted that the old revision does.
//
// Seen to fail with: halted for each.
func TestStateOfAFailedRollout(t *testing.T) {
	o := &oneService{}
	p, log := servertest.NewPlane(), &servertest.Log{}
	s := transport.New(transport.Config{Tokens: p, Users: &user.Users{Lookup: servertest.Lookup}, Log: log.Logger(), Now: time.Now, Stall: 10 * time.Second, Patience: 10 * time.Second})
	services.Register(s, services.Config{Controller: o})
	admin := servertest.Listen(t, p, log, s, s.Serve).Admin(t)
	for want, c := range map[string]struct {
		from  uint32
		ready int
	}{"failed": {0, 0}, "degraded": {0, 1}, "halted": {1, 1}} {
		o.rollout, o.ready = &service.Rollout{From: c.from, To: 2, Phase: service.Halted}, c.ready
		if got, err := admin.Service(t.Context(), "chat"); err != nil || got.State != want {
			t.Errorf("from %d with %d ready: %s, %v; want %s", c.from, c.ready, got.State, err, want)
		}
	}
}
