package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// site is a server on a real control plane, over a store and an engine that outlive
// both.
type site struct {
	t      testing.TB
	store  store.Store
	world  *fake.World
	socket string
	stop   func()
}

func newSite(t testing.TB, st store.Store) *site {
	t.Helper()
	var nodes []fleet.Node
	for i := range 2 {
		nodes = append(nodes, fleet.Node{
			Name: fmt.Sprintf("v%d", i+1), Pool: "local", State: fleet.Up,
			Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 32 * resource.GiB},
		})
	}
	s := &site{t: t, store: st, world: fake.NewWorld(fake.Config{Now: time.Now, Nodes: nodes}), socket: filepath.Join(t.TempDir(), "cox.sock")}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *site) start() {
	s.t.Helper()
	e := s.world.Open()
	c, err := control.Open(context.Background(), control.Config{Store: s.store, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "local", Engine: "fake"}, Engine: e}}, Who: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	srv := New(Config{Plane: c, Name: "lab", Users: &user.Users{Lookup: servertest.Lookup}, Policy: auth.Policy{}})
	l, err := transport.ListenSocket(s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, l) }()
	ticks := make(chan struct{})
	go func() { // the engine's time
		defer close(ticks)
		s.world.Run(ctx)
	}()
	s.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
		<-ticks
		if err := c.Close(); err != nil {
			s.t.Error(err)
		}
		e.Close()
	}
}

func (s *site) client() *client.Client {
	s.t.Helper()
	c, err := client.New(client.Options{Socket: s.socket})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// TestWithARealControlPlane runs jobs over the API, restarts everything on the same
// store, and lets a watcher that was there before see all events once.
func TestWithARealControlPlane(t *testing.T) {
	s := newSite(t, &store.Memory{})
	ctx, c := t.Context(), s.client()
	for range 20 {
		if _, err := c.Submit(ctx, servertest.Request()); err != nil {
			t.Fatal(err)
		}
	}
	j, err := c.Wait(ctx, "20")
	if err != nil || j.State != "COMPLETED" || len(j.Claims) != 2 {
		t.Fatalf("%+v, %v", j, err)
	}
	seen := make(chan uint64, 10000)
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		last := uint64(0)
		_ = c.Watch(watch, client.WatchOptions{}, func(e api.Event) error {
			if e.Kind == api.KindGap || e.Seq <= last {
				t.Errorf("event %d (%s) after %d", e.Seq, e.Kind, last)
			}
			last = e.Seq
			seen <- e.Seq
			return nil
		})
	}()
	<-seen
	s.stop()
	s.start()
	c = s.client()
	held := servertest.Request()
	held.Args = []string{"--hold", "--array=1-5%2"}
	got, err := c.Submit(ctx, held)
	if err != nil || got.ID != 21 || got.Tasks != 5 {
		t.Fatalf("%+v, %v", got, err)
	}
	if b, err := c.Script(ctx, "1"); err != nil || string(b) != servertest.Script {
		t.Errorf("script after the restart: %q, %v", b, err)
	}
	w, err := c.Why(ctx, "21_2")
	if err != nil || len(w.Reasons) == 0 || w.Reasons[0].Code != "held-user" {
		t.Errorf("%+v, %v", w, err)
	}
	body, err := c.JobsTSV(ctx, client.Query{Collapse: true}, "name", "state", "reason", "user")
	if rows := servertest.ReadText(t, body, err); rows != "21_[1-5%2]\tPENDING\theld-user\t"+j.Spec.Owner.User+"\n" {
		t.Errorf("%q", rows)
	}
	ch, err := c.Change(ctx, &api.Change{Select: api.Select{IDs: []string{"21"}}, Verb: api.VerbCancel})
	if err != nil || ch.Changed != 5 {
		t.Errorf("%+v, %v", ch, err)
	}
	named := client.HistoryQuery{Select: api.Select{IDs: []string{"21", "20", "20"}}, Limit: 4} // at once, whatever the store has
	if h, err := c.HistoryPage(ctx, named); err != nil || len(h.Jobs) != 4 || h.Next != "22" || h.Jobs[0].State != "CANCELLED" {
		t.Errorf("%+v, %v", h, err)
	}
	named.Cursor = "22"
	if h, err := c.HistoryPage(ctx, named); err != nil || len(h.Jobs) != 2 || h.Next != "" || h.Jobs[1].ID != 20 {
		t.Errorf("%+v, %v", h, err)
	}
	if a, err := c.Audit(ctx, 0, 0); err != nil || len(a.Records) < 22 || a.Records[0].From != "socket" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := c.ChangeNodes(ctx, &api.NodeChange{Nodes: []string{"v1"}, Verb: "drain", Reason: "fan"}); err != nil {
		t.Error(err)
	}
	n, err := c.Node(ctx, "v1")
	if err != nil || n.State != "draining" || n.Why != "fan" || n.By == "" {
		t.Errorf("%+v, %v", n, err)
	}
	made, err := c.NewToken(ctx, &api.NewToken{Comment: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.RevokeToken(ctx, made.Token.ID); err != nil {
		t.Error(err)
	}
	info, err := c.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for last := uint64(1); last < info.Change; {
		select {
		case n := <-seen:
			if n != last+1 {
				t.Fatalf("event %d after %d", n, last)
			}
			last = n
		case <-time.After(2 * time.Minute):
			t.Fatalf("no event after %d of %d", last, info.Change)
		}
	}
}

// BenchmarkSubmitDurable is BenchmarkSubmit with a real control plane on a disk.
func BenchmarkSubmitDurable(b *testing.B) {
	st, err := sqlite.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	s := newSite(b, st)
	bodies := make([][]byte, 512)
	for i := range bodies {
		js, err := json.Marshal(benchRequest(i))
		if err != nil {
			b.Fatal(err)
		}
		bodies[i] = fmt.Appendf(nil, "POST /v1/jobs HTTP/1.1\r\nHost: cox\r\nContent-Length: %d\r\n\r\n%s", len(js), js)
	}
	flood(b, func() (io.ReadWriteCloser, error) { return net.Dial("unix", s.socket) }, bodies)
}

// BenchmarkCancelAll cancels 10,000 held jobs by number, as scancel asks for them,
// with all that is durable of it on a disk.
func BenchmarkCancelAll(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		st, err := sqlite.Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		s := newSite(b, st)
		req := servertest.Request()
		req.Args = []string{"--hold", "--array=0-9999"}
		got, err := s.client().Submit(b.Context(), req)
		if err != nil {
			b.Fatal(err)
		}
		ch := &api.Change{Verb: api.VerbCancel}
		for i := range got.Tasks {
			ch.Select.IDs = append(ch.Select.IDs, fmt.Sprintf("%d_%d", got.ID, i))
		}
		b.StartTimer()
		done, err := s.client().Change(b.Context(), ch)
		if err != nil || done.Changed != 10000 {
			b.Fatal(done, err)
		}
		b.StopTimer()
		s.stop()
		s.stop = func() {}
		st.Close()
		b.StartTimer()
	}
}

// errLast ends a watch when its last event has come.
var errLast = errors.New("the last event")

// TestTheEventsOfALargeArray, more than anybody keeps in memory, reach who stops reading for a
// while and who comes late, in order and each once: from the journal.
func TestTheEventsOfALargeArray(t *testing.T) {
	const n = 10000
	st, err := sqlite.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s := newSite(t, st)
	c := s.client()
	t.Cleanup(c.Close)
	held := servertest.Request()
	held.Args = []string{"--hold", fmt.Sprintf("--array=0-%d", n-1)}
	if _, err := c.Submit(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	reads, allEnded := make(chan struct{}), make(chan struct{})
	ends := make(chan error, 3)
	// watch reads all events of the array; at the first it calls stop.
	watch := func(name string, stop func()) {
		last, tasks := uint64(0), 0
		err := c.Watch(t.Context(), client.WatchOptions{Jobs: []string{"1"}}, func(e api.Event) error {
			if e.Kind == api.KindGap || e.Seq <= last {
				return fmt.Errorf("%s: event %d (%s) after %d", name, e.Seq, e.Kind, last)
			}
			if last = e.Seq; e.Kind == state.EventSubmitted {
				stop()
			}
			if e.State == "CANCELLED" {
				tasks++
			}
			if tasks == n {
				return errLast
			}
			return nil
		})
		if err != errLast {
			ends <- fmt.Errorf("%s: %d tasks: %w", name, tasks, err)
			return
		}
		ends <- nil
	}
	go watch("one that stops reading", func() { close(reads); <-allEnded })
	<-reads
	go watch("one that reads", func() {})
	if ch, err := c.Change(t.Context(), &api.Change{Select: api.Select{IDs: []string{"1"}}, Verb: api.VerbCancel}); err != nil || ch.Changed != n {
		t.Fatalf("%+v, %v", ch, err)
	}
	if err := <-ends; err != nil {
		t.Error(err)
	}
	close(allEnded)
	go watch("one that comes late", func() {})
	for range 2 {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
}
