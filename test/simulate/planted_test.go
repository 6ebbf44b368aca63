package simulate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/test/simulate"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// expected says of every planted bug which promise it breaks.
var expected = map[string]model.Promise{
	"part_of_gang": model.Whole,
	"not_undone":   model.Whole,
	"rest_of_gang": model.Whole,

	"free_unproved": model.Ledger,
	"late_report":   model.Ledger,
	"launch_first":  model.Ledger,
	"launch_again":  model.Ledger,
	"part_twice":    model.Ledger,

	"unfenced":      model.Owner,
	"followed_acts": model.Owner,
	"drain_ignored": model.Owner,

	"replay_forgets": model.Replay,
	"map_order":      model.Replay,

	"early_number": model.Account,
	"drop_reason":  model.Account,
	"array_limit":  model.Account,
	"lost_submit":  model.Account,
	"cancel_ended": model.Account,

	"rules_forgotten":  model.Account,
	"usage_lost":       model.Account,
	"uncounted":        model.Account,
	"anyone_preempts":  model.Account,
	"borrows_all":      model.Account,
	"reservation_open": model.Account,
	"victim_lost":      model.Account,

	"surge_ignored":   model.Account,
	"ready_given_up":  model.Account,
	"place_twice":     model.Ledger,
	"parts_uncounted": model.Account,

	"admit_unproved":    model.Owner,
	"unreachable_empty": model.Owner,
	"old_unfence":       model.Owner,
}

// ofServices are the bugs that are looked for in worlds with services.
var ofServices = []string{"surge_ignored", "ready_given_up", "place_twice", "parts_uncounted"}

// ofHandovers are the bugs that are looked for in runs of hand-overs.
var ofHandovers = []string{"admit_unproved", "unreachable_empty", "old_unfence"}

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

// TestPlantedBugsAreFound builds this test with the bugs of internal/planted and runs it
// once for each: the bug has to be found, and the promise to be named that it breaks. The
// seed that finds it must break nothing without the bug.
func TestPlantedBugsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program with bugs")
	}
	promises := map[model.Promise]bool{}
	exe := build(t)
	for _, b := range planted.Bugs() {
		want, ok := expected[b.Name]
		if !ok {
			t.Errorf("nothing is expected of %s", b.Name)
			continue
		}
		promises[want] = true
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			f := search(t, exe, b.Name, want)
			if f.Found.Promise != want || len(f.Other) > plantedOther {
				t.Fatalf("%s: %d seeds found %v, and not soon that it breaks %s", b.Does, f.Tried, f.Other, want)
			}
			t.Logf("%s: found by seed %d: %s", b.Does, f.Seed, f.Found)
			if slices.Contains(ofHandovers, b.Name) {
				if r := handoverBubble(t, simulate.Handovers{Seed: f.Seed}); len(r.Broken) > 0 {
					t.Errorf("seed %d breaks a promise without the bug too: %s", f.Seed, r.Broken[0])
				}
				return
			}
			if r := bubble(t, simulate.Options{Seed: f.Seed, Services: slices.Contains(ofServices, b.Name)}); len(r.Broken) > 0 {
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

// build makes a program of this package's tests that has the bugs.
func build(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "simulate.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "planted", "-ldflags=-s -w", "-o", exe, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// search lets a program with a bug look for it.
func search(t *testing.T, exe, bug string, want model.Promise) (f finding) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestLookForThePlantedBug$")
	cmd.Env = append(os.Environ(), "COX_PLANTED="+bug, "COX_SIM_PLANTED="+strconv.Itoa(int(want)))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", bug, err, out)
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	if err := json.Unmarshal(line, &f); err != nil {
		t.Fatalf("%s: %v\n%s", bug, err, out)
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
	if slices.Contains(ofHandovers, os.Getenv("COX_PLANTED")) {
		return handoverBubble(t, simulate.Handovers{Seed: seed}).Broken
	}
	r := bubble(t, simulate.Options{Seed: seed, Services: slices.Contains(ofServices, os.Getenv("COX_PLANTED")), Story: planted.MapOrder})
	if len(r.Broken) > 0 || !planted.MapOrder {
		return r.Broken
	}
	again := bubble(t, simulate.Options{Seed: seed, Story: true})
	return model.New().Tell(model.Twice{What: fmt.Sprintf("seed %d", seed), A: r.Story, B: again.Story})
}
