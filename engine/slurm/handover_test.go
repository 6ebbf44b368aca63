package slurm_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/slurm"
	"github.com/coxswain-sched/coxswain/engine/slurm/command"
	"github.com/coxswain-sched/coxswain/engine/slurm/lab"
	"github.com/coxswain-sched/coxswain/engine/slurm/room"
	"github.com/coxswain-sched/coxswain/engine/slurm/site"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/resource"
)

// senders is how many submit at once, on either side.
const senders = 16

// TestHandOver measures how long it takes to hand jobs over: by clients that do nothing else
// (the peer: HTTP to slurmrestd, or sbatch, 16 at once), and by the engine, in turns on one
// cluster. It judges nothing: docs/benchmarks.md has the figures. Jobs wait in a partition
// that is down, so that nothing else is at work; those of a round are cancelled after it.
// JOBS, ROUNDS and WAYS ("rest", "commands") set the size.
func TestHandOver(t *testing.T) {
	if os.Getenv("COX_LONG") == "" {
		t.Skip("COX_LONG is not set")
	}
	jobs, rounds := number(t, "JOBS", 2000), number(t, "ROUNDS", 5)
	for _, version := range []string{"22.05", "24.11"} {
		t.Run(version, func(t *testing.T) {
			c := clusters[version]
			c.Nodes, c.More = 2, parking
			l := lab.Start(t, c)
			for _, way := range strings.Fields(cmp.Or(os.Getenv("WAYS"), "rest commands")) {
				t.Run(way, func(t *testing.T) { handOver(t, l, way, jobs, rounds) })
			}
		})
	}
}

func number(t *testing.T, name string, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(usual)))
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of them", name, os.Getenv(name))
	}
	return n
}

// handOver takes turns, each side first in every other round, after one that does not count.
func handOver(t *testing.T, l *lab.Lab, way string, jobs, rounds int) {
	peer, reach := plainly(t, l, way)
	load, _ := os.ReadFile("/proc/loadavg")
	var theirs, ours, ratios, cpus []float64
	for round := range rounds + 1 {
		n := jobs
		if round == 0 {
			n = 100
		}
		var a, b time.Duration
		var used float64
		if round%2 == 0 {
			a = byPeer(t, l, peer, n)
			b, used = byEngine(t, l, reach(), n)
		} else {
			b, used = byEngine(t, l, reach(), n)
			a = byPeer(t, l, peer, n)
		}
		if round == 0 {
			continue
		}
		t.Logf("round %d, %d jobs: the peer %.2f s, the engine %.2f s, %.0f %% of its pace; %.2f ms of our CPU a job", round, n, a.Seconds(), b.Seconds(), 100*a.Seconds()/b.Seconds(), used)
		theirs, ours, ratios, cpus = append(theirs, float64(n)/a.Seconds()), append(ours, float64(n)/b.Seconds()), append(ratios, 100*a.Seconds()/b.Seconds()), append(cpus, used)
	}
	t.Logf("%s, %s, load before %s: the peer %s jobs/s, the engine %s jobs/s; %s %% of its pace, %s ms of our CPU a job", l.Version(), way, strings.Fields(string(load))[0], spread(theirs, 0), spread(ours, 0), spread(ratios, 0), spread(cpus, 2))
}

// spread is the median of figures, with the least and the greatest.
func spread(all []float64, digits int) string {
	all = slices.Sorted(slices.Values(all))
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, all[len(all)/2], digits, all[0], digits, all[len(all)-1])
}

// parking has room for jobs that only wait.
const parking = "PartitionName=parked Nodes=ALL MaxTime=INFINITE State=DOWN\nMaxJobCount=200000"

// parked are sbatch's options of all jobs, as the engine would write them.
var parked = []string{"--partition=parked"}

// text is what the jobs are.
const text = "#!/bin/sh\n#SBATCH --time=10\nhostname\n"

// plainly is a client that hands one job over and does nothing else, and the same way in for
// an engine.
func plainly(t *testing.T, l *lab.Lab, way string) (submit func(context.Context) error, reach func() site.Site) {
	t.Helper()
	if way == "commands" {
		here := &command.Here{Env: l.Env, Before: l.Inside}
		return func(ctx context.Context) error {
			r, err := here.Run(ctx, command.Call{Name: "sbatch", Args: []string{"--parsable", "--chdir=/tmp", "--output=/dev/null", parked[0], "--job-name=peer"}, Stdin: []byte(text)})
			if err == nil && r.Code != 0 {
				err = fmt.Errorf("sbatch: %s", r.Stderr)
			}
			return err
		}, func() site.Site { return l.Command() }
	}
	token := l.Token(t, "root")
	job := map[string]any{"name": "peer", "partition": "parked", "time_limit": 10, "current_working_directory": "/tmp", "standard_output": "/dev/null", "environment": map[string]string{"PATH": "/usr/bin:/bin"}}
	address := l.REST() + "/slurm/v0.0.38/job/submit"
	if l.Version() != "22.05" {
		job["environment"], job["time_limit"] = []string{"PATH=/usr/bin:/bin"}, map[string]any{"number": 10, "set": true}
		address = l.REST() + "/slurm/v0.0.42/job/submit"
	}
	body, err := json.Marshal(map[string]any{"script": text, "job": job})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: senders, MaxIdleConnsPerHost: senders}}
	t.Cleanup(client.CloseIdleConnections)
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-SLURM-USER-NAME", "root")
		req.Header.Set("X-SLURM-USER-TOKEN", token)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // read to its end
		said, err := io.ReadAll(resp.Body)
		var a struct {
			ID int `json:"job_id"`
		}
		if err == nil && (json.Unmarshal(said, &a) != nil || a.ID == 0) {
			err = fmt.Errorf("slurmrestd: %s: %.300s", resp.Status, said)
		}
		return err
	}, func() site.Site { return byREST(t, l, nil) }
}

// byPeer has n jobs handed over by clients that do nothing else.
func byPeer(t *testing.T, l *lab.Lab, submit func(context.Context) error, n int) time.Duration {
	t.Helper()
	var wg sync.WaitGroup
	var next atomic.Int64
	began := time.Now()
	for range senders {
		wg.Go(func() {
			for next.Add(1) <= int64(n) {
				if err := submit(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	cancelAll(t, l, n)
	return took
}

// counting is a way in that tells when so many jobs were handed over.
type counting struct {
	site.Site
	left atomic.Int64
	over chan struct{}
}

func (c *counting) Submit(ctx context.Context, s *site.Submission) (uint32, error) {
	id, err := c.Site.Submit(ctx, s)
	if err == nil && c.left.Add(-1) == 0 {
		close(c.over)
	}
	return id, err
}

// byEngine has n jobs handed over by an engine, from the first launch to the last number, and
// says what CPU of this process each took (in ms), children left out: those are Slurm's own
// commands. Launches come as from the server, each from a goroutine of its own.
func byEngine(t *testing.T, l *lab.Lab, way site.Site, n int) (time.Duration, float64) {
	t.Helper()
	root := t.TempDir()
	locks, err := room.Open(filepath.Join(root, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{Site: way, over: make(chan struct{})}
	c.left.Store(int64(n))
	e, err := slurm.New(slurm.Config{Root: filepath.Join(root, "state"), Pool: "slurm", Site: c, Room: locks, Options: parked})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // the directory goes with it
	own, began := used(t), time.Now()
	var wg sync.WaitGroup
	for i := 1; i <= n; i++ {
		wg.Go(func() {
			if err := e.Launch(t.Context(), &engine.Launch{
				Ref: engine.Ref{Allocation: uint64(i), Attempt: 1}, Claims: []fleet.Claim{{Node: "slurm", Tasks: 1, Take: resource.Vector{Memory: 100 * resource.MiB}}},
				Env: []string{"PATH=/usr/bin:/bin"}, Script: []byte(text),
				Job: &job.Job{ID: job.ID(i), Attempt: 1, Spec: &job.Spec{
					Name: "ours", WorkDir: "/tmp", Output: job.Output{Stdout: "/dev/null"}, Program: job.Program{Kind: job.Batch}, TimeLimit: 10 * time.Minute,
					Groups: []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 1}}},
				}},
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	taken := time.Since(began)
	select {
	case <-c.over:
	case <-time.After(10 * time.Minute):
		t.Fatalf("%d jobs are left after 10 minutes", c.left.Load())
	}
	took := time.Since(began)
	cost := float64((used(t) - own).Microseconds()) / 1000 / float64(n)
	t.Logf("taken after %.2f s; %d polls meanwhile", taken.Seconds(), e.Polls().Count)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	cancelAll(t, l, n)
	return took, cost
}

// cancelAll cancels all jobs, of which there must be so many.
func cancelAll(t *testing.T, l *lab.Lab, n int) {
	t.Helper()
	if there := strings.Fields(l.Run(t, "squeue", "--noheader", "--states=PENDING", "--format=%i")); len(there) != n {
		t.Errorf("%d jobs wait, not %d", len(there), n)
	}
	l.Run(t, "scancel", "--partition=parked")
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
