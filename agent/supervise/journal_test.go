package supervise

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestAJournalThatIsLostDoesNotHoldItsNode: where a disk fails and has lost what stood in the journal,
// a supervisor writes it anew from what it knows, with all that came meanwhile, and is over.
//
// Seen to fail with: a journal that is only flushed again; the words of the last fact, or those before
// the disk failed, lost.
func TestAJournalThatIsLostDoesNotHoldItsNode(t *testing.T) {
	for _, last := range []string{"", "the last words"} {
		name := filepath.Join(t.TempDir(), "journal")
		j, err := attempt.OpenJournal(name)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close() //nolint:errcheck // what is in it was read
		ref := engine.Ref{Allocation: 7, Attempt: 1}
		h := &supervisorSlot{log: slog.New(slog.NewTextHandler(io.Discard, nil)), journal: j, control: &control{}}
		s := newSupervisor(h, &attempt.Launch{Ref: ref, Nodes: []fleet.Node{{Name: "n1"}}}, 0)
		if err := s.recordBegin(); err != nil {
			t.Fatal(err)
		}
		s.recordFact(attempt.Record{Kind: attempt.KindReady})
		s.recordFact(attempt.Record{Kind: attempt.KindRun})
		j.On(func() error { return errors.Join(os.Truncate(name, 0), unix.EIO) })
		s.recordFact(attempt.Record{Kind: attempt.KindExit, Exit: &job.ExitCode{Status: 3}, Cause: engine.Exited, Text: "its words"})
		s.recordFact(attempt.Record{Kind: attempt.KindGone, Text: last})
		if s.isOver() || s.due.save.IsZero() {
			t.Fatal("it is over, and nothing is written down")
		}
		j.On(func() error { return unix.EIO })
		s.handleDeadlines(s.due.save)
		if s.isOver() || s.due.save.IsZero() {
			t.Error("it is over on a disk that fails still")
		}
		j.On(nil)
		s.handleDeadlines(s.due.save)
		if !s.isOver() {
			t.Error("it is not over")
		}
		want := "its words"
		if last != "" {
			want = last
		}
		got, sat, err := attempt.ReadJournal(name, ref)
		if err != nil || !sat || got.Unsaved || !got.Gone || got.Exit == nil || got.Exit.Status != 3 || got.Started.IsZero() || got.Text != want {
			t.Errorf("%+v, %t, %v", got, sat, err)
		}
		if s.state.Text != want {
			t.Errorf("it says %q", s.state.Text)
		}
	}
}
