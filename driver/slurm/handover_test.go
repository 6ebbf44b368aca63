package slurm_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
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

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// senders is how many submit at once, on either side.
const senders = 16

// TestHandOver measures how long it takes to hand jobs over to one cluster, in turns: by
// clients that do nothing else, 16 at once, the peer (its jobs are the user's own: the same
// script, variables and options, without our lock, tag and variables); by the same with the
// least job there is (plain); and by the engine. It judges nothing: docs/explanation/benchmarks.md has the
// figures. Jobs wait in a partition that is down, so that nothing else is at work; those of a
// turn are cancelled after it, and the daemons come to rest before the next.
//
// JOBS and ROUNDS set the size, VERSIONS, WAYS ("rest", "commands") and SORTS ("small": a
// script of three lines and two variables; "usual": 4 KB and 60 of them) choose.
func TestHandOver(t *testing.T) {
	if os.Getenv("COX_LONG") == "" {
		t.Skip("COX_LONG is not set")
	}
	jobs, rounds := number(t, "JOBS", 2000), number(t, "ROUNDS", 5)
	for _, version := range chosen("VERSIONS", "22.05 24.11") {
		t.Run(version, func(t *testing.T) {
			c := clusters[version]
			c.Nodes, c.More = 2, parking+shortly
			l := lab.Start(t, c)
			for _, way := range chosen("WAYS", "rest commands") {
				for _, sort := range chosen("SORTS", "small usual") {
					t.Run(way+"/"+sort, func(t *testing.T) { handOver(t, l, way, work(t, sort), jobs, rounds) })
				}
			}
		})
	}
}

func chosen(name, usual string) []string { return strings.Fields(cmp.Or(os.Getenv(name), usual)) }

func number(t *testing.T, name string, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(usual)))
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of them", name, os.Getenv(name))
	}
	return n
}

// turn is what a side's turn took: time, and CPU of this process (without its children, which
// are Slurm's own commands) and of the cluster's daemons.
type turn struct {
	took time.Duration
	cpu  map[string]time.Duration
}

// side hands n jobs over and says how long that took.
type side struct {
	name string
	hand func(t *testing.T, n int) time.Duration
}

// handOver takes turns, in another order each round, after one round that does not count.
func handOver(t *testing.T, l *lab.Lab, way string, w *load, jobs, rounds int) {
	sides := []side{
		{"peer", byClients(client(t, l, way, w))},
		{"plain", byClients(client(t, l, way, least()))},
		{"engine", nil},
	}
	before, _ := os.ReadFile("/proc/loadavg")
	rates, cpus := map[string][]float64{}, map[string][]float64{}
	for round := range rounds + 1 {
		n, took := jobs, map[string]time.Duration{}
		if round == 0 {
			n = min(100, jobs)
		}
		for i := range sides {
			s := sides[(i+round)%len(sides)]
			over := func() {}
			if s.hand == nil {
				s.hand, over = byEngine(t, into(t, l, way), w)
			}
			r := measure(t, l, s, n)
			over()
			took[s.name] = r.took
			if round == 0 {
				continue
			}
			rates[s.name] = append(rates[s.name], float64(n)/r.took.Seconds())
			for who, used := range r.cpu {
				cpus[s.name+" "+who] = append(cpus[s.name+" "+who], used.Seconds()*1000/float64(n))
			}
		}
		if round == 0 {
			continue
		}
		of := func(name string) float64 { return 100 * took[name].Seconds() / took["engine"].Seconds() }
		rates["% peer"], rates["% plain"] = append(rates["% peer"], of("peer")), append(rates["% plain"], of("plain"))
		t.Logf("round %d, %d jobs: the peer %.2f s, the plain one %.2f s, the engine %.2f s: %.0f and %.0f %% of their pace", round, n, took["peer"].Seconds(), took["plain"].Seconds(), took["engine"].Seconds(), of("peer"), of("plain"))
	}
	t.Logf("%s, %s, load before %s: the peer %s jobs/s, the plain one %s, the engine %s; %s %% of the peer's pace, %s %% of the plain one's", l.Version(), way, strings.Fields(string(before))[0], spread(rates["peer"], 0), spread(rates["plain"], 0), spread(rates["engine"], 0), spread(rates["% peer"], 0), spread(rates["% plain"], 0))
	for _, s := range sides {
		var words []string
		for _, who := range append(slices.Clone(daemons), "client") {
			if all := cpus[s.name+" "+who]; all != nil {
				words = append(words, who+" "+spread(all, 2))
			}
		}
		t.Logf("CPU a job, ms, %s: %s", s.name, strings.Join(words, ", "))
	}
}

// daemons are those that have a part in a hand-over.
var daemons = []string{"slurmctld", "slurmrestd", "munged", "slurmdbd", "mariadbd"}

// measure has a side hand n jobs over, once the daemons are at rest.
func measure(t *testing.T, l *lab.Lab, s side, n int) turn {
	t.Helper()
	look := func() map[string]time.Duration {
		all := map[string]time.Duration{"client": used(t)}
		for _, d := range daemons {
			if d != "munged" || l.Version() == "22.05" {
				all[d] = l.CPU(t, d)
			}
		}
		return all
	}
	// Until slurmctld has forgotten what was cancelled, which takes it some seconds, or a minute,
	// and all are at rest.
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); {
		if strings.TrimSpace(l.Run(t, "squeue", "--noheader", "--states=all", "--format=%i")) != "" {
			time.Sleep(200 * time.Millisecond)
			continue
		}
		was := look()
		time.Sleep(200 * time.Millisecond)
		if is := look(); is["slurmctld"]+is["slurmdbd"]+is["mariadbd"]-was["slurmctld"]-was["slurmdbd"]-was["mariadbd"] <= 20*time.Millisecond {
			break
		}
	}
	was := look()
	took := s.hand(t, n)
	cpu := look()
	for who := range cpu {
		cpu[who] -= was[who]
	}
	if there := strings.Fields(l.Run(t, "squeue", "--noheader", "--states=PENDING", "--format=%i")); len(there) != n {
		t.Errorf("%d jobs wait, not %d", len(there), n)
	}
	l.Run(t, "scancel", "--partition=parked")
	return turn{took, cpu}
}

// spread is the median of figures, with the least and the greatest.
func spread(all []float64, digits int) string {
	all = slices.Sorted(slices.Values(all))
	if len(all) == 0 {
		return "none"
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, all[len(all)/2], digits, all[0], digits, all[len(all)-1])
}

// parking has room for jobs that only wait.
const parking = "PartitionName=parked Nodes=ALL MaxTime=INFINITE State=DOWN\nMaxJobCount=200000"

// shortly has slurmctld forget jobs soon: what it keeps makes each hand-over dearer.
const shortly = "\nMinJobAge=5"

// parked are sbatch's options of all jobs, as the engine would write them.
var parked = []string{"--partition=parked"}

// load is what each job of a side is: a batch script as a user hands it over.
type load struct {
	text string
	env  []string
	spec *job.Spec // of text
}

// work is a sort of jobs.
func work(t *testing.T, sort string) *load {
	t.Helper()
	w := &load{text: "#!/bin/sh\n#SBATCH --job-name=work --output=/dev/null\n#SBATCH --time=10 --ntasks=1 --mem=100M\n", env: []string{"PATH=/usr/bin:/bin", "HOME=/root"}}
	if sort == "usual" {
		r := rand.New(rand.NewPCG(1, 1))
		for len(w.text) < 4<<10 {
			w.text += fmt.Sprintf("# %016x %016x\n", r.Uint64(), r.Uint64())
		}
		for i := len(w.env); i < 60; i++ {
			w.env = append(w.env, fmt.Sprintf("VARIABLE_%d=%016x%016x", i, r.Uint64(), r.Uint64()))
		}
	}
	w.text += "hostname\n"
	s, _, err := sbatch.Parse(spec.Source{Name: "work.sh", Data: []byte(w.text)}, sbatch.Options{Dir: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	w.spec = s
	return w
}

// least is the least job there is.
func least() *load {
	return &load{text: "#!/bin/sh\n#SBATCH --time=10 --output=/dev/null\nhostname\n", env: []string{"PATH=/usr/bin:/bin"}}
}

// into is a way in for an engine.
func into(t *testing.T, l *lab.Lab, way string) site.Site {
	t.Helper()
	if way == "commands" {
		return l.Command()
	}
	return byREST(t, l, nil)
}

// client hands one job over and does nothing else, as a user's would that has the script's
// directives in slurmrestd's fields, or runs sbatch.
func client(t *testing.T, l *lab.Lab, way string, w *load) func(context.Context) error {
	t.Helper()
	if way == "commands" {
		here := &command.Here{Env: append(slices.Clone(w.env), l.Env...), Before: l.Inside}
		return func(ctx context.Context) error {
			r, err := here.Run(ctx, command.Call{Name: "sbatch", Args: append([]string{"--parsable", "--chdir=/tmp"}, parked...), Stdin: []byte(w.text)})
			if err == nil && r.Code != 0 {
				err = fmt.Errorf("sbatch: %s", r.Stderr)
			}
			return err
		}
	}
	token := l.Token(t, "root")
	fields := map[string]any{"name": "work", "partition": "parked", "current_working_directory": "/tmp", "standard_output": "/dev/null"}
	address := l.REST() + "/slurm/v0.0.42/job/submit"
	if l.Version() == "22.05" {
		env := map[string]string{}
		for _, v := range w.env {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		fields["environment"], fields["time_limit"] = env, 10
		address = l.REST() + "/slurm/v0.0.38/job/submit"
	} else {
		fields["environment"], fields["time_limit"] = w.env, map[string]any{"number": 10, "set": true}
	}
	switch {
	case w.spec == nil:
	case l.Version() == "22.05":
		fields["tasks"], fields["memory_per_node"] = 1, "100M"
	default:
		fields["tasks"], fields["memory_per_node"] = 1, map[string]any{"number": 100, "set": true}
	}
	body, err := json.Marshal(map[string]any{"script": w.text, "job": fields})
	if err != nil {
		t.Fatal(err)
	}
	return poster(t, address, token, body)
}

// poster posts a body to slurmrestd and looks for the number of the job.
func poster(t *testing.T, address, token string, body []byte) func(context.Context) error {
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
	}
}

// byClients has jobs handed over by clients that do nothing else.
func byClients(submit func(context.Context) error) func(*testing.T, int) time.Duration {
	return func(t *testing.T, n int) time.Duration {
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
		return time.Since(began)
	}
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

// byEngine has jobs handed over by an engine, from the first launch to the last number. It is
// open and knows the cluster when the clock begins, as a server's is; over closes it.
// Launches come as from the server, each from a goroutine of its own.
func byEngine(t *testing.T, way site.Site, w *load) (hand func(*testing.T, int) time.Duration, over func()) {
	t.Helper()
	root := t.TempDir()
	locks, err := lockdir.Open(filepath.Join(root, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{Site: way, over: make(chan struct{})}
	e, err := slurm.New(slurm.Config{Root: filepath.Join(root, "state"), Pool: "slurm", Site: c, Room: locks, Options: parked})
	if err != nil {
		t.Fatal(err)
	}
	for e.Inventory() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	return func(t *testing.T, n int) time.Duration {
		c.left.Store(int64(n))
		began := time.Now()
		var wg sync.WaitGroup
		for i := 1; i <= n; i++ {
			wg.Go(func() {
				if err := e.Launch(t.Context(), &engine.Launch{
					Ref: engine.Ref{Allocation: uint64(i), Attempt: 1}, Claims: []fleet.Claim{{Node: "slurm", Tasks: 1, Take: resource.Vector{Memory: 100 * resource.MiB}}},
					Env: w.env, Script: []byte(w.text), Job: &job.Job{ID: job.ID(i), Attempt: 1, Spec: w.spec},
				}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		select {
		case <-c.over:
		case <-time.After(10 * time.Minute):
			t.Fatalf("%d jobs are left after 10 minutes", c.left.Load())
		}
		return time.Since(began)
	}, func() { _ = e.Close() }
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
