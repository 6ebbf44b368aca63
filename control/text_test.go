package control_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/fault"
)

// The journal and what engines keep are JSON, which has no bytes beside UTF-8: a
// name that would come back changed is refused.
func TestTextThatTheJournalWouldChangeIsRefused(t *testing.T) {
	b := open(t, newHand(1, 8))
	s := gang(1, 1)
	s.Program.Args = []string{"cat", "caf\xe9"}
	if _, err := b.ctl.Submit(t.Context(), control.Submission{Spec: s}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an argument in Latin-1: %v", err)
	}
	s = gang(1, 1)
	s.Program.Args, s.WorkDir = []string{"cat", "café \ufffd"}, "/tmp/ü"
	if _, err := b.ctl.Submit(t.Context(), control.Submission{Spec: s}); err != nil {
		t.Errorf("UTF-8: %v", err)
	}
}
