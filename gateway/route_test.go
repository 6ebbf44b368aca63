package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/gateway"
)

func TestHostsAndPaths(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	w.routes(
		api.ServiceRoute{Service: "root", Host: "chat.localhost", Backends: []api.Backend{replica(t, "root", 1)}},
		api.ServiceRoute{Service: "v1", Host: "chat.localhost", Path: "/v1", Backends: []api.Backend{replica(t, "v1", 1)}},
		api.ServiceRoute{Service: "models", Host: "chat.localhost", Path: "/v1/models/", Backends: []api.Backend{replica(t, "models", 1)}},
		api.ServiceRoute{Service: "other", Host: "other.example.org", Path: "/only", Backends: []api.Backend{replica(t, "other", 1)}},
	)
	for _, c := range []struct{ url, want string }{
		{"http://chat.localhost/", "root"},
		{"http://CHAT.localhost:8080/v1x", "root"},
		{"http://chat.localhost./v1", "v1"},
		{"http://chat.localhost/v1/chat", "v1"},
		{"http://chat.localhost/v1/models", "models"},
		{"http://chat.localhost/v1/models/7?x=1", "models"},
		{"http://other.example.org/only/this", "other"},
	} {
		if status, text, _ := w.get(c.url); status != 200 || text != c.want {
			t.Errorf("%s: %d from %q, want %q", c.url, status, text, c.want)
		}
	}
	status, text, _ := w.get("http://chatt.localhost/")
	if status != 404 || !strings.Contains(text, "no service has the host chatt.localhost; the nearest is chat.localhost") {
		t.Errorf("an unknown host: %d %s", status, text)
	}
	status, text, h := w.get("http://other.example.org/", "Accept", "application/json")
	var p api.Error
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != 404 || p.Status != 404 || p.Title != "not found" ||
		!strings.Contains(p.Detail, "the nearest is /only") || h.Get("Content-Type") != "application/problem+json" {
		t.Errorf("an unknown path: %d %s %v", status, text, err)
	}
}

func TestChangesOfRoutes(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	one := replica(t, "1.1", 1)
	w.routes(chat(one), api.ServiceRoute{Service: "x", Host: "x.localhost", Backends: []api.Backend{replica(t, "x", 1)}})
	w.tell(api.GatewayRoutes{Services: []api.ServiceRoute{chat(replica(t, "2.1", 2))}})
	if _, text, _ := w.get("http://chat.localhost/"); text != "2.1" {
		t.Errorf("after a change %q answers", text)
	}
	if _, text, _ := w.get("http://x.localhost/"); text != "x" {
		t.Errorf("a service that did not change: %q", text)
	}
	w.tell(api.GatewayRoutes{Gone: []string{"x"}})
	if status, _, _ := w.get("http://x.localhost/"); status != 404 {
		t.Errorf("a service that has gone: %d", status)
	}
	w.routes()
	if status, _, _ := w.get("http://chat.localhost/"); status != 404 {
		t.Errorf("after a whole line without it: %d", status)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	got := make(chan string, 10)
	b := handled(t, "1.1", func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") })
	r := chat(b)
	r.Tokens = []string{hashOf("first"), hashOf("second")}
	w.routes(r)
	for _, c := range []struct {
		header []string
		status int
		text   string
	}{
		{nil, 401, "this service wants a token, and the request has none"},
		{[]string{"Authorization", "Basic first"}, 401, "has none"},
		{[]string{"Authorization", "Bearer third"}, 401, "is not one of this service"},
		{[]string{"Authorization", "Bearer " + hashOf("first")}, 401, "is not one of this service"},
		{[]string{"Authorization", "Bearer second"}, 200, ""},
	} {
		status, text, h := w.get("http://chat.localhost/", c.header...)
		if status != c.status || !strings.Contains(text, c.text) || status == 401 && h.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%v: %d %s", c.header, status, text)
		}
	}
	if a := <-got; a != "" {
		t.Errorf("the replica got the token %q", a)
	}
	if len(got) > 0 {
		t.Error("the replica got a request without a token")
	}
}

func TestRateOfAService(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	r := chat(replica(t, "1.1", 1))
	r.Rate = 3
	w.routes(r)
	fine, refused := 0, 0
	for range 20 {
		status, text, h := w.get("http://chat.localhost/")
		switch status {
		case 200:
			fine++
		case 429:
			refused++
			if h.Get("Retry-After") != "1" || !strings.Contains(text, "3 requests a second at most") {
				t.Errorf("%s with Retry-After %q", text, h.Get("Retry-After"))
			}
		}
	}
	if fine < 3 || refused == 0 || fine+refused != 20 {
		t.Errorf("%d answered, %d refused", fine, refused)
	}
	r.Sticky = true // another setting begins no new count
	w.routes(r)
	if l := w.source.waitLoad(t, "requests", func(l api.GatewayLoad) bool { return len(l.Services) > 0 }); l.Services[0].Requests != uint64(fine) {
		t.Errorf("%d requests are counted, of which %d were taken", l.Services[0].Requests, fine)
	}
}

func TestKeptRoutesAreReadableByTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := startGateway(t, gateway.Config{StateDir: dir})
	b := replica(t, "1.1", 1)
	r := chat(b)
	r.Tokens = []string{hashOf("t")}
	w.routes(r)
	w.source.die()
	if status, text, _ := w.get("http://chat.localhost/", "Authorization", "Bearer t"); status != 200 || text != "1.1" {
		t.Fatalf("without the server: %d %s", status, text)
	}
	w.stop()
	checkMode(t, dir+"/routes.json", 0o600)

	again := startGateway(t, gateway.Config{StateDir: dir, Source: func() gateway.Source { s := newSource(); s.die(); return s }()})
	if status, text, _ := again.get("http://chat.localhost/", "Authorization", "Bearer t"); status != 200 || text != "1.1" {
		t.Fatalf("after a restart without the server: %d %s", status, text)
	}
	if status, _, _ := again.get("http://chat.localhost/"); status != 401 {
		t.Fatalf("after a restart without a token: %d", status)
	}
}

func TestLoadIsPosted(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	arrived, release := make(chan struct{}), make(chan struct{})
	b := handled(t, "7.2", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.WriteHeader(500)
			return
		}
		arrived <- struct{}{}
		<-release
	})
	w.routes(chat(b))
	go func() { _, _, _ = w.send(http.MethodGet, "http://chat.localhost/", "") }()
	<-arrived
	l := w.source.waitLoad(t, "a request in flight", func(l api.GatewayLoad) bool {
		return len(l.Services) == 1 && l.Services[0].InFlight["7.2"] == 1
	})
	if l.Services[0].Requests != 1 || l.Services[0].Service != "team/chat" || l.Gateway == "" {
		t.Errorf("the load is %+v", l)
	}
	not := b
	not.Ready = false
	w.tell(api.GatewayRoutes{Services: []api.ServiceRoute{chat(not)}})
	before := time.Now()
	close(release)
	l = w.source.waitLoad(t, "the end of the request", func(l api.GatewayLoad) bool { return l.Services[0].InFlight["7.2"] == 0 })
	if l.Routes != 2 {
		t.Errorf("the load is of routes %d", l.Routes)
	}
	if took := time.Since(before); took > 900*time.Millisecond {
		t.Logf("the end of a drain was posted after %s", took)
	}
	w.tell(api.GatewayRoutes{Services: []api.ServiceRoute{chat(b)}})
	if status, _, _ := w.get("http://chat.localhost/broken"); status != 500 {
		t.Errorf("a replica's own error: %d", status)
	}
	w.source.waitLoad(t, "a failed request", func(l api.GatewayLoad) bool { return l.Services[0].Failed == 1 && l.Services[0].Requests == 2 })
	w.stop()
	w.source.waitLoad(t, "the last word", func(l api.GatewayLoad) bool { return l.Leaving })
}

// TestHealth: a gateway is ready with its first routes, and says so to probes alone; before them it has
// no word of which services there are.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	const probe = "http://health.cox-gateway.internal/"
	if status, _, _ := w.get(probe); status != 503 {
		t.Errorf("before the first routes: %d", status)
	}
	if status, text, h := w.get("http://chat.localhost/"); status != 503 || h.Get("Retry-After") == "" || !strings.Contains(text, "has just started") {
		t.Errorf("before the first routes: %d %s", status, text)
	}
	everything := chat(replica(t, "1.1", 1))
	everything.Host = ""
	w.routes(everything)
	if status, text, _ := w.get(probe); status != 200 || text != "ready\n" {
		t.Errorf("%d %s", status, text)
	}
	w.source.die()
	if status, _, _ := w.get(probe); status != 200 {
		t.Errorf("without the server: %d", status)
	}
}
