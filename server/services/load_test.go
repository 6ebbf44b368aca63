package services_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/services"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/service/controller"
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

// TestListOfServices: a list is filtered, sorted, paged and counted, and what the caller may not see is in no number.
//
// Seen to fail with: the filter of private services after the page.
func TestListOfServices(t *testing.T) {
	o := &manyServices{}
	for i, name := range []string{"club/chat", "club/embed", "town/chat", "town/rank"} {
		st := o.status()
		st.Name, st.Account, st.Ready = name, strings.Split(name, "/")[0], 2
		st.Load = endpoints.Load{Known: i > 0, Rate: float64(10 - i)}
		o.all = append(o.all, st)
	}
	o.all[2].Ready, o.all[3].Owner = 0, job.Owner{User: "anna", UID: 2001}
	p, log, policy := servertest.NewPlane(), &servertest.Log{}, auth.Policy{Private: true}
	s := transport.New(transport.Config{Tokens: p, Policy: policy, Users: &user.Users{Lookup: servertest.Lookup}, Log: log.Logger(), Now: time.Now, Stall: 10 * time.Second, Patience: 10 * time.Second})
	services.Register(s, services.Config{Controller: o, Policy: policy})
	r := servertest.Listen(t, p, log, s, s.Serve)
	root, plain := r.Token(t, "root", func(tok *state.Token) { tok.Admin = true }), r.Token(t, "anna", nil)
	for _, c := range []struct{ token, query, names, total string }{
		{root, "", "club/chat club/embed town/chat town/rank", "4"},
		{root, "?sort=-requests_per_second&limit=3", "club/embed town/chat town/rank", "4"},
		{root, "?match=CHAT&sort=-name", "town/chat club/chat", "2"},
		{root, "?users=owner&accounts=town", "town/chat", "1"},
		{root, "?states=ready", "club/chat club/embed town/rank", "3"},
		{plain, "", "town/rank", "1"},
	} {
		resp, text := r.Ask(t, "GET", "/v1/services"+c.query, c.token, "")
		var got api.Services
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err, text)
		}
		var names []string
		for i := range got.Services {
			names = append(names, got.Services[i].Name)
		}
		if strings.Join(names, " ") != c.names || resp.Header.Get(api.TotalHeader) != c.total || strconv.Itoa(got.Total) != c.total || (got.Next == "") != (len(names) == got.Total) {
			t.Errorf("%q: %d %s, %v", c.query, resp.StatusCode, text, resp.Header)
		}
	}
	if resp, text := r.Ask(t, "GET", "/v1/services?sort=price", root, ""); resp.StatusCode != 400 && resp.StatusCode != 422 || !strings.Contains(text, "services are not sorted by") || !strings.Contains(text, "failed_per_second") {
		t.Errorf("sort=price: %d %s", resp.StatusCode, text)
	}
}

// manyServices is a controller with several services.
type manyServices struct {
	oneService
	all []controller.Status
}

func (m *manyServices) List(context.Context) ([]controller.Status, error) { return m.all, nil }
