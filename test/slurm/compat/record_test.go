package compat

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/hostlist"
)

var (
	record = flag.Bool("record", false, "ask a real slurmctld and write testdata anew")
	from   = flag.Uint64("from", 1, "with -record: the first seed")
	plans  = flag.Bool("plans", false, "with -record: log what is planned after each round")
	into   = flag.String("into", "testdata", "with -record: the folder to write to")
	cases  = flag.Int("cases", 120, "with -record: how many")
)

// TestRecord writes testdata anew. It is run by hand.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("-record asks a real slurmctld and writes testdata anew")
	}
	lab := os.Getenv("COX_SLURM_LAB")
	if lab == "" {
		t.Fatal("COX_SLURM_LAB names no folder for a lab")
	}
	f, err := os.Create(filepath.Join(*into, fmt.Sprintf("slurm-22.05-%04d.jsonl", *from)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range *cases {
		c := drawCase(*from + uint64(i))
		s := &slurm{t: t, lab: lab, c: c}
		for !s.play() {
			s = &slurm{t: t, lab: lab, c: c}
		}
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		t.Logf("case %d: %d jobs, starts by round: %v", c.Seed, len(c.Jobs), counts(c))
	}
}

func counts(c *Case) (out []int) {
	for _, r := range c.Rounds {
		out = append(out, len(r.Starts))
	}
	return out
}

// slurm is a controller that plays a case.
type slurm struct {
	t   *testing.T
	lab string
	c   *Case
	ids []string // Slurm's job numbers, by index; "": refused
	log int64    // read so far
}

const rounds = 3

// play plays the case and reports whether no scheduler looked in the middle of a
// round's beginning.
func (s *slurm) play() bool {
	s.start()
	s.wake()
	s.ids = make([]string, len(s.c.Jobs))
	r := rand.New(rand.NewPCG(s.c.Seed, 0x52))
	running := map[int]bool{}
	s.c.Rounds = nil
	for no := range rounds {
		var round Round
		for i := range s.ids {
			if max(i*(rounds+2)/len(s.ids)-2, 0) == no {
				round.Comes = append(round.Comes, i)
			}
		}
		for _, j := range slices.Sorted(maps.Keys(running)) {
			if r.IntN(2) == 0 {
				round.Ends = append(round.Ends, j)
				delete(running, j)
			}
		}
		if !s.begin(&round) {
			return false
		}
		if *plans {
			out, _ := s.run("squeue", "-h", "-o", "%i %T %S %e %Y %N")
			s.t.Logf("round %d; numbers: %v\n%s", no, s.ids, out)
		}
		for _, st := range s.read() {
			running[st.Job] = true
			round.Starts = append(round.Starts, st)
		}
		s.c.Rounds = append(s.c.Rounds, round)
	}
	return true
}

// begin lets a round's jobs end and come between two looks, and waits until both
// schedulers have looked twice since.
func (s *slurm) begin(round *Round) bool {
	main, _ := s.cycles()
	quiet := time.Now().Add(3 * time.Second) // it does not look where nothing has changed
	s.poll("a cycle of the main scheduler", func() bool { m, _ := s.cycles(); return m > main || time.Now().After(quiet) })
	main, back := s.cycles()
	var gone []string
	for _, j := range round.Ends {
		gone = append(gone, s.ids[j])
	}
	if len(gone) > 0 {
		if out, err := s.run("scancel", gone...); err != nil {
			s.t.Fatalf("scancel %v: %v %s", gone, err, out)
		}
	}
	round.Comes = slices.DeleteFunc(round.Comes, func(j int) bool {
		args := []string{"--parsable", "-o", "/dev/null", "--priority", strconv.Itoa(s.c.Jobs[j].Priority), "--wrap", "true"}
		out, err := s.run("sbatch", append(args, s.c.Jobs[j].Args...)...)
		s.ids[j] = strings.TrimSpace(out)
		return err != nil // refused: nothing to decide
	})
	if m, b := s.cycles(); m != main || b != back {
		return false
	}
	quiet = time.Now().Add(7 * time.Second)
	s.poll("two cycles of both schedulers", func() bool {
		m, b := s.cycles()
		return (s.c.isBackfillOnly() || m >= main+2) && b >= back+2 || time.Now().After(quiet)
	})
	return true
}

// wake has all nodes powered up, as far as CLOUD nodes are that never come: slurmctld
// prefers those that are, and ours have no such state.
func (s *slurm) wake() {
	n := strconv.Itoa(len(s.c.Nodes))
	out, err := s.run("sbatch", "--parsable", "-o", "/dev/null", "-p", s.c.Partitions[0].Name, "-N", n, "--exclusive", "--mem", "1", "-t", "1", "--wrap", "true")
	if err != nil {
		s.t.Fatalf("case %d: sbatch over all nodes: %v", s.c.Seed, err)
	}
	id := strings.TrimSpace(out)
	state := func() string {
		out, _ := s.run("squeue", "-h", "-j", id, "-o", "%t")
		return strings.TrimSpace(out)
	}
	s.poll("all nodes are powered up", func() bool { return state() == "CF" })
	_, _ = s.run("scancel", id)
	s.poll("the job that did it is gone", func() bool { return state() == "" })
	s.read()
}

// start starts a controller with the case's site.
func (s *slurm) start() {
	must := func(err error) {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	site := filepath.Join(s.t.TempDir(), "site.conf")
	must(os.WriteFile(site, []byte(s.c.siteConf()), 0o644))
	must(os.MkdirAll(s.lab, 0o755))
	must(os.WriteFile(filepath.Join(s.lab, "topology.conf"), []byte(s.c.topologyConf()), 0o644))
	_ = exec.Command("../../../scripts/slurm/down.sh", s.lab).Run()
	_ = os.Remove(filepath.Join(s.lab, "slurmctld.log"))
	for tries := 3; ; tries-- {
		up := exec.Command("../../../scripts/slurm/up.sh", s.lab)
		up.Env = append(os.Environ(), "COX_SLURM_SITE="+site)
		out, err := up.CombinedOutput()
		if err == nil {
			return
		}
		if tries == 0 {
			s.t.Fatalf("up.sh: %v\n%s", err, out)
		}
	}
}

func (s *slurm) run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"SLURM_CONF=" + filepath.Join(s.lab, "slurm.conf"), "PATH=" + os.Getenv("PATH"), "HOME=/root", "TZ=UTC"}
	cmd.Dir = "/tmp"
	out, err := cmd.Output()
	return string(out), err
}

var cycles = regexp.MustCompile(`Total cycles: (\d+)`)

// cycles is how often the main and the backfill scheduler have looked.
func (s *slurm) cycles() (main, back int) {
	out, err := s.run("sdiag")
	m := cycles.FindAllStringSubmatch(out, -1)
	if err != nil || len(m) < 2 {
		s.t.Fatalf("sdiag: %v %s", err, out)
	}
	main, _ = strconv.Atoi(m[0][1])
	back, _ = strconv.Atoi(m[1][1])
	return main, back
}

func (s *slurm) poll(what string, done func() bool) {
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("case %d: waited a minute until %s", s.c.Seed, what)
		}
	}
}

var (
	allocated  = regexp.MustCompile(`sched: Allocate JobId=(\d+) NodeList=(\S+)`)
	backfilled = regexp.MustCompile(`sched/backfill: _start_job: Started JobId=(\d+) in \S+ on (\S+)`)
)

// read returns what was decided since the last time.
func (s *slurm) read() (out []Start) {
	text, err := os.ReadFile(filepath.Join(s.lab, "slurmctld.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range strings.Split(string(text[s.log:]), "\n") {
		m, back := allocated.FindStringSubmatch(line), false
		if m == nil {
			m, back = backfilled.FindStringSubmatch(line), true
		}
		if m == nil {
			continue
		}
		nodes, err := hostlist.Expand(m[2])
		if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, Start{Job: slices.Index(s.ids, m[1]), Nodes: nodes, Backfill: back})
	}
	s.log = int64(len(text))
	return out
}
