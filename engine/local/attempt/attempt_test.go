package attempt

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/job"
)

func TestRefsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := engine.Ref{Allocation: rapid.Uint64().Draw(t, "allocation"), Attempt: rapid.Uint32().Draw(t, "attempt")}
		if got, err := ParseRef(want.String()); err != nil || got != want {
			t.Fatalf("%v, %v", got, err)
		}
	})
	for _, name := range []string{"", "1", "1.", "01.1", "1.1x", "-1.1", "1.1.new", "x"} {
		if got, err := ParseRef(name); err == nil {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestAttemptIsDecidedOnce(t *testing.T) {
	d := Dir(t.TempDir())
	if _, err := d.Marker(); err == nil {
		t.Error("a marker out of nothing")
	}
	if _, err := d.Decide(Go); err == nil {
		t.Error("a decision about nothing")
	}
	if err := os.WriteFile(d.File(string(Pending)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ try, stands Marker }{{Go, Go}, {Abort, Go}, {Go, Go}} {
		if got, err := d.Decide(c.try); err != nil || got != c.stands {
			t.Errorf("%d: %s, %v", i, got, err)
		}
		if got, err := d.Marker(); err != nil || got != c.stands {
			t.Errorf("%d: %s stands, %v", i, got, err)
		}
	}
}

func TestForgetKeepsOutputOnly(t *testing.T) {
	for _, logs := range []bool{true, false} {
		d := Dir(filepath.Join(t.TempDir(), "1.1"))
		for _, dir := range []string{d.Ranks(), d.Node("v1")} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		files := []string{d.Script(), d.File(string(Go)), filepath.Join(d.Node("v1"), "journal")}
		if logs {
			files = append(files, filepath.Join(d.Ranks(), "0.0.log"))
		}
		for _, f := range files {
			if err := os.WriteFile(f, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // again after a crash
			if err := d.Forget(); err != nil {
				t.Fatal(err)
			}
		}
		_, err := os.Stat(string(d))
		if there := err == nil; there != logs {
			t.Errorf("logs %t: the directory is there: %t", logs, there)
		}
		if !logs {
			continue
		}
		left, err := filepath.Glob(d.File("*"))
		if err != nil || len(left) != 2 {
			t.Errorf("left: %v, %v", left, err)
		}
		if m, err := d.Marker(); err != nil || m != Forgot {
			t.Errorf("marker %s, %v", m, err)
		}
	}
}

func TestWriteFileIsWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"first and long", "second"} {
		if err := WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(name); err != nil || string(b) != text {
			t.Errorf("%q, %v", b, err)
		}
	}
	if err := WriteFile(filepath.Join(name, "x"), nil, 0o600); err == nil {
		t.Error("written below a file")
	}
	if left, _ := filepath.Glob(name + ".*"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func at(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }

// life is what a head's supervisor records of a job that exits with 3.
func life() []Record {
	code := job.ExitCode{Status: 3}
	task := engine.TaskReport{Step: engine.BatchStep, Node: "v1", PID: 9, Running: true, Started: at(2)}
	done := task
	done.Running, done.Ended, done.Exit = false, at(3), code
	return []Record{
		{Kind: KindReady, Time: at(1)},
		{Kind: KindRun, Time: at(2)},
		{Kind: KindTask, Time: at(2), Task: &task, Files: []string{"/out"}},
		{Kind: KindTask, Time: at(2), Task: &engine.TaskReport{Step: 0, Rank: 1, Running: true}},
		{Kind: KindTask, Time: at(2), Task: &engine.TaskReport{Step: 0, Rank: 0, Running: true}},
		{Kind: KindTask, Time: at(3), Task: &done},
		{Kind: KindExit, Time: at(3), Exit: &code, Cause: engine.Exited},
		{Kind: KindEnding, Time: at(3), Cause: engine.TimedOut, Text: "too late to be the cause"},
		{Kind: KindGone, Time: at(4)},
	}
}

func TestStateFoldsRecords(t *testing.T) {
	var s State
	phases := []engine.Phase{engine.Ready, engine.Running, engine.Running, engine.Running, engine.Running, engine.Running, engine.Ending, engine.Ending, engine.Ended}
	for i, r := range life() {
		s.Apply(r)
		if s.Phase != phases[i] {
			t.Errorf("after %s: %s, want %s", r.Kind, s.Phase, phases[i])
		}
		if s.Gone != (i == len(phases)-1) {
			t.Errorf("after %s: gone %t", r.Kind, s.Gone)
		}
	}
	if s.Cause != engine.Exited || s.Exit.Status != 3 || !s.Started.Equal(at(2)) || !s.Ended.Equal(at(3)) || len(s.Files) != 1 {
		t.Errorf("%+v", s)
	}
	var order []int
	for _, task := range s.Tasks {
		order = append(order, task.Step*10+task.Rank)
	}
	if !reflect.DeepEqual(order, []int{-10, 0, 1}) || s.Tasks[0].Running {
		t.Errorf("tasks %+v", s.Tasks)
	}
	// The whole state in one record says the same.
	var other State
	other.Apply(Record{Kind: KindState, State: s.Clone()})
	if !reflect.DeepEqual(s, other) {
		t.Errorf("%+v, want %+v", other, s)
	}
}

func TestJournal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	var want State
	records := life()
	for i, r := range records {
		j, err := OpenJournal(name) // as by another supervisor every time
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Add(r); err != nil {
			t.Fatal(err)
		}
		if err := j.Flush(i%2 == 0); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		want.Apply(r)
		got, err := ReadJournal(name)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Fatalf("after %s: %+v, %v; want %+v", r.Kind, got, err, want)
		}
		// A crash in the middle of a line loses that line only.
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"kind":"gone","time":"2026`); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadJournal(name); err != nil || !reflect.DeepEqual(*got, want) {
			t.Fatalf("with a torn line: %+v, %v", got, err)
		}
	}
	if s, err := ReadJournal(filepath.Join(t.TempDir(), "none")); err != nil || s.Phase != 0 {
		t.Errorf("no journal: %+v, %v", s, err)
	}
	if err := os.WriteFile(name, []byte("no journal\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadJournal(name); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a broken journal: %v", err)
	}
}

// What could not be written is kept and goes first.
func TestJournalKeepsWhatItCannotWrite(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	name := filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	disk := j.f
	j.f = full
	var want State
	for _, r := range life() {
		if err := j.Add(r); err != nil {
			t.Fatal(err)
		}
		if err := j.Flush(true); err == nil {
			t.Fatal("written to a full disk")
		}
		want.Apply(r)
	}
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
	j.f = disk
	if err := j.Flush(true); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadJournal(name); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}
