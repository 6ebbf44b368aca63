package killtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestSlurmOutlivesTheServer: the server is killed again and again while it hands jobs over to
// clusters of real Slurm, at moments drawn from the seed. Every job that it has accepted ends
// once here, has run once, and has one record in Slurm's accounting, that says the same; and
// nothing else of ours is there.
func TestSlurmOutlivesTheServer(t *testing.T) {
	t.Parallel()
	t.Logf("seed %d (COX_KILL_SEED)", seed)
	for version, c := range map[string]lab.Config{"22.05": {}, "24.11": {Modern: true}} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			k := &slurmKills{lab: lab.Start(t, c), dir: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 5<<40)), jobs: map[string]string{}}
			k.s = newServer(t, filepath.Join(k.dir, "s"))
			k.add(t)
			k.run(t)
			k.settle(t)
			k.compare(t)
		})
	}
}

// slurmKills are the kills of one server beside one cluster.
type slurmKills struct {
	lab *lab.Lab
	s   *server
	dir string
	rnd *rand.Rand

	mu     sync.Mutex
	jobs   map[string]string // accepted: the job's number by its name
	silent map[string]bool   // names of which no answer came
}

// add adds the cluster to the server.
func (k *slurmKills) add(t *testing.T) {
	set := map[string]any{"local": true, "conf": k.lab.Conf, "root": true, "shared": filepath.Join(k.dir, "locks")}
	if bin := k.lab.Bin(t); bin != "" {
		set["commands"] = bin
	}
	b, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.s.c.AddPool(t.Context(), &api.NewPool{Name: "slurm", Engine: "slurm", Settings: b}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(k.dir, "ran"), 0o777); err != nil {
		t.Fatal(err)
	}
}

// run hands jobs in, and kills the server meanwhile.
func (k *slurmKills) run(t *testing.T) {
	jobs, kills := 40, 6
	if long {
		jobs, kills = 400, 60
	}
	k.silent = map[string]bool{}
	gaps := make([]time.Duration, jobs)
	for i := range gaps {
		gaps[i] = ms(k.rnd.IntN(150))
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i, gap := range gaps {
			k.submit(t, fmt.Sprintf("kill-%d", i))
			time.Sleep(gap) // not to wait: to spread what happens
		}
	}()
	for range kills {
		time.Sleep(ms(k.rnd.IntN(1500))) // the moment is what is tried
		k.s.kill()
		k.s.start()
		k.s.ready()
	}
	<-over
	k.s.kill()
	k.s.start()
	k.s.ready()
}

// submit hands a job in, once.
func (k *slurmKills) submit(t *testing.T, name string) {
	text := fmt.Sprintf("#!/bin/sh\necho $SLURM_JOB_ID >>%s/ran/%s\nsleep 1\nexit 3\n", k.dir, name)
	r, err := k.s.c.Submit(t.Context(), &api.Submit{
		Form: api.FormSbatch, File: "work.sh", Text: text, Pool: "slurm", Dir: k.dir,
		Args: []string{"--job-name", name, "--output", "/dev/null", "--cpus-per-task=1"}, Environ: []string{"PATH=/usr/bin:/bin"},
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		k.jobs[name] = fmt.Sprint(r.ID)
	case fault.KindOf(err) == fault.Unavailable:
		k.silent[name] = true // it may have been accepted
	default:
		t.Errorf("%s is refused: %v", name, err)
	}
	if err != nil {
		if err := k.s.answers(); err != nil {
			t.Error(err)
		}
	}
}

// settle waits until no job lives here.
func (k *slurmKills) settle(t *testing.T) {
	r := &round{t: t, s: k.s}
	for end := time.Now().Add(patience); ; time.Sleep(2 * pollEvery) {
		live, err := r.live()
		if err == nil && len(live) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %s: %v live: %+v", patience, err, live)
		}
	}
}

// compare holds what the server says of each job against what ran, and against Slurm.
func (k *slurmKills) compare(t *testing.T) {
	ours := map[string]int{}
	for _, j := range (&round{t: t, s: k.s}).jobsNow() {
		ours[j.Spec.Name]++
		if j.State != "FAILED" || j.Exit.Status != 3 || j.Attempt > 1 {
			t.Errorf("%s (%s) is %s, attempt %d, %v: %s", j.Spec.Name, j.Name, j.State, j.Attempt, j.Exit, j.Message)
		}
	}
	for name := range k.jobs {
		if ours[name] != 1 {
			t.Errorf("%s was accepted, and the server has it %d times", name, ours[name])
		}
	}
	for name := range ours {
		if k.jobs[name] == "" && !k.silent[name] {
			t.Errorf("%s was never accepted", name)
		}
		ran, err := os.ReadFile(filepath.Join(k.dir, "ran", name))
		if n := strings.Count(string(ran), "\n"); err != nil || n != 1 {
			t.Errorf("%s ran %d times: %v", name, n, err)
		}
	}
	var last map[string][]string
	for end := time.Now().Add(patience); ; time.Sleep(10 * pollEvery) { // accounting comes later
		last = map[string][]string{}
		for line := range strings.Lines(k.lab.Run(t, "sacct", "-n", "-X", "-P", "-D", "-a", "-S", "now-1days", "-o", "JobName,JobIDRaw,State,ExitCode")) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), "|")
			last[name] = append(last[name], rest)
		}
		agree := len(last) == len(ours)
		for name := range ours {
			agree = agree && len(last[name]) == 1 && strings.HasSuffix(last[name][0], "|FAILED|3:0")
		}
		if agree {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the server has %d jobs, Slurm: %v", len(ours), last)
		}
	}
	t.Logf("%d accepted, %d without an answer, %d jobs", len(k.jobs), len(k.silent), len(ours))
}
