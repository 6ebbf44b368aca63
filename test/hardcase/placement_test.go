package hardcase

import (
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// A part of a GPU goes where it leaves room for what usually arrives, if the rules say so,
// and what that is outlives the server: of two GPUs with 0.5 and 0.7 left, where jobs ask
// for halves, a part of 0.2 belongs on the second one. On the first, which is tighter, it
// would leave 0.3, of which no half can be made. (Seen to fail with a server that does not
// tell the core what was learned.)
func TestPartsLeaveRoomForWhatArrives(t *testing.T) {
	p := plane.New(t, nodes(1, 2)).Start()
	rules := func(text string) {
		t.Helper()
		if _, err := p.SetPolicy(t.Context(), &api.SetPolicy{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	at := func(job string) int {
		t.Helper()
		return p.Until(job, "runs", plane.Is("RUNNING")).Claims[0].Devices[0]
	}
	end := func(job string) {
		t.Helper()
		p.Change(api.VerbCancel, job, nil)
		p.Ends(job, "CANCELLED")
	}
	gate := p.Gate("gate")
	part := func(hundredths string, more ...string) string {
		return p.Submit(gate.Wait, append(more, "--gres=mps:"+hundredths, "--mem=1")...)
	}

	rules("placement: tight\n")
	first := part("50")
	d := at(first)
	filler := part("60") // only the other one has room for it
	at(filler)
	other := part("30")
	if got := at(other); got == d {
		t.Fatalf("a part that the other GPU has just room for is on GPU %d", got)
	}
	end(filler)
	tight := part("20")
	if got := at(tight); got != d {
		t.Errorf("tight: it is on GPU %d, the fuller one is %d", got, d)
	}
	end(tight)

	rules("placement: learned\n")
	var usual []string
	for range 20 {
		usual = append(usual, part("50", "--hold"))
	}
	before := part("20")
	if got := at(before); got == d {
		t.Errorf("learned: it is on GPU %d, which leaves less than usually arrives", got)
	}
	end(before)
	for _, job := range usual {
		end(job)
	}
	p.Stop()
	p.Start()
	if got := at(part("20")); got == d {
		t.Errorf("after a restart it is on GPU %d: what was learned is forgotten", got)
	}
	gate.Open()
	p.Settle()
}
