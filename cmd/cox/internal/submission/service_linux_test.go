package submission

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// serviceServer is a server whose service is shown as a list of steps says, the last one again and again:
// "starts", "away", "ready", "gone".
func serviceServer(t *testing.T, stopAway int, steps ...string) *clitest.Server {
	t.Helper()
	f := clitest.NewServer(t, clitest.Root(Commands))
	var mu sync.Mutex
	away := fault.New(fault.Unavailable, "the server ends")
	f.Answer("POST /v1/jobs", func(*http.Request) (any, error) {
		return api.Submitted{Service: &api.SubmittedService{Name: "chat", Revision: 1, Created: true}}, nil
	})
	f.Answer("GET /v1/services/chat", func(*http.Request) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		step := steps[0]
		if len(steps) > 1 {
			steps = steps[1:]
		}
		s := api.Service{Name: "chat", Revision: 1, Host: "chat.localhost", Replicas: api.ServiceCounts{Want: 1}, Rollout: &api.Rollout{To: 1, Phase: "rolling"}}
		switch step {
		case "away":
			return nil, away
		case "gone":
			return nil, fault.New(fault.NotFound, "there is no service chat")
		case "ready":
			s.Replicas.Ready, s.Rollout = 1, nil
		}
		return s, nil
	})
	f.Answer("DELETE /v1/services/chat", func(*http.Request) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		if stopAway--; stopAway >= 0 {
			return nil, away
		}
		steps = []string{"gone"}
		return api.Service{Name: "chat", State: "stopping"}, nil
	})
	return f
}

// TestWaitForServiceOverAnOutage: cox submit --wait goes on over a restart of the server, which it says
// once.
//
// Seen to fail with: endure that returns every error.
func TestWaitForServiceOverAnOutage(t *testing.T) {
	name := filepath.Join(t.TempDir(), "chat.yaml")
	if err := os.WriteFile(name, []byte("kind: service\nname: chat\nports: [http]\ncommand: serve\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := serviceServer(t, 0, "starts", "away", "away", "ready")
	got := f.Cox(t, "submit", "--wait", name)
	if got.Code != 0 || got.Err != "… the server ends; trying again for 1 min\nservice chat: 1 of 1 replica ready\n" {
		t.Errorf("code %d, said %q", got.Code, got.Err)
	}
}

// TestRunServiceOverAnOutage: cox run follows its service over a restart of the server, and ends it over
// another one.
//
// Seen to fail with: follow and end that ask the server directly.
func TestRunServiceOverAnOutage(t *testing.T) {
	f := serviceServer(t, 2, "starts", "away", "away", "away", "ready")
	c, err := client.New(client.Options{URL: f.URL})
	if err != nil {
		t.Fatal(err)
	}
	a, said := cli.New(), &noteWriter{wanted: "ready    chat.localhost: 1 replica", seen: make(chan struct{})}
	a.Err, a.Out = said, said
	signals := make(chan os.Signal, 1)
	r := &serviceRun{app: a, client: c, name: "chat", started: time.Now(), signals: signals}
	go func() {
		<-said.seen
		signals <- syscall.SIGINT
	}()
	code, err := r.follow(t.Context())
	if code != 0 || err != nil {
		t.Fatalf("code %d, %v\n%s", code, err, said.text())
	}
	if text := said.text(); strings.Count(text, "trying again") != 2 || !strings.Contains(text, "\nended    after") {
		t.Errorf("said %q", text)
	}
}

// noteWriter closes seen when a text was written.
type noteWriter struct {
	mu     sync.Mutex
	all    bytes.Buffer
	wanted string
	seen   chan struct{}
	once   sync.Once
}

func (w *noteWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(p)
	if strings.Contains(w.all.String(), w.wanted) {
		w.once.Do(func() { close(w.seen) })
	}
	return len(p), nil
}

func (w *noteWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}
