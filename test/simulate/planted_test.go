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

// expected says of every planted bug which promise it breaks.
var expected = map[string]model.Promise{
	"planted_part_of_gang": model.Whole,
	"planted_not_undone":   model.Whole,
	"planted_rest_of_gang": model.Whole,

	"planted_free_unproved": model.Ledger,
	"planted_late_report":   model.Ledger,
	"planted_launch_first":  model.Ledger,
	"planted_launch_again":  model.Ledger,

	"planted_unfenced":      model.Owner,
	"planted_followed_acts": model.Owner,
	"planted_drain_ignored": model.Owner,

	"planted_replay_forgets": model.Replay,
	"planted_map_order":      model.Replay,

	"planted_early_number": model.Account,
	"planted_drop_reason":  model.Account,
	"planted_array_limit":  model.Account,
	"planted_lost_submit":  model.Account,
	"planted_cancel_ended": model.Account,

	"planted_rules_forgotten":  model.Account,
	"planted_usage_lost":       model.Account,
	"planted_uncounted":        model.Account,
	"planted_anyone_preempts":  model.Account,
	"planted_borrows_all":      model.Account,
	"planted_reservation_open": model.Account,
	"planted_victim_lost":      model.Account,
}

// Bounds of the search for a bug: seeds that it may outlive, and findings that may
// name another promise before the right one is named, since a bug rarely breaks one
// promise alone.
const (
	plantedSeeds = 300
	plantedOther = 2
)

// finding is what a build with a bug found of it.
type finding struct {
	Seed  uint64 // that broke the promise
	Tried int
	Found model.Violation
	Other []string // promises that other seeds broke before
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
		promises[want] = true
		t.Run(b.Tag, func(t *testing.T) {
			t.Parallel()
			f := search(t, build(t, b.Tag), want)
			if f.Found.Promise != want || len(f.Other) > plantedOther {
				t.Fatalf("%s: %d seeds found %v, and not soon that it breaks %s", b.Does, f.Tried, f.Other, want)
			}
			t.Logf("%s: found by seed %d: %s", b.Does, f.Seed, f.Found)
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
func search(t *testing.T, exe string, want model.Promise) (f finding) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestLookForThePlantedBug$")
	cmd.Env = append(os.Environ(), "COX_SIM_PLANTED="+strconv.Itoa(int(want)))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	if err := json.Unmarshal(line, &f); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return f
}

// TestLookForThePlantedBug is what the programs of TestPlantedBugsAreFound run: it
// prints the first seed that breaks the promise.
func TestLookForThePlantedBug(t *testing.T) {
	want, err := strconv.Atoi(os.Getenv("COX_SIM_PLANTED"))
	if err != nil {
		t.Skip("TestPlantedBugsAreFound runs it")
	}
	var f finding
	for f.Tried < plantedSeeds && len(f.Other) <= plantedOther && f.Found == (model.Violation{}) {
		f.Tried++
		f.Seed = uint64(f.Tried)
		v := look(t, f.Seed)
		switch {
		case len(v) == 0:
		case v[0].Promise == model.Promise(want):
			f.Found = v[0]
		default:
			f.Other = append(f.Other, fmt.Sprintf("seed %d: %s", f.Seed, v[0]))
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
