package server

import (
	"context"
	"errors"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// fakeHub tells the routes that the test sends and remembers the load.
type fakeHub struct {
	routes chan api.GatewayRoutes
	loads  chan api.GatewayLoad
}

func (h *fakeHub) WatchRoutes(ctx context.Context, f func(api.GatewayRoutes) error) error {
	for {
		select {
		case r := <-h.routes:
			if err := f(r); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *fakeHub) PutLoad(l api.GatewayLoad) { h.loads <- l }

// TestGatewayRoutes: a gateway reads routes as they come and posts its load; only administrators may.
func TestGatewayRoutes(t *testing.T) {
	hub := &fakeHub{routes: make(chan api.GatewayRoutes), loads: make(chan api.GatewayLoad, 1)}
	p := servertest.NewPlane()
	log := &servertest.Log{}
	s := New(Config{Plane: p, Log: log.Logger(), Gateways: hub})
	r := servertest.Listen(t, p, log, s.Server, s.Serve)
	c := r.Admin(t)
	errEnough := errors.New("enough")
	var got []api.GatewayRoutes
	ended := make(chan error, 1)
	go func() {
		ended <- c.WatchRoutes(t.Context(), func(r api.GatewayRoutes) error {
			if got = append(got, r); len(got) == 2 {
				return errEnough
			}
			return nil
		})
	}()
	hub.routes <- api.GatewayRoutes{Version: 5, Reset: true, Services: []api.ServiceRoute{{Service: "team/chat", Host: "chat.localhost"}}}
	hub.routes <- api.GatewayRoutes{Version: 6, Gone: []string{"team/chat"}}
	if err := <-ended; !errors.Is(err, errEnough) || !got[0].Reset || got[0].Services[0].Host != "chat.localhost" || got[1].Version != 6 || got[1].Gone[0] != "team/chat" {
		t.Fatalf("%v, %+v", err, got)
	}
	if err := c.PutLoad(t.Context(), api.GatewayLoad{Gateway: "g", Routes: 6, Services: []api.ServiceLoad{{Service: "team/chat", Requests: 7}}}); err != nil {
		t.Fatal(err)
	}
	if l := <-hub.loads; l.Gateway != "g" || l.Routes != 6 || l.Services[0].Requests != 7 {
		t.Fatalf("the load is %+v", l)
	}
	if err := c.PutLoad(t.Context(), api.GatewayLoad{}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a load without a name: %v", err)
	}
	anna, err := client.New(client.Options{URL: r.URL, Token: r.Token(t, "anna", func(*state.Token) {})})
	if err != nil {
		t.Fatal(err)
	}
	defer anna.Close()
	if err := anna.PutLoad(t.Context(), api.GatewayLoad{Gateway: "g"}); fault.KindOf(err) != fault.Permission {
		t.Errorf("a user's load: %v", err)
	}
	made, err := c.NewToken(t.Context(), &api.NewToken{Role: "gateway"})
	if err != nil {
		t.Fatal(err)
	}
	role, err := client.New(client.Options{URL: r.URL, Token: made.Secret})
	if err != nil {
		t.Fatal(err)
	}
	defer role.Close()
	if err := role.PutLoad(t.Context(), api.GatewayLoad{Gateway: "g"}); err != nil {
		t.Errorf("a token with the role: %v", err)
	}
	<-hub.loads
	if err := role.Watch(t.Context(), client.WatchOptions{}, func(api.Event) error { return nil }); fault.KindOf(err) != fault.Permission {
		t.Errorf("a gateway watches jobs: %v", err)
	}
	if _, err := role.Tokens(t.Context()); fault.KindOf(err) != fault.Permission {
		t.Errorf("a gateway lists tokens: %v", err)
	}
	for _, n := range []api.NewToken{{Role: "other"}, {Role: "gateway", Admin: true}} {
		if _, err := c.NewToken(t.Context(), &n); fault.KindOf(err) != fault.Invalid {
			t.Errorf("a token %+v: %v", n, err)
		}
	}
	if _, err := anna.NewToken(t.Context(), &api.NewToken{Role: "gateway"}); fault.KindOf(err) != fault.Permission {
		t.Errorf("a user makes a gateway's token: %v", err)
	}
	go func() { ended <- c.WatchRoutes(t.Context(), func(api.GatewayRoutes) error { return nil }) }()
	hub.routes <- api.GatewayRoutes{Version: 7, Reset: true}
	r.Stop()
	if err := <-ended; fault.KindOf(err) != fault.Unavailable {
		t.Errorf("when the server ends: %v", err)
	}
}
