package attempt

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/sweep"
	"github.com/coxswain-sched/coxswain/model/job"
)

// everyRecord has a record of every kind, as a slot journals them.
func everyRecord(t testing.TB) (out [][]byte) {
	at := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	task := engine.TaskReport{Step: 0, Rank: 1, Node: "v1", PID: 7, Running: true, Started: at, Log: "/l"}
	for _, r := range []Record{
		{Kind: KindTake, Ref: fuzzRef},
		{Kind: KindReady},
		{Kind: KindRun},
		{Kind: KindTask, Task: &task},
		{Kind: KindHeld, Held: true},
		{Kind: KindNote, Text: "n", Stuck: "7 (dd)"},
		{Kind: KindRefuse, Cause: engine.LaunchFailed},
		{Kind: KindEnding, Cause: engine.Stopped, Text: "why"},
		{Kind: KindExit, Exit: &job.ExitCode{Status: 3}, Files: []string{"/o"}},
		{Kind: KindGone},
		{Kind: KindState, State: &State{Phase: engine.Ended, Gone: true, Tasks: []engine.TaskReport{task}, Files: []string{"/o"}}, Unsaved: true},
	} {
		r.Time = at
		b, err := appendLine(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

var fuzzRef = engine.Ref{Allocation: 7, Attempt: 1}

// folds reads a journal of any bytes. What is read is what its whole lines say one after
// the other, its tasks are in order and once each, and a state that is told instead
// of them is the same.
func folds(t *testing.T, name string, lines []byte) {
	t.Helper()
	if err := os.WriteFile(name, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	got, sat, err := ReadJournal(name, fuzzRef)
	if err != nil || !sat {
		return
	}
	var want State
	for line := range bytes.Lines(lines) {
		var r Record
		if line[len(line)-1] != '\n' {
			break
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%q is taken: %v", line, err)
		}
		want.Apply(r)
	}
	if !reflect.DeepEqual(got, &want) {
		t.Fatalf("%q is read as %+v, its lines say %+v", lines, got, want)
	}
	whole := got.Clone()
	var told State
	told.Apply(Record{Kind: KindState, State: whole, Unsaved: whole.Unsaved})
	if a, b := mustJSON(t, told), mustJSON(t, *got); !bytes.Equal(a, b) {
		t.Fatalf("told as a whole it is %s, it was %s", a, b)
	}
	for i := 1; i < len(got.Tasks) && !bytes.Contains(lines, []byte(`"state"`)); i++ {
		a, b := got.Tasks[i-1], got.Tasks[i]
		if a.Step > b.Step || a.Step == b.Step && a.Rank >= b.Rank {
			t.Fatalf("%q: task %d.%d comes before %d.%d", lines, a.Step, a.Rank, b.Step, b.Rank)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSweepOfRecords changes one place of one record of a journal at a time.
func TestSweepOfRecords(t *testing.T) {
	all := everyRecord(t)
	name := filepath.Join(t.TempDir(), "journal")
	for i := range all {
		for c := range sweep.JSON(all[i]) {
			lines := slices.Clone(all)
			lines[i] = append(c.Doc, '\n')
			folds(t, name, bytes.Join(lines, nil))
		}
	}
}

// TestSweepOfTheLog changes one place of one entry of the engine's log at a time: it
// opens, and what is read stays when it is opened again.
func TestSweepOfTheLog(t *testing.T) {
	var all [][]byte
	for _, e := range []Entry{
		{Kind: EntryLaunch, Launch: &Launch{Ref: fuzzRef, Digest: "d", Job: &job.Job{ID: 7}, Env: []string{"A=1"}}},
		{Kind: EntrySeat, Index: 1, Seat: &Slot{Name: "1.1"}},
		{Kind: EntryGo, Started: time.Unix(1e9, 0).UTC()},
		{Kind: EntryAbort, Cause: engine.LaunchFailed, Text: "t"},
		{Kind: EntryEnd, Digest: "d", Report: &engine.Report{Ref: fuzzRef, Phase: engine.Ended, Gone: true}},
		{Kind: EntryForget},
	} {
		e.Ref = fuzzRef
		b, err := appendLine(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	name := filepath.Join(t.TempDir(), "log")
	for i := range all {
		for c := range sweep.JSON(all[i]) {
			lines := slices.Clone(all)
			lines[i] = append(c.Doc, '\n')
			if err := os.WriteFile(name, bytes.Join(lines, nil), 0o600); err != nil {
				t.Fatal(err)
			}
			l, lives, err := OpenLog(name)
			if err != nil {
				t.Fatalf("entry %d, %s: %v", i, c.What, err)
			}
			for ref, life := range lives {
				if life.Launch == nil && life.End == nil {
					t.Errorf("entry %d, %s: %s has neither a launch nor an end", i, c.What, ref)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			again, same, err := OpenLog(name)
			if err != nil || !reflect.DeepEqual(lives, same) {
				t.Fatalf("entry %d, %s: opened again it has %v, it had %v (%v)", i, c.What, same, lives, err)
			}
			_ = again.Close()
		}
	}
}

// A slot's journal of any bytes is refused, or is what its lines say: see folds.
func FuzzRecords(f *testing.F) {
	all := everyRecord(f)
	f.Add(bytes.Join(all, nil))
	for _, line := range all[1:] {
		f.Add(slices.Concat(all[0], line))
	}
	name := filepath.Join(f.TempDir(), "journal")
	f.Fuzz(func(t *testing.T, lines []byte) {
		if len(lines) < 64<<10 {
			folds(t, name, lines)
		}
	})
}
