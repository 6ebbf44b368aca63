package killtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// clock is the machine's clock, as a server built for it sees it.
type clock struct {
	t    *testing.T
	file string
}

// move sets the clock by a distance from real time.
func (c clock) move(d time.Duration) {
	c.t.Helper()
	f, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.Write(binary.NativeEndian.AppendUint64(nil, uint64(int64(d/time.Second))))
		_ = f.Close()
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// modulePath begins the names of the project's packages.
const modulePath = "github.com/coxswain-sched/coxswain/"

// buildSkewed builds the server with another clock: by go's -overlay the project's own
// files ask package skew (testdata) for the time. Nothing of that is in the sources.
func buildSkewed(t *testing.T, dir string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Module", "../../cmd/cox", "../../cmd/cox-slurm").Output()
	if err != nil {
		t.Fatal(err)
	}
	skew, err := filepath.Abs("testdata/skew.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{filepath.Join(root, "internal", "skew", "skew.go"): skew}
	for in := json.NewDecoder(strings.NewReader(string(out))); in.More(); {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
		}
		if err := in.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(p.ImportPath, modulePath) {
			continue
		}
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.NewReplacer("time.Now(", "movedclock.Now(", "time.Since(", "movedclock.Since(", "time.Until(", "movedclock.Until(").Replace(string(b))
			if text == string(b) {
				continue
			}
			text = strings.Replace(text, "import (\n", "import (\n\tmovedclock \""+modulePath+"internal/skew\"\n", 1) + "\nvar _, _ = time.Nanosecond, movedclock.Now\n"
			other := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
			if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			replace[file] = other
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := build(dir, "-overlay="+overlay, "../../cmd/cox", "../../cmd/cox-slurm"); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files ask the moved clock", len(replace)-1)
}

// The machine's clock is moved by hours, forward and back, while jobs run and wait.
// Time limits are measured, so they do not notice; times of day are read off the clock,
// so they do; and nothing is lost or runs twice.
func TestClockMoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := clock{t, filepath.Join(dir, "skew")}
	c.move(0)
	binaries := filepath.Join(dir, "b", "b", "b")
	if err := os.MkdirAll(binaries, 0o755); err != nil {
		t.Fatal(err)
	}
	buildSkewed(t, binaries)
	s := newServerOf(t, filepath.Join(binaries, "cox"), filepath.Join(dir, "state"), "--nodes", "4", "--gpus-per-node", "2")
	for i, d := range []time.Duration{3 * time.Hour, -5 * time.Hour, 0, 48 * time.Hour, -48 * time.Hour} {
		r := &round{t: t, s: s, h: newHarm(), dir: filepath.Join(dir, fmt.Sprintf("r%d", i)), number: i, moved: true, rnd: rand.New(rand.NewPCG(seed, 4<<40|uint64(i)))}
		r.outrage = func(rnd *rand.Rand) {
			c.move(d)
			if rnd.IntN(2) == 0 { // and a new server, which knows only the new time
				s.kill()
				s.start()
			}
		}
		r.run()
		if t.Failed() {
			t.Fatalf("the clock was moved to %s", d)
		}
	}
	c.move(0)
	limits(t, s, c, filepath.Join(dir, "limits"))
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if _, err := sqlite.Verify(t.Context(), s.state); err != nil {
		t.Errorf("the store: %v", err)
	}
}

// limits looks at time limits and times of day.
func limits(t *testing.T, s *server, c clock, dir string) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	submit := func(script string, args ...string) string {
		t.Helper()
		got, err := s.c.Submit(t.Context(), &api.Submit{Form: api.FormSbatch, File: "work.sh", Text: "#!/bin/sh\n" + script + "\n", Args: append(args, "--output=/dev/null"), Dir: dir, Environ: []string{"PATH=/usr/bin:/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(got.ID)
	}
	state := func(id string) string {
		t.Helper()
		j, err := s.c.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return j.State
	}
	is := func(id, want string) func() bool { return func() bool { return state(id) == want } }

	long := submit("exec sleep 3600", "--time=10:00")
	begins := submit("exit 0", "--begin=now+1hour")
	waitFor(t, "the long job runs", is(long, "RUNNING"))

	c.move(3 * time.Hour) // the limit of the one has not passed, the hour of the other has
	submit("exit 0")      // who hands something in has the clock looked at
	waitFor(t, "the job whose time has come has run", is(begins, "COMPLETED"))
	if got := state(long); got != "RUNNING" {
		t.Errorf("a clock that went on by 3 hours made a job of 10 minutes %s", got)
	}

	short := submit("exec sleep 3600", "--time=1")
	c.move(-5 * time.Hour)
	later := submit("exit 0", "--begin=now+1hour")
	soon := submit("exit 0")
	waitFor(t, "a job runs after the clock went back", is(soon, "COMPLETED"))
	waitFor(t, "the limit of a minute has passed, though the clock went back", is(short, "TIMEOUT"))
	if got := state(later); got != "PENDING" {
		t.Errorf("a job that is to begin in an hour is %s", got)
	}
	if got := state(long); got != "RUNNING" {
		t.Errorf("a clock that went back made a job of 10 minutes %s", got)
	}
	now := 0.0
	if _, err := s.c.Change(t.Context(), &api.Change{Verb: api.VerbCancel, Select: api.Select{All: true}, Grace: &now}); err != nil {
		t.Error(err)
	}
	waitFor(t, "nothing is live", func() bool {
		for range s.c.Jobs(t.Context(), client.Query{}) {
			return false
		}
		return true
	})
}
