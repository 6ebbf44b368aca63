package rest_test

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/rest"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestCost prints what polling 200 live jobs costs, and handing jobs over; it judges
// nothing.
func TestCost(t *testing.T) {
	if os.Getenv("COX_LONG") == "" {
		t.Skip("COX_LONG is not set")
	}
	for name, c := range clusters {
		t.Run(name, func(t *testing.T) {
			l := lab.Start(t, c.lab)
			s := reach(t, l, rest.Config{})
			const jobs, senders = 200, 16
			ids := make([]uint32, jobs)
			own := used(t)
			began := time.Now()
			var wg sync.WaitGroup
			next := make(chan int)
			for range senders {
				wg.Go(func() {
					for i := range next {
						id, err := s.Submit(t.Context(), &site.Submission{
							Script: []byte("#!/bin/sh\nsleep 600\n"), Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/tmp",
							Options: []string{"--output=/dev/null", "--begin=2030-01-01T00:00:00", "--comment=cox:x:1:1.1"},
						})
						if err != nil {
							t.Error(err)
						}
						ids[i] = id
					}
				})
			}
			for i := range jobs {
				next <- i
			}
			close(next)
			wg.Wait()
			t.Logf("handed over: %.0f jobs/s, %s of our CPU each", jobs/time.Since(began).Seconds(), (used(t)-own)/jobs)
			for way, s := range map[string]site.Site{"rest": s, "commands": l.Command()} {
				if _, err := s.Jobs(t.Context(), ids); err != nil { // not the first time
					t.Fatal(err)
				}
				const polls = 20
				ctld, own, began := l.CPU(t, "slurmctld"), used(t), time.Now()
				for range polls {
					all, err := s.Jobs(t.Context(), ids)
					if err != nil || len(all) != jobs {
						t.Fatalf("%d jobs, %v", len(all), err)
					}
				}
				t.Logf("%s: a poll of %d takes %s, %s of slurmctld's CPU, %s of ours", way, jobs, time.Since(began)/polls, (l.CPU(t, "slurmctld")-ctld)/polls, (used(t)-own)/polls)
			}
		})
	}
}

// used is the CPU time of this process.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestRenewal polls for a while with tokens that live for eight seconds: no call notices.
func TestRenewal(t *testing.T) {
	if os.Getenv("COX_LONG") == "" {
		t.Skip("COX_LONG is not set")
	}
	for name, c := range clusters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lab.Start(t, c.lab)
			words := append(slices.Clone(l.Inside), "scontrol", "token", "username=%u", "lifespan=8")
			s := reach(t, l, rest.Config{Tokens: &rest.Command{Words: words, Env: l.Env}})
			for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(100 * time.Millisecond) {
				if all, err := s.Jobs(t.Context(), []uint32{4_000_000}); err != nil || len(all) != 0 {
					t.Fatalf("after %s: %v, %v", time.Since(began), all, err)
				}
			}
		})
	}
}
