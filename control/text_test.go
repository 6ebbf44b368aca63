package control_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
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

// TestNULCharactersAreRefused: an environment is kept with one behind each variable,
// so one inside would make two of one, past what the site filters.
func TestNULCharactersAreRefused(t *testing.T) {
	b := open(t, newHand(1, 8))
	for what, spoil := range map[string]func(*control.Submission){
		"environment": func(s *control.Submission) { s.Env = []string{"A=1", "B=2\x00LD_PRELOAD=/tmp/x"} },
		"script": func(s *control.Submission) {
			s.Spec.Program.Kind, s.Script = job.Batch, []byte("#!/bin/sh\necho\x00\n")
		},
		"name":      func(s *control.Submission) { s.Spec.Name = "a\x00b" },
		"directory": func(s *control.Submission) { s.Spec.WorkDir = "/tmp\x00/x" },
		"output":    func(s *control.Submission) { s.Spec.Output.Stdout = "out\x00" },
		"argument":  func(s *control.Submission) { s.Spec.Program.Args = []string{"cat", "a\x00"} },
		"export":    func(s *control.Submission) { s.Spec.Env.Export = "ALL,A=1\x002" },
		"set":       func(s *control.Submission) { s.Spec.Env.Set = []string{"A=1\x00B=2"} },
	} {
		s := control.Submission{Spec: gang(1, 1)}
		spoil(&s)
		if _, err := b.ctl.Submit(t.Context(), s); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
