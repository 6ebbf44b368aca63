package attempt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
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

var me = engine.Ref{Allocation: 3, Attempt: 1}

func TestJournal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	var want State
	records := append([]Record{{Kind: KindTake, Ref: me, Time: at(0)}}, life()...)
	for i, r := range records {
		j, err := OpenJournal(name) // as by another process every time
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
		got, sat, err := ReadJournal(name, me)
		if err != nil || !sat || !reflect.DeepEqual(*got, want) {
			t.Fatalf("after %s: %+v, %t, %v; want %+v", r.Kind, got, sat, err, want)
		}
		// A line that was not written whole is as if it were not there.
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"kind":"gone"`); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got, _, err := ReadJournal(name, me); err != nil || !reflect.DeepEqual(*got, want) {
			t.Fatalf("with a torn line: %+v, %v", got, err)
		}
	}
	if s, sat, err := ReadJournal(name, engine.Ref{Allocation: 4, Attempt: 1}); err != nil || sat || s.Phase != 0 {
		t.Errorf("of another attempt: %+v, %t, %v", s, sat, err)
	}
	if s, sat, err := ReadJournal(filepath.Join(t.TempDir(), "none"), me); err != nil || sat || s.Phase != 0 {
		t.Errorf("no journal: %+v, %t, %v", s, sat, err)
	}
	if err := os.WriteFile(name, []byte("no journal\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadJournal(name, me); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a broken journal: %v", err)
	}
}

// A slot's journal tells of the attempt that sat there last, and does not grow with
// their number.
func TestJournalOfManyAttempts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for n := range uint64(300) {
		ref := engine.Ref{Allocation: n + 1, Attempt: 1}
		if err := j.Begin(Record{Ref: ref, Time: at(0)}); err != nil {
			t.Fatal(err)
		}
		for _, r := range life()[:1+n%9] {
			if err := j.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Flush(false); err != nil {
			t.Fatal(err)
		}
		var want State
		for _, r := range life()[:1+n%9] {
			want.Apply(r)
		}
		if got, sat, err := ReadJournal(name, ref); err != nil || !sat || !reflect.DeepEqual(*got, want) {
			t.Fatalf("attempt %d: %+v, %t, %v; want %+v", n, got, sat, err, want)
		}
		if st, err := os.Stat(name); err != nil || st.Size() > reserve {
			t.Fatalf("after %d attempts: %v, %v", n, st.Size(), err)
		}
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
	if err := j.Begin(Record{Ref: me}); err != nil {
		t.Fatal(err)
	}
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
	if got, _, err := ReadJournal(name, me); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAJournalWhoseDiskFails: after a sync that failed, what was written before is written again,
// by whatever process it was, and then made durable. What cannot be read again is not made up, and
// goes with the next attempt.
//
// Seen to fail with: a Flush that asks the disk again and writes nothing.
func TestAJournalWhoseDiskFails(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	var want State
	open := func() *Journal {
		j, err := OpenJournal(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
	note := func(j *Journal, r Record) {
		if err := j.Add(r); err != nil {
			t.Fatal(err)
		}
		want.Apply(r)
	}
	first := open()
	if err := first.Begin(Record{Ref: me}); err != nil {
		t.Fatal(err)
	}
	note(first, life()[0])
	if err := first.Flush(false); err != nil {
		t.Fatal(err)
	}
	j := open()
	j.disk = func() error { return unix.EIO }
	note(j, life()[1])
	if err := j.Flush(true); !errors.Is(err, unix.EIO) {
		t.Fatal(err)
	}
	j.disk = nil
	if err := os.Truncate(name, 0); err != nil { // what the disk has of it
		t.Fatal(err)
	}
	note(j, life()[2])
	if err := j.Flush(true); err != nil {
		t.Fatal(err)
	}
	if got, sat, err := ReadJournal(name, me); err != nil || !sat || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %t, %v; want %+v", got, sat, err, want)
	}
	j.disk = func() error { return errors.Join(os.Truncate(name, 0), unix.EIO) }
	for range 2 {
		if err := j.Flush(true); err == nil {
			t.Error("what is lost is durable")
		}
		j.disk = nil
	}
	next := engine.Ref{Allocation: 4, Attempt: 1}
	if err := errors.Join(j.Begin(Record{Ref: next}), j.Flush(true)); err != nil {
		t.Error(err)
	}
	if _, sat, err := ReadJournal(name, next); err != nil || !sat {
		t.Errorf("%t, %v", sat, err)
	}
}

// TestWhatWasToBeDurable: what a call could not make durable the next one does, whatever it is asked,
// before it says that all is written.
//
// Seen to fail with: a Flush that makes durable only what it is asked itself; one that does it for
// what a sync lost, and not for what there was no room for.
func TestWhatWasToBeDurable(t *testing.T) {
	shut, err := os.Open("/dev/null") // for reading: nothing is written to it
	if err != nil {
		t.Fatal(err)
	}
	defer shut.Close() //nolint:errcheck // nothing was written
	for _, where := range []string{"the sync", "the write", "the write after a sync"} {
		j, err := OpenJournal(filepath.Join(t.TempDir(), "journal"))
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close() //nolint:errcheck // nothing counts
		if err := errors.Join(j.Begin(Record{Ref: me}), j.Flush(false)); err != nil {
			t.Fatal(err)
		}
		var say error
		durable := 0
		j.disk = func() error {
			if say == nil {
				durable++
			}
			return say
		}
		add := func(n int) {
			if err := j.Add(life()[n]); err != nil {
				t.Fatal(err)
			}
		}
		add(0)
		if where != "the write" {
			say = unix.EIO
			if err := j.Flush(true); !errors.Is(err, unix.EIO) {
				t.Errorf("%s: %v", where, err)
			}
			say = nil
		}
		if where != "the sync" {
			own := j.f
			j.f = shut
			if err := j.Flush(true); err == nil {
				t.Errorf("%s: it was written", where)
			}
			j.f = own
		}
		add(1)
		for range 2 {
			if err := j.Flush(false); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
		if durable != 1 {
			t.Errorf("%s: made durable %d times", where, durable)
		}
	}
}

// TestAJournalThatIsWrittenAnew: where what stood in a journal is lost, the state alone takes its
// place, goes on, and is there for others, also where the disk fails again meanwhile. As long as that
// fails the old file stays: who finds an empty one would take it that the attempt never sat down.
//
// Seen to fail with: a journal that is written anew and stays bad; a new file in place of the old one
// before it is durable; what was queued written a second time.
func TestAJournalThatIsWrittenAnew(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() //nolint:errcheck // what is in it was read
	var want State
	note := func(r Record) {
		t.Helper()
		if err := j.Add(r); err != nil {
			t.Fatal(err)
		}
		want.Apply(r)
	}
	is := func(when string) {
		t.Helper()
		if got, sat, err := ReadJournal(name, me); err != nil || !sat || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, %t, %v; want %+v", when, got, sat, err, want)
		}
	}
	if err := j.Begin(Record{Ref: me}); err != nil {
		t.Fatal(err)
	}
	note(life()[0])
	if err := j.Flush(true); err != nil {
		t.Fatal(err)
	}
	for n, r := range life()[1:4] {
		good, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		spoilt := bytes.Replace(good, []byte(`"kind"`), []byte(`"king"`), 1)
		j.On(func() error { return errors.Join(os.WriteFile(name, spoilt, 0o600), unix.EIO) })
		note(r)
		if err := j.Flush(true); err == nil || !j.Bad() {
			t.Fatalf("round %d: %v, %t", n, err, j.Bad())
		}
		note(Record{Kind: KindNote, Text: "queued meanwhile"})
		if err := j.Flush(false); err == nil {
			t.Errorf("round %d: it was written behind what is lost", n)
		}
		j.On(func() error { return unix.EIO })
		if err := j.Anew(me, want.Clone()); !errors.Is(err, unix.EIO) || !j.Bad() {
			t.Errorf("round %d, on a disk that fails: %v, %t", n, err, j.Bad())
		}
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, spoilt) {
			t.Errorf("round %d: the old file is %q, %v", n, b, err)
		}
		j.On(nil)
		if err := j.Anew(me, want.Clone()); err != nil || j.Bad() {
			t.Errorf("round %d: %v, %t", n, err, j.Bad())
		}
		is("written anew")
		note(life()[4+n])
		if err := j.Flush(true); err != nil {
			t.Error(err)
		}
		is("going on")
	}
	if b, err := os.ReadFile(name); err != nil || bytes.Count(b, []byte("\n")) != 3 {
		t.Errorf("%q, %v", b, err)
	}
}

// TestCauseOf: a fault of the program or of its owner's quota ends the job; a machine that is short
// of something is tried again, whatever could not be done for it.
//
// Seen to fail with: a full quota of the output's owner taken for a full machine.
func TestCauseOf(t *testing.T) {
	program := func(err error) error { return ProgramError{Err: fmt.Errorf("output file x: %w", err)} }
	for _, tt := range []struct {
		err  error
		want engine.Cause
	}{
		{program(unix.ENOENT), engine.Refused},
		{program(unix.EDQUOT), engine.Refused},
		{program(unix.EAGAIN), engine.Unready},
		{program(unix.ENFILE), engine.Unready},
		{fmt.Errorf("journal: %w", unix.EDQUOT), engine.Unready},
		{fmt.Errorf("journal: %w", unix.ENOSPC), engine.Unready},
		{errors.New("no such kind of program"), engine.LaunchFailed},
	} {
		if got := CauseOf(tt.err); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.err, got, tt.want)
		}
	}
}
