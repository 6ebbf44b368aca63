package schedtest_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

var update = flag.Bool("update", false, "rewrite the output in the scenarios")

// TestScenarios runs every transcript. Each says in its first lines why it is there.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got, err := schedtest.Transcript(string(want))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s: got\n%s\nwant\n%s", f, got, want)
			}
		})
	}
}

// TestAdmissionScenarios runs what testdata/kueue re-tells of Kueue's tests of its
// scheduler, on the core. "like it" is in the output where the core starts and stops
// the same jobs, in the same flavours; where it does not, a line beside the scenario
// says why, and docs/explanation/compat-kueue.md lists it.
func TestAdmissionScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/kueue/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { golden(t, f, schedtest.Transcript) })
	}
}

// golden runs a file of scenarios and compares it with what it says.
func golden(t *testing.T, f string, run func(string) (string, error)) {
	want, err := os.ReadFile(f)
	if err != nil {
		t.Fatal(err)
	}
	got, err := run(string(want))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(f, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: %s", f, d)
	}
	for one := range strings.SplitSeq(got, "\n\n") {
		if strings.Contains(one, "\nunlike it") != strings.Contains(one, "\n# Unlike Kueue: ") {
			t.Errorf("%s: a scenario is unlike Kueue and does not say why, or says why and is like it:\n%s", f, one)
		}
	}
}

// TestQuotaScenarios runs the scenarios of quotas alone. Those of kueue-*.txt re-tell
// tests of Kueue, which they name; what they answer is what Kueue does, but for those
// that docs/explanation/compat-kueue.md lists.
func TestQuotaScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/quota/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { golden(t, f, schedtest.QuotaScript) })
	}
}

func TestTranscriptRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, bad := range []string{"fly 1", "submit x", "node", "submit 1 wings=2", "node a wings=2", "extend 1", "restore 1"} {
		if _, err := schedtest.Transcript(bad + "\n----\n"); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
