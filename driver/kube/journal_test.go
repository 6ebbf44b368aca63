package kube

import (
	"os"
	"sync/atomic"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/appendlog"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/engine/kit/kittest"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestJournalsOfEarlierVersions are read and written as that version did it.
//
// Seen to fail with: a field of an entry that is renamed; an attempt that is rewritten without its suspension.
func TestJournalsOfEarlierVersions(t *testing.T) {
	kittest.Compatible(t, "testdata", func(path, name string) (*kit.Journal[entry, life], error) {
		j, err := openJournal(path, name)
		if err != nil {
			return nil, err
		}
		return j.Journal, nil
	})
}

// TestACallThatCannotBeWrittenDown is made again by who called: nothing is certain of it. Else a job
// that is cancelled while the disk is full would run on.
//
// Seen to fail with: the error of the disk as it is.
func TestACallThatCannotBeWrittenDown(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	var full atomic.Bool
	e.log.On(appendlog.Disk{File: func(f *os.File) error {
		if full.Load() {
			return os.ErrClosed
		}
		return f.Sync()
	}})
	l, other := launchOn(1, "n1"), engine.Ref{Allocation: 2, Attempt: 1}
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s.bound(1)
	full.Store(true)
	for what, err := range map[string]error{
		"a stop": e.Stop(t.Context(), l.Ref, engine.Stop{}), "a stop of what is not known": e.Stop(t.Context(), other, engine.Stop{}), "a forget": e.Forget(t.Context(), other),
	} {
		if fault.KindOf(err) != fault.Unavailable || fault.Remedy(err) == "" {
			t.Errorf("%s: %v, %v; %q", what, fault.KindOf(err), err, fault.Remedy(err))
		}
	}
	full.Store(false)
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	until(t, "it is being ended", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Phase >= engine.Ending
	})
}
