package services

import (
	"net"
	"net/http"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// ownStart is how long a replica takes from the start of its program until it takes connections.
func (s *site) ownStart(b *testing.B) time.Duration {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = l.Close()
	cmd := exec.CommandContext(b.Context(), s.bin+"/replica")
	cmd.Env = []string{replicaVariable + "=own", "PORT=" + port}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return time.Since(begun)
		}
		<-time.After(time.Millisecond)
	}
}

// hasReady says that so many replicas are ready, and that there are no others.
func hasReady(n int) func(*api.Service) bool {
	return func(v *api.Service) bool { return v.Replicas.Ready == n && len(v.Parts) == n }
}

// BenchmarkLoadToReplica measures from the first request of a load that is too much for one replica
// until a second one is ready, and the replica's own start. docs/explanation/benchmarks-gateway.md has
// the figures.
func BenchmarkLoadToReplica(b *testing.B) {
	s := newSite(b)
	s.submitScaled("r1", "{min: 1, max: 2}", "{metric: in_flight, target: 1, cooldown: 1s}")
	var took, own time.Duration
	for range b.N {
		s.until("one replica", hasReady(1))
		own += s.ownStart(b)
		begun := time.Now()
		l := s.startLoad()
		s.until("a second replica", func(v *api.Service) bool { return v.Replicas.Ready == 2 })
		took += time.Since(begun)
		l.stop()
		l.wait.Wait()
		if n := l.failed.Load(); n > 0 {
			b.Errorf("%d of %d requests failed: %q", n, l.asked.Load(), l.first)
		}
	}
	reportTimes(b, took, own)
}

// BenchmarkFromZero measures how long the first request takes to a service that sleeps: it is held and
// wakes the service.
func BenchmarkFromZero(b *testing.B) {
	s := newSite(b)
	s.submitScaled("r1", "{min: 0, max: 1}", "{metric: in_flight, target: 10, cooldown: 1s, to_zero: 1s}")
	s.until("one replica", hasReady(1))
	var took, own time.Duration
	for range b.N {
		s.until("asleep", hasReady(0))
		own += s.ownStart(b)
		l := &load{seen: map[string]int{}}
		var asking sync.WaitGroup
		begun := time.Now()
		asking.Go(func() { l.askOnce(http.DefaultClient, http.MethodPost, s.gateway) })
		asking.Wait()
		took += time.Since(begun)
		if l.failed.Load() > 0 {
			b.Fatalf("the held request: %q", l.first)
		}
	}
	reportTimes(b, took, own)
}

func reportTimes(b *testing.B, took, own time.Duration) {
	millis := func(d time.Duration) float64 { return float64(d.Milliseconds()) / float64(b.N) }
	b.ReportMetric(millis(took), "ms")
	b.ReportMetric(millis(own), "ms-own-start")
	b.ReportMetric(0, "ns/op")
	b.Logf("%d rounds: %.0f ms, of which %.0f ms are the replica's own start", b.N, millis(took), millis(own))
}
