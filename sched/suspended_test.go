package sched_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// What TestLawsWithPreemption holds to of jobs that make room by being suspended: the
// book has them with their memory alone while a step is made, so that what others take is
// checked against that, and between steps with what the core says that they keep, which
// must be theirs and free. A job goes on when all of its claims fit the book, at once.
//
// Seen to fail with: a suspended job that goes on with part of its claims. Not seen to find:
// regain after board.

// bare is what a suspended job holds whatever happens.
func bare(claims []fleet.Claim) []fleet.Claim {
	out := slices.Clone(claims)
	for i := range out {
		out[i].Take.CPU, out[i].Devices, out[i].Whole = 0, nil, false
	}
	return out
}

// lend enters suspended jobs with what they hold whatever happens.
func (w *world) lend() {
	for id, full := range w.parked {
		h := w.book.Held[id]
		h.Claims, h.Until = bare(full), 0
		w.book.Held[id] = h
	}
}

// keep enters suspended jobs with what the core says that they keep.
func (w *world) keep(t *rapid.T) {
	seen := 0
	w.core.Kept(func(id job.ID, kept []fleet.Claim) {
		full := w.parked[id]
		if len(full) != len(kept) {
			t.Fatalf("job %d is parked with %+v of %+v", id, kept, full)
		}
		whole := true
		for i := range kept {
			for _, d := range kept[i].Devices {
				if !slices.Contains(full[i].Devices, d) {
					t.Fatalf("job %d keeps a device that is not its own: %+v of %+v", id, kept, full)
				}
			}
			whole = whole && kept[i].Take.CPU == full[i].Take.CPU && len(kept[i].Devices) == len(full[i].Devices) && kept[i].Whole == full[i].Whole
		}
		if whole && !w.stopping[id] && w.core.Nominees() == 0 {
			t.Fatalf("job %d has all that it holds, and is parked", id)
		}
		h := w.book.Held[id]
		h.Claims = kept
		w.book.Held[id] = h
		seen++
	})
	if seen != len(w.parked) {
		t.Fatalf("the core has %d parked jobs, there are %d", seen, len(w.parked))
	}
	w.together(t)
}

// together looks for devices that are held twice.
func (w *world) together(t *rapid.T) {
	type device struct {
		node  string
		index int
	}
	held := map[device]resource.Amount{}
	for _, h := range w.book.Held {
		for _, c := range h.Claims {
			for _, d := range c.Devices {
				const memory = 80 * resource.GiB // no device has more; the node may be gone, or another one
				if held[device{c.Node, d.Index}] += resource.Load(memory, d.Share, d.Bytes); held[device{c.Node, d.Index}] > resource.FullLoad(memory) {
					t.Fatalf("device %d of %s is held twice", d.Index, c.Node)
				}
			}
		}
	}
}

// resumed lets a suspended job go on.
func (w *world) resumed(t *rapid.T, id job.ID) {
	full := w.parked[id]
	if full == nil || w.stopping[id] {
		t.Fatalf("job %d goes on, and is not parked or is being ended", id)
	}
	h := w.book.Held[id]
	h.Claims = full
	w.book.Held[id] = h
	delete(w.parked, id)
	w.together(t)
}
