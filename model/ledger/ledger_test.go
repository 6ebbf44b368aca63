package ledger_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// TestMain raises the number of drawn cases: some faults need several claims that meet.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		flag.Set("rapid.checks", "500")
	}
	os.Exit(m.Run())
}

// model is the ledger as a plain list: nothing is counted but anew.
type model struct {
	nodes map[string]fleet.Node
	live  map[ledger.ID]ledger.Allocation
	next  ledger.ID
	freed map[ledger.ID]bool
}

// fits says whether an allocation may be held, from the list alone.
func (m *model) fits(a ledger.Allocation) bool {
	for _, x := range m.live {
		if x.Job == a.Job || x.ID == a.ID {
			return false
		}
	}
	if len(a.Claims) == 0 || a.ID == 0 {
		return false
	}
	for _, c := range a.Claims {
		n, known := m.nodes[c.Node]
		if !known || n.State != fleet.Up || !m.nodeFits(n, a) {
			return false
		}
	}
	return true
}

func (m *model) nodeFits(n fleet.Node, a ledger.Allocation) bool {
	var used resource.Vector
	shares := map[int]int{}
	whole, others := false, false
	add := func(x ledger.Allocation, ours bool) {
		for _, c := range x.Claims {
			if c.Node != n.Name {
				continue
			}
			used = used.Add(c.Take)
			whole = whole || c.Whole
			others = others || !ours
			for _, d := range c.Devices {
				if d.Index >= len(n.Devices) {
					continue
				}
				if shares[d.Index] += int(d.Share) * int(n.Devices[d.Index].Memory); d.Bytes > 0 { // in thousandths of a byte
					shares[d.Index] += int(1000*d.Bytes) - int(d.Share)*int(n.Devices[d.Index].Memory)
				}
			}
		}
	}
	for _, x := range m.live {
		add(x, false)
	}
	add(a, true)
	for _, c := range a.Claims {
		for _, d := range c.Devices {
			if c.Node == n.Name && (d.Index >= len(n.Devices) || d.Share <= 0 || shares[d.Index] > 1000*int(n.Devices[d.Index].Memory)) {
				return false
			}
		}
	}
	return n.Capacity.Covers(used) && !(whole && others)
}

func draw(t *rapid.T, m *model) ledger.Allocation {
	a := ledger.Allocation{
		ID:      m.next - ledger.ID(rapid.IntRange(0, 1).Draw(t, "old number")),
		Job:     job.ID(rapid.IntRange(1, 6).Draw(t, "job")),
		Attempt: uint32(rapid.IntRange(1, 2).Draw(t, "attempt")), Epoch: 1,
	}
	for range rapid.IntRange(0, 3).Draw(t, "claims") {
		c := fleet.Claim{
			Node: fmt.Sprintf("n%d", rapid.IntRange(1, 3).Draw(t, "node")), Tasks: 1,
			Take:  resource.Vector{CPU: resource.CPUs(rapid.IntRange(0, 4).Draw(t, "cpus"))},
			Whole: rapid.IntRange(0, 4).Draw(t, "whole") == 0,
		}
		if rapid.IntRange(0, 3).Draw(t, "named") == 0 {
			c.Take = c.Take.With("tape", 1)
		}
		for i := range 3 {
			if rapid.IntRange(0, 2).Draw(t, "device") == 0 {
				c.Devices = append(c.Devices, fleet.DeviceClaim{
					Index: i, Share: rapid.SampledFrom([]resource.Share{300, 500, 1000, 0}).Draw(t, "share"),
					Bytes: rapid.SampledFrom([]resource.Amount{0, 0, 1, 27, 40, 53}).Draw(t, "bytes"),
				})
			}
		}
		a.Claims = append(a.Claims, c)
	}
	return a
}

// TestLedgerKeepsItsInvariants does anything in any order and compares with a list:
// what the ledger takes is exactly what fits, a number or a job is never held twice,
// a proof of another attempt frees nothing, and Check agrees after every step.
//
// Seen to fail with: Verify that looks at one claim at a time, Free that does not
// compare the attempt, apply that forgets to give a whole node back.
func TestLedgerKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ledger.New()
		m := &model{nodes: map[string]fleet.Node{}, live: map[ledger.ID]ledger.Allocation{}, next: 1, freed: map[ledger.ID]bool{}}
		t.Repeat(map[string]func(*rapid.T){
			"node": func(t *rapid.T) {
				n := fleet.Node{
					Name:     fmt.Sprintf("n%d", rapid.IntRange(1, 3).Draw(t, "node")),
					State:    rapid.SampledFrom([]fleet.NodeState{fleet.Up, fleet.Up, fleet.Up, fleet.Down}).Draw(t, "state"),
					Capacity: resource.Vector{CPU: resource.CPUs(4)}.With("tape", 1),
					Devices:  []fleet.Device{{Index: 0, Memory: 80}, {Index: 1, Memory: 60}},
				}
				l.SetNode(n)
				m.nodes[n.Name] = n
			},
			"hold": func(t *rapid.T) {
				a := draw(t, m)
				want := m.fits(a)
				if err := l.Hold(a); (err == nil) != want {
					t.Fatalf("hold %+v: %v; it fits: %v", a, err, want)
				}
				if want {
					a.Status = ledger.Held
					m.live[a.ID] = a
					m.next = max(m.next, a.ID+1)
				}
			},
			"restore": func(t *rapid.T) {
				a := draw(t, m)
				taken := a.ID == 0 || m.live[a.ID].ID != 0
				for _, x := range m.live {
					taken = taken || x.Job == a.Job
				}
				// The journal holds what was verified once: nothing that can never be held.
				if !taken && !m.fits(a) {
					return
				}
				if err := l.Restore(a); (err == nil) == taken {
					t.Fatalf("restore %+v: %v", a, err)
				} else if err == nil {
					a.Status = ledger.Held
					m.live[a.ID] = a
					m.next = max(m.next, a.ID+1)
				}
			},
			"free": func(t *rapid.T) {
				id := ledger.ID(rapid.IntRange(0, int(m.next)).Draw(t, "allocation"))
				attempt := uint32(rapid.IntRange(1, 2).Draw(t, "attempt"))
				a, live := m.live[id]
				err := l.Free(id, attempt)
				switch {
				case !live && fault.KindOf(err) != fault.NotFound,
					live && a.Attempt != attempt && fault.KindOf(err) != fault.Conflict,
					live && a.Attempt == attempt && err != nil:
					t.Fatalf("free %d of attempt %d: %v; live %v, held by attempt %d", id, attempt, err, live, a.Attempt)
				}
				if err == nil {
					delete(m.live, id)
				}
			},
			"doubt": func(t *rapid.T) {
				id := ledger.ID(rapid.IntRange(0, int(m.next)).Draw(t, "allocation"))
				doubt := rapid.Bool().Draw(t, "doubt")
				a, live := m.live[id]
				if err := l.MarkUncertain(id, doubt); (err == nil) != live {
					t.Fatalf("mark %d: %v, live %v", id, err, live)
				}
				if a.Status = ledger.Held; doubt {
					a.Status = ledger.Uncertain
				}
				if live {
					m.live[id] = a
				}
			},
			"": func(t *rapid.T) { m.agree(t, l) },
		})
	})
}

// agree compares everything that the ledger tells with the list.
func (m *model) agree(t *rapid.T, l *ledger.Ledger) {
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if l.NextID() != m.next {
		t.Fatalf("the next number is %d, want %d", l.NextID(), m.next)
	}
	want := slices.SortedFunc(maps.Values(m.live), func(a, b ledger.Allocation) int { return int(a.ID) - int(b.ID) })
	if diff := cmp.Diff(want, l.Live(), cmp.Transformer("nil", func(c []fleet.Claim) []fleet.Claim { return append([]fleet.Claim{}, c...) })); diff != "" && len(want)+len(l.Live()) > 0 {
		t.Fatalf("live allocations (-want +got):\n%s", diff)
	}
	for id := job.ID(1); id <= 6; id++ {
		a, ok := l.Of(id)
		if ok != slices.ContainsFunc(want, func(x ledger.Allocation) bool { return x.Job == id && x.ID == a.ID }) {
			t.Fatalf("job %d holds %d: %v", id, a.ID, ok)
		}
		if b, found := l.Get(a.ID); found != ok || b.ID != a.ID && ok {
			t.Fatalf("allocation %d: %v", a.ID, found)
		}
	}
}

// TestWhatIsHeldSurvivesItsNode: a node that shrinks, or that the ledger never heard
// of, keeps what is held on it, and takes nothing more.
func TestWhatIsHeldSurvivesItsNode(t *testing.T) {
	l := ledger.New()
	claim := []fleet.Claim{{Node: "n", Tasks: 1, Take: resource.Vector{CPU: resource.CPUs(4)}}}
	if err := l.Restore(ledger.Allocation{ID: 5, Job: 1, Attempt: 1, Claims: claim}); err != nil {
		t.Fatal(err)
	}
	if err := l.Verify(&ledger.Allocation{ID: 6, Job: 2, Claims: claim}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a node that is not known: %v", err)
	}
	n := fleet.Node{Name: "n", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(2)}}
	l.SetNode(n)
	if err := l.Check(); err != nil {
		t.Errorf("a node smaller than what is held on it: %v", err)
	}
	if err := l.Hold(ledger.Allocation{ID: 6, Job: 2, Claims: claim}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a node that is full: %v", err)
	}
	if l.NextID() != 6 {
		t.Errorf("the next number is %d: one that the journal has seen must not come again", l.NextID())
	}
	n.Capacity.CPU = resource.CPUs(8)
	l.SetNode(n)
	if err := l.Hold(ledger.Allocation{ID: 6, Job: 2, Claims: claim}); err != nil {
		t.Error(err)
	}
}

// TestClaimsAreCopied: whoever made an allocation may go on writing to its claims.
func TestClaimsAreCopied(t *testing.T) {
	l := ledger.New()
	l.SetNode(fleet.Node{Name: "n", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(4)}})
	claims := []fleet.Claim{{Node: "n", Tasks: 1, Take: resource.Vector{CPU: resource.CPUs(4)}}}
	if err := l.Hold(ledger.Allocation{ID: 1, Job: 1, Claims: claims}); err != nil {
		t.Fatal(err)
	}
	claims[0].Take.CPU = 0
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if a, _ := l.Of(1); a.Claims[0].Take.CPU != resource.CPUs(4) {
		t.Errorf("the ledger holds %+v", a.Claims)
	}
}

// TestNothingIsTakenByLess: a claim of less than nothing would free what others hold.
func TestNothingIsTakenByLess(t *testing.T) {
	l := ledger.New()
	l.SetNode(fleet.Node{Name: "n", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(4)}.With("tape", 1)})
	for _, take := range []resource.Vector{{CPU: -1}, {Memory: -1}, {Disk: -1}, resource.Vector{}.With("tape", -1)} {
		a := ledger.Allocation{ID: 1, Job: 1, Claims: []fleet.Claim{{Node: "n", Take: take}}}
		if err := l.Verify(&a); err == nil {
			t.Errorf("a claim of %+v was taken", take)
		}
	}
}

// TestClaimsOfOneAllocationAddUp: two groups of a gang on one node count together.
func TestClaimsOfOneAllocationAddUp(t *testing.T) {
	l := ledger.New()
	l.SetNode(fleet.Node{Name: "n", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(4)}, Devices: []fleet.Device{{Index: 0}}})
	half := fleet.Claim{Node: "n", Devices: []fleet.DeviceClaim{{Index: 0, Share: 600}}}
	cpus := fleet.Claim{Node: "n", Take: resource.Vector{CPU: resource.CPUs(3)}}
	for _, c := range []fleet.Claim{half, cpus} {
		two := c
		two.Group = 1
		if err := l.Verify(&ledger.Allocation{ID: 1, Job: 1, Claims: []fleet.Claim{c}}); err != nil {
			t.Errorf("%+v alone: %v", c, err)
		}
		if err := l.Verify(&ledger.Allocation{ID: 1, Job: 1, Claims: []fleet.Claim{c, two}}); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%+v twice: %v", c, err)
		}
	}
}

func TestUsedIsWhatClaimsTake(t *testing.T) {
	l := ledger.New()
	l.SetNode(fleet.Node{Name: "n", State: fleet.Up, Capacity: resource.Vector{CPU: 4}, Devices: []fleet.Device{{Index: 2}}})
	a := ledger.Allocation{ID: 1, Job: 1, Attempt: 1, Claims: []fleet.Claim{{
		Node: "n", Take: resource.Vector{CPU: 3}, Devices: []fleet.DeviceClaim{{Index: 2, Share: 500}},
	}}}
	if err := l.Hold(a); err != nil {
		t.Fatal(err)
	}
	if used, shares := l.Used(fleet.NodeKey{Name: "n"}); used.CPU != 3 || shares[2] != 500 {
		t.Errorf("used %+v, shares %v", used, shares)
	}
	if used, shares := l.Used(fleet.NodeKey{Name: "m"}); !used.IsZero() || shares != nil {
		t.Errorf("an unknown node: %+v, %v", used, shares)
	}
}
