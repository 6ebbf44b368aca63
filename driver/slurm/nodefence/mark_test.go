package nodefence

import (
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
)

// What an Extra says beside our mark stays as it is, and comes back whole.
func TestExtraKeepsWhatOthersWrote(t *testing.T) {
	f, g := engine.NodeFence{Epoch: 5, Reason: `of "b", {x}`}, engine.NodeFence{Epoch: 6}
	for extra, want := range map[string]string{
		"":                `{"coxswain_fence":{"epoch":5,"reason":"of \"b\", {x}"}}`,
		`{"rack": 7}`:     `{"coxswain_fence":{"epoch":5,"reason":"of \"b\", {x}"},"rack": 7}`,
		`rack 7, row {b}`: `rack 7, row {b} {"coxswain_fence":{"epoch":5,"reason":"of \"b\", {x}"}}`,
	} {
		with := withMark(extra, f)
		if with != want {
			t.Errorf("%q with the mark is %q, want %q", extra, with, want)
		}
		n := site.Node{State: "idle+drain", Extra: with, Reason: "fan is noisy"}
		if m := Read(&n); m.NodeFence != f || !m.Stands || m.Ours {
			t.Errorf("%q is read as %+v", with, m)
		}
		if again := withMark(with, g); withoutMark(again) != extra || withMark(extra, g) != again {
			t.Errorf("%q with another mark is %q, and without %q", extra, again, withoutMark(again))
		}
	}
}

// Where the Extra was written over, the reason of the drain still says whose it is; an undrained node has no fence.
func TestMarkInReason(t *testing.T) {
	f := engine.NodeFence{Epoch: 5, Reason: "pool b has it"}
	for _, c := range []struct {
		state, reason, extra  string
		epoch                 uint64
		stands, ours, drained bool
	}{
		{"idle+drain", formatReason(f), "", 5, true, true, true},
		{"mixed+drain*", formatReason(f), "", 5, true, true, true},
		{"DRAINED", formatReason(f), withMark("", f), 5, true, true, true},
		{"idle", "", withMark("", f), 5, false, false, false},
		{"idle", formatReason(f), "", 0, false, false, false},
		{"idle+drain", "fan is noisy", "", 0, false, false, true},
		{"idle+drain", "coxswain: fence epoch x: ", "", 0, false, false, true},
	} {
		m := Read(&site.Node{State: c.state, Reason: c.reason, Extra: c.extra})
		if m.Epoch != c.epoch || m.Stands != c.stands || m.Ours != c.ours || m.Drained != c.drained {
			t.Errorf("%+v is read as %+v", c, m)
		}
	}
	if got := formatReason(engine.NodeFence{Epoch: 1, Reason: "a\nb"}); got != "coxswain: fence epoch 1: a b" {
		t.Errorf("%q", got)
	}
}
