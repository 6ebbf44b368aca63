package control_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// journal writes the records of a file into an empty store.
func journal(t *testing.T, name string) *store.Memory {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st := new(store.Memory)
	epoch, err := st.Lead(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r store.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Append(t.Context(), epoch, []store.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

// TestAJournalOfTheFirstVersion: testdata/journal-1.jsonl was written by the first
// version of the control plane and is not to be changed.
func TestAJournalOfTheFirstVersion(t *testing.T) {
	h := newHand(2, 8)
	for _, r := range []engine.Report{
		{Ref: engine.Ref{Allocation: 2, Attempt: 2}, Job: 1, Phase: engine.Running},
		{Ref: engine.Ref{Allocation: 3, Attempt: 1}, Job: 2, Phase: engine.Running, Uncertain: true},
	} {
		h.put(r)
	}
	b := &bench{t: t, hand: h, store: journal(t, "testdata/journal-1.jsonl")}
	b.cfg = control.Config{Store: b.store, Pools: onHand(h), Keep: -1}
	b.open()
	defer b.close()
	want := []struct {
		name    string
		state   job.State
		flags   job.Flags
		attempt uint32
	}{
		{"1", job.Running, 0, 2},
		{"2_0", job.Running, job.Uncertain | job.Stopping, 1},
		{"2_2", job.Pending, job.Held, 0},
		{"2_4", job.Pending, job.Requeued, 0},
		{"5", job.Pending, job.Held, 0},
		{"6", job.Failed, 0, 1},
	}
	for range 2 { // from the journal alone, then from the projection
		for i, w := range want {
			v, err := b.ctl.Job(t.Context(), job.ID(i+1))
			if err != nil || v.Job.Name() != w.name || v.Job.State != w.state || v.Job.Flags != w.flags || v.Job.Attempt != w.attempt {
				t.Errorf("job %s is %s %s %b, attempt %d, %v; want %+v", w.name, v.Job.Name(), v.Job.State, v.Job.Flags, v.Job.Attempt, err, w)
			}
		}
		v, _ := b.ctl.Job(t.Context(), 1)
		if s := v.Job.Spec; s.Comment != "first" || s.Owner.User != "u" || s.Source.Given["job-name"] != "train" || len(v.Claims) != 1 {
			t.Errorf("job 1 is %+v", v)
		}
		waitProjected(t, b.ctl)
		b.reopen()
	}
	evs := b.events(19)
	if ev := evs[11]; ev.Kind != state.EventCancelled || ev.By != "me" || ev.Name != "2_4" {
		t.Errorf("the cancel is told as %+v", ev)
	}
}

func TestAJournalOfANewerVersionIsLeftAlone(t *testing.T) {
	st := new(store.Memory)
	epoch, err := st.Lead(t.Context(), "new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Append(t.Context(), epoch, []store.Record{{Kind: "teleported", Job: 1, Data: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	_, err = control.Open(t.Context(), control.Config{Store: st, Pools: onHand(newHand(1, 1))})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "newer") || fault.Remedy(err) == "" {
		t.Errorf("%v", err)
	}
}
