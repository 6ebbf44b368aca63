package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/gateway"
)

func TestWeightsAreExact(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	old, canary := replica(t, "1.1", 1), replica(t, "2.1", 2)
	r := chat(old, replica(t, "3.1", 1), canary)
	r.Weights = map[uint32]int{1: 90, 2: 10}
	w.routes(r)
	count := map[string]int{}
	for range 100 {
		_, text, _ := w.get("http://chat.localhost/")
		count[text]++
	}
	if count["2.1"] != 10 || count["1.1"] != 45 || count["3.1"] != 45 {
		t.Errorf("of 100 requests: %v", count)
	}
	canary.Ready = false // its share falls to the others
	r.Backends = []api.Backend{old, canary}
	w.routes(r)
	for range 20 {
		if _, text, _ := w.get("http://chat.localhost/"); text != "1.1" {
			t.Fatalf("%q answers", text)
		}
	}
}

func TestFewestOutstanding(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	slow := handled(t, "1.1", func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-release
		fmt.Fprint(w, "1.1")
	})
	w.routes(chat(slow))
	go func() { _, _, _ = w.send(http.MethodGet, "http://chat.localhost/", "") }()
	<-arrived
	w.routes(chat(slow, replica(t, "2.1", 1)))
	for range 10 {
		if _, text, _ := w.get("http://chat.localhost/"); text != "2.1" {
			t.Fatalf("%q answers, which has a request in flight", text)
		}
	}
	close(release)
}

func TestSticky(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	backends := []api.Backend{replica(t, "1.1", 1), replica(t, "2.1", 1), replica(t, "3.1", 1)}
	r := chat(backends...)
	r.Sticky = true
	w.routes(r)
	_, first, h := w.get("http://chat.localhost/")
	cookie, _, _ := strings.Cut(h.Get("Set-Cookie"), ";")
	if !strings.Contains(h.Get("Set-Cookie"), "HttpOnly") || strings.Contains(cookie, first) {
		t.Fatalf("the cookie is %q", h.Get("Set-Cookie"))
	}
	for range 10 {
		_, text, h := w.get("http://chat.localhost/", "Cookie", cookie)
		if text != first || h.Get("Set-Cookie") != "" {
			t.Fatalf("with the cookie of %s: %s, %q", first, text, h.Get("Set-Cookie"))
		}
	}
	for i := range backends {
		if backends[i].ID == first {
			backends[i] = deadBackend(t, first, 1) // at another address, as after a requeue
		}
	}
	r.Backends = backends
	w.routes(r)
	status, second, h := w.get("http://chat.localhost/", "Cookie", cookie)
	if status != 200 || second == first || h.Get("Set-Cookie") == "" {
		t.Fatalf("after the replica has gone: %d from %s, %q", status, second, h.Get("Set-Cookie"))
	}
}
