package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestNothingIsLostOrDoubled breaks the connection of a watcher again and again,
// and stops and starts the server, while jobs are submitted.
func TestNothingIsLostOrDoubled(t *testing.T) {
	const n = 3000
	p := servertest.NewPlane()
	r := start(t, p, nil)
	var socket atomic.Value
	socket.Store(r.Socket)
	proxy := newBreaker(t, func() string { return socket.Load().(string) })
	c, err := client.New(client.Options{Socket: proxy.path})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	half := make(chan struct{}, n)
	go func() {
		for i := range n / 300 {
			p.Fill(t, 300, "anna", 2001, nil)
			select {
			case <-half: // some of them have come, others are on their way
			case <-ctx.Done():
				return
			}
			proxy.cut()
			if i == 5 { // a restart: another server on the same control plane
				r.Stop()
				socket.Store(start(t, p, nil).Socket)
			}
		}
	}()
	var last uint64
	err = c.Watch(ctx, client.WatchOptions{}, func(e api.Event) error {
		if e.Seq != last+1 || uint64(e.Job) != e.Seq {
			return fmt.Errorf("event %d of job %d after %d", e.Seq, e.Job, last)
		}
		if last = e.Seq; last == n {
			return errEnough
		}
		if last%300 == 150 {
			half <- struct{}{}
		}
		return nil
	})
	if err != errEnough {
		t.Error(err)
	}
	if proxy.cuts.Load() < 10 {
		t.Errorf("only %d connections were cut: nothing was tested", proxy.cuts.Load())
	}
}

// breaker hands connections on and breaks them when it is told.
type breaker struct {
	path  string
	mu    sync.Mutex
	conns []net.Conn
	cuts  atomic.Int64
}

func newBreaker(t *testing.T, to func() string) *breaker {
	t.Helper()
	b := &breaker{path: t.TempDir() + "/proxy"}
	l, err := net.Listen("unix", b.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); b.cut() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", to())
			if err != nil {
				in.Close()
				continue
			}
			b.mu.Lock()
			b.conns = append(b.conns, in, out)
			b.mu.Unlock()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
			go func() { _, _ = io.Copy(out, in); out.Close() }()
		}
	}()
	return b
}

func (b *breaker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		c.Close()
		b.cuts.Add(1)
	}
	b.conns = nil
}

// TestWaitGoesOnOverARestart stops the server while a client waits.
func TestWaitGoesOnOverARestart(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	r := start(t, p, nil)
	var socket atomic.Value
	socket.Store(r.Socket)
	proxy := newBreaker(t, func() string { return socket.Load().(string) })
	c, err := client.New(client.Options{Socket: proxy.path})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		j, err := c.Wait(t.Context(), "1")
		if err == nil && j.State != "COMPLETED" {
			err = errors.New(j.State)
		}
		got <- err
	}()
	servertest.WaitUntil(t, "it waits", func() bool { return r.Metrics.Waiters.Load() > 0 })
	r.Stop()
	socket.Store(start(t, p, nil).Socket)
	p.Finish(1, job.Completed, job.ExitCode{})
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestAWatcherThatDoesNotReadIsCutOff fills the socket of one watcher while
// another reads.
func TestAWatcherThatDoesNotReadIsCutOff(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, func(c *Config) { c.Stall = 200 * time.Millisecond })
	lazy, _ := r.DialWatch(t, "/v1/watch?after=0")
	defer lazy.Close()
	good := make(chan []api.Event, 1)
	const n = 20000
	go func() { good <- collect(t, r.As(t, "anna"), client.WatchOptions{}, n) }()
	p.Fill(t, n, "anna", 2001, nil)
	if got := <-good; len(got) != n {
		t.Errorf("the reader got %d of %d", len(got), n)
	}
	servertest.WaitUntil(t, "the lazy one is cut off", func() bool { return r.Metrics.Cut.Load() > 0 })
}

// TestAThousandWatchers all see all.
func TestAThousandWatchers(t *testing.T) {
	const watchers, events = 1000, 50
	p := servertest.NewPlane()
	r := start(t, p, nil)
	var wg sync.WaitGroup
	var ready sync.WaitGroup
	ready.Add(watchers)
	var seen atomic.Int64
	for range watchers {
		wg.Go(func() {
			conn, br := r.DialWatch(t, "/v1/watch?after=0")
			defer conn.Close()
			ready.Done()
			for next := 1; next <= events; {
				line, err := br.ReadString('\n')
				if err != nil {
					t.Error(err)
					return
				}
				if rest, ok := strings.CutPrefix(line, "id: "); ok {
					if strings.TrimSpace(rest) != fmt.Sprint(next) {
						t.Errorf("id %q, not %d", rest, next)
						return
					}
					next++
					seen.Add(1)
				}
			}
		})
	}
	ready.Wait()
	if n := r.Metrics.Watchers.Load(); n != watchers {
		t.Errorf("%d watchers", n)
	}
	p.Fill(t, events, "anna", 2001, nil)
	wg.Wait()
	if seen.Load() != watchers*events {
		t.Errorf("%d events seen", seen.Load())
	}
}

// TestNothingIsLeftBehind stops a server under watches, waits, logs and requests.
func TestNothingIsLeftBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	p := servertest.NewPlane()
	p.Fill(t, 2, "anna", 2001, nil)
	p.Start(1, "v1")
	f := &servertest.Files{Dir: t.TempDir(), Asked: make(chan string, 10)}
	if err := os.WriteFile(filepath.Join(f.Dir, "out-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, p, func(c *Config) { c.Output = f })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 5 {
		c, err := client.New(client.Options{Socket: r.Socket})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = c.Watch(ctx, client.WatchOptions{}, func(api.Event) error { return nil }); c.Close() })
		wg.Go(func() { _, _ = c.Wait(ctx, "2") })
		wg.Go(func() {
			if body, err := c.Logs(ctx, "1", client.LogOptions{Follow: true}); err == nil {
				_, _ = io.Copy(io.Discard, body)
				body.Close()
			}
		})
	}
	servertest.WaitUntil(t, "all are there", func() bool {
		return r.Metrics.Waiters.Load() >= 5 && r.Metrics.Watchers.Load() >= 5 && len(f.Asked) >= 5
	})
	began := time.Now()
	r.Stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s to stop", took)
	}
	cancel()
	wg.Wait()
	goleak.VerifyNone(t, before)
}
