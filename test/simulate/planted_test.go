package simulate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/test/simulate"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// expected says of every planted bug which promise it breaks, and from which seed on
// the simulation finds it soon.
var expected = map[string]struct {
	promise model.Promise
	seed    uint64
}{
	"planted_part_of_gang": {model.Whole, 1},
	"planted_not_undone":   {model.Whole, 1},
	"planted_rest_of_gang": {model.Whole, 1},

	"planted_free_unproved": {model.Ledger, 1},
	"planted_late_report":   {model.Ledger, 1},
	"planted_launch_first":  {model.Ledger, 1},
	"planted_launch_again":  {model.Ledger, 1},

	"planted_unfenced":      {model.Owner, 1},
	"planted_drain_ignored": {model.Owner, 1},

	"planted_replay_forgets": {model.Replay, 1},
	"planted_map_order":      {model.Replay, 1},

	"planted_early_number": {model.Account, 1},
	"planted_drop_reason":  {model.Account, 1},
	"planted_array_limit":  {model.Account, 1},
	"planted_lost_submit":  {model.Account, 1},
	"planted_cancel_ended": {model.Account, 1},
}

// plantedSeeds is how many seeds a bug may outlive.
const plantedSeeds = 300

// finding is what a build with a bug found of it.
type finding struct {
	Seed  uint64
	Tried int
	Found model.Violation
}

// TestPlantedBugsAreFound builds this test once with every bug of internal/planted and
// lets it look: each has to be found, and the promise to be named that it breaks. The
// seed that finds it must break nothing without the bug.
func TestPlantedBugsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program for each bug")
	}
	promises := map[model.Promise]bool{}
	for _, b := range planted.Bugs() {
		want, ok := expected[b.Tag]
		if !ok {
			t.Errorf("nothing is expected of %s", b.Tag)
			continue
		}
		promises[want.promise] = true
		t.Run(b.Tag, func(t *testing.T) {
			t.Parallel()
			f := search(t, build(t, b.Tag), want.seed)
			switch {
			case f.Found == (model.Violation{}):
				t.Errorf("%s: not found in %d seeds", b.Does, f.Tried)
			case f.Found.Promise != want.promise:
				t.Errorf("%s: seed %d says %s, which is not %s", b.Does, f.Seed, f.Found, want.promise)
			default:
				t.Logf("%s: found by seed %d, try %d: %s", b.Does, f.Seed, f.Tried, f.Found)
			}
			if r := bubble(t, simulate.Options{Seed: f.Seed}); len(r.Broken) > 0 {
				t.Errorf("seed %d breaks a promise without the bug too: %s", f.Seed, r.Broken[0])
			}
		})
	}
	for p := model.Whole; p <= model.Account; p++ {
		if !promises[p] {
			t.Errorf("no bug breaks %s", p)
		}
	}
	if len(expected) != len(planted.Bugs()) {
		t.Errorf("%d bugs are expected, there are %d", len(expected), len(planted.Bugs()))
	}
}

// build makes a program of this package's tests with a bug in it.
func build(t *testing.T, tag string) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "simulate.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", tag, "-ldflags=-s -w", "-o", exe, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", tag, err, out)
	}
	return exe
}

// search lets a program with a bug look for it.
func search(t *testing.T, exe string, first uint64) (f finding) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestLookForThePlantedBug$")
	cmd.Env = append(os.Environ(), "COX_SIM_PLANTED="+strconv.FormatUint(first, 10))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	line, _, _ := bytes.Cut(out.Bytes(), []byte("\n"))
	if err := json.Unmarshal(line, &f); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	return f
}

// TestLookForThePlantedBug is what the programs of TestPlantedBugsAreFound run: it
// prints the first promise that is broken from a seed on.
func TestLookForThePlantedBug(t *testing.T) {
	first, err := strconv.ParseUint(os.Getenv("COX_SIM_PLANTED"), 10, 64)
	if err != nil {
		t.Skip("TestPlantedBugsAreFound runs it")
	}
	f := finding{Seed: first}
	for ; f.Tried < plantedSeeds && f.Found == (model.Violation{}); f.Tried++ {
		f.Seed = first + uint64(f.Tried)
		if v := look(t, f.Seed); len(v) > 0 {
			f.Found = v[0]
		}
	}
	out, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(out))
}

// look runs a seed. What the bug makes a matter of chance shows when it runs again.
func look(t *testing.T, seed uint64) []model.Violation {
	r := bubble(t, simulate.Options{Seed: seed, Story: planted.MapOrder})
	if len(r.Broken) > 0 || !planted.MapOrder {
		return r.Broken
	}
	again := bubble(t, simulate.Options{Seed: seed, Story: true})
	return model.New().Tell(model.Twice{What: fmt.Sprintf("seed %d", seed), A: r.Story, B: again.Story})
}
