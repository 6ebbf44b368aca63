package control_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

func hours(nodes, gpus, h int) *job.Spec {
	s := gang(nodes, gpus)
	s.TimeLimit = time.Duration(h) * time.Hour
	return s
}

func array(s *job.Spec, tasks uint32) *job.Spec {
	s.Array = &job.ArraySpec{}
	for i := range tasks {
		s.Array.Indices = append(s.Array.Indices, i)
	}
	return s
}

// TestWhatIf: two nodes that are held for four hours; one job waits for both of them.
func TestWhatIf(t *testing.T) {
	b := open(t, newHand(2, 8))
	b.launched(b.submit(hours(1, 8, 4)))
	b.launched(b.submit(hours(1, 8, 2)))
	waits := b.submit(hours(2, 8, 1))
	b.until(waits, "known to the core", func(v state.View) bool { return v.Why.Code != reason.None })
	for _, c := range []struct {
		why   string
		q     query.WhatIf
		moved int
		hours int // until the job that waits starts; -1: not at all
	}{
		{"two nodes more", query.WhatIf{AddNodes: 2}, 1, 0},
		{"one node more", query.WhatIf{AddNodes: 1}, 1, 2},
		{"one node less", query.WhatIf{Drain: "n2"}, 1, -1},
		{"an array", query.WhatIf{Submit: []*job.Spec{array(hours(1, 1, 1), 3)}}, 0, 4},
		{"another job", query.WhatIf{Submit: []*job.Spec{hours(1, 1, 1)}}, 0, 4},
	} {
		got, err := b.ctl.WhatIf(t.Context(), &c.q)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if len(got.Moved) != c.moved {
			t.Errorf("%s: %d jobs start at another time: %+v", c.why, len(got.Moved), got.Moved)
		}
		for _, m := range got.Moved {
			after := -1
			if m.After != 0 {
				after = int((time.Duration(m.After)*time.Nanosecond - time.Duration(got.Now.UnixNano()) + time.Minute).Hours())
			}
			if m.Job != waits || after != c.hours {
				t.Errorf("%s: job %d starts after %d h, want job %d after %d", c.why, m.Job, after, waits, c.hours)
			}
		}
		invented := len(c.q.Submit)
		if invented > 0 && c.q.Submit[0].Array != nil {
			invented = len(c.q.Submit[0].Array.Indices)
		}
		if n := len(got.Submitted); n != invented || n > 0 && len(got.Starts) != n {
			t.Errorf("%s: %d jobs were invented, %d start", c.why, n, len(got.Starts))
		}
	}
	for _, c := range []struct {
		q    query.WhatIf
		kind fault.Kind
	}{
		{query.WhatIf{}, fault.Invalid},
		{query.WhatIf{AddNodes: -1}, fault.Invalid},
		{query.WhatIf{AddNodes: 1, Like: "n99"}, fault.NotFound},
		{query.WhatIf{AddNodes: 1, Pool: "q"}, fault.NotFound},
		{query.WhatIf{Drain: "rack-9"}, fault.NotFound},
		{query.WhatIf{Drain: "n["}, fault.Invalid},
		{query.WhatIf{Quotas: map[string]int64{"nobody": 4}}, fault.NotFound},
	} {
		if _, err := b.ctl.WhatIf(t.Context(), &c.q); fault.KindOf(err) != c.kind || fault.Remedy(err) == "" {
			t.Errorf("%+v: %v (%v), want %v with a remedy", c.q, err, fault.Remedy(err), c.kind)
		}
	}
}

// TestExpectedStart: what is expected of a job that waits is the end of the one before it, by
// its limit while nothing is known, by what such jobs took once some have ended.
func TestExpectedStart(t *testing.T) {
	b := open(t, newHand(1, 8))
	expected := func(id job.ID) time.Duration {
		t.Helper()
		b.until(id, "told why", func(v state.View) bool { return v.Why.Code != "" })
		w, err := b.ctl.Why(t.Context(), id)
		if err != nil || w.Expected.Start.IsZero() {
			t.Fatalf("job %d: %+v, %v", id, w, err)
		}
		return time.Until(w.Expected.Start)
	}
	v := b.launched(b.submit(hours(1, 8, 10)))
	id := b.submit(hours(1, 8, 10))
	if d := expected(id); d < 9*time.Hour || d > 10*time.Hour {
		t.Errorf("expected in %v, want 10 h", d)
	}
	for range 3 {
		began := time.Now().Add(-2 * time.Hour)
		b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Running, Started: began})
		b.until(v.Job.ID, "started", func(v state.View) bool { return !v.Job.Started.IsZero() })
		b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Ended, Gone: true, Cause: engine.Exited, Started: began, Ended: time.Now()})
		b.state(v.Job.ID, job.Completed)
		v = b.launched(id)
		id = b.submit(hours(1, 8, 10))
	}
	if d := expected(id); d < 110*time.Minute || d > 2*time.Hour+time.Minute {
		t.Errorf("expected in %v, want 2 h", d)
	}
	b.reopen() // a job whose start nobody has reported is taken to begin now
	if d := expected(id); d < 110*time.Minute || d > 2*time.Hour+time.Minute {
		t.Errorf("after a restart expected in %v, want 2 h", d)
	}
}
