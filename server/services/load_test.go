package services_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/services"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/service/endpoints"
)

// TestLoadOfAService: what gateways saw is shown as it is, and is left out where none reports.
//
// Seen to fail with: zeros where no gateway reports.
func TestLoadOfAService(t *testing.T) {
	o := &oneService{}
	p, log := servertest.NewPlane(), &servertest.Log{}
	s := transport.New(transport.Config{Tokens: p, Users: &user.Users{Lookup: servertest.Lookup}, Log: log.Logger(), Now: time.Now, Stall: 10 * time.Second, Patience: 10 * time.Second})
	services.Register(s, services.Config{Controller: o})
	admin := servertest.Listen(t, p, log, s, s.Serve).Admin(t)
	for _, c := range []struct {
		load    endpoints.Load
		known   bool
		latency *api.Latency
	}{
		{endpoints.Load{}, false, nil},
		{endpoints.Load{Known: true, Rate: 2, FailedRate: .5, InFlight: 3, Held: 1}, true, nil},
		{
			endpoints.Load{Known: true, Rate: 2, FailedRate: .5, InFlight: 3, Held: 1, Latency: &endpoints.Latency{P50: time.Millisecond, P95: time.Second, P99: time.Minute, Answered: 120}},
			true, &api.Latency{P50: .001, P95: 1, P99: 60, Answered: 120},
		},
	} {
		o.load = c.load
		one, err := admin.Service(t.Context(), "chat")
		if err != nil {
			t.Fatal(err)
		}
		list, err := admin.Services(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []*api.Load{one.Load, list.Services[0].Load} {
			switch {
			case !c.known:
				if got != nil {
					t.Errorf("no gateway reports, and the load is %+v", got)
				}
			case got == nil || got.Rate != 2 || got.Failed != .5 || got.InFlight != 3 || got.Held != 1:
				t.Errorf("%+v: %+v", c.load, got)
			case (got.Latency == nil) != (c.latency == nil) || c.latency != nil && *got.Latency != *c.latency:
				t.Errorf("latency %+v, want %+v", got.Latency, c.latency)
			}
		}
	}
}
