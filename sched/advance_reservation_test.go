package sched_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// reservations draws some in advance: once, each hour, or always ahead.
func reservations(t *rapid.T) (out []account.Reservation) {
	for i := range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "in advance") {
		r := account.Reservation{
			Name:     []string{"r", "s"}[i],
			Duration: account.Duration(time.Duration(rapid.IntRange(1, 15).Draw(t, "lasts")) * time.Second),
			Nodes:    []string{rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "on")},
			Overlap:  true,
		}
		at := time.Unix(3600, 0).Add(time.Duration(rapid.IntRange(-5, 25).Draw(t, "begins")) * time.Second)
		switch rapid.IntRange(0, 4).Draw(t, "form") {
		case 0:
			r.Ahead = account.Duration(time.Duration(rapid.IntRange(1, 10).Draw(t, "ahead")) * time.Second)
		case 1:
			r.Every, r.Start = "hour", at.Add(-time.Hour).UTC().Format(time.RFC3339)
		default:
			r.Start = at.UTC().Format(time.RFC3339)
		}
		if rapid.Bool().Draw(t, "all") {
			r.Nodes = nil
		}
		r.Overlap = rapid.Bool().Draw(t, "overlap")
		r.Flex = rapid.IntRange(0, 3).Draw(t, "flex") == 0
		r.Users = []string{"u", ""}
		out = append(out, r)
	}
	return out
}

// occurrence is the first time at which a reservation holds after an instant.
func occurrence(r *account.Reservation, at sched.Instant) (begin, end sched.Instant) {
	if r.Ahead > 0 {
		return at + sched.Instant(r.Ahead), at + sched.Instant(r.Ahead) + sched.Instant(r.Duration)
	}
	start, _ := time.Parse(time.RFC3339, r.Start)
	begin = sched.Instant(start.UnixNano())
	for r.Every == "hour" && begin+sched.Instant(r.Duration) <= at {
		begin += sched.Instant(time.Hour)
	}
	return begin, begin + sched.Instant(r.Duration)
}

// respects checks that a start keeps to the reservations.
func (w *world) respects(t *rapid.T, d sched.Start, spec *job.Spec) {
	for _, c := range d.Claims {
		if r := w.against(spec, c.Node, d.Until); r != "" {
			t.Fatalf("job %d starts at %d until %d on node %s: %s", d.Job, w.now, d.Until, c.Node, r)
		}
	}
}

// openTo reports whether reservations let a job start on a node now.
func (w *world) openTo(spec *job.Spec, node string) bool {
	until := sched.Instant(0)
	if spec.TimeLimit > 0 {
		until = w.now + sched.Instant(spec.TimeLimit)
	}
	if own := w.reservation(spec.Reservation); own != nil && !own.Flex {
		if _, end := occurrence(own, w.now); until == 0 || until > end {
			until = end
		}
	}
	return w.against(spec, node, until) == ""
}

func (w *world) reservation(name string) *account.Reservation {
	if w.policy == nil {
		return nil
	}
	for i := range w.policy.Reservations {
		if r := &w.policy.Reservations[i]; name != "" && r.Name == name {
			return r
		}
	}
	return nil
}

// against is what reservations have against a job on a node from now on until an instant;
// 0: without end.
func (w *world) against(spec *job.Spec, node string, until sched.Instant) string {
	if w.policy == nil {
		return ""
	}
	own := w.reservation(spec.Reservation)
	if spec.Reservation != "" && own == nil {
		return "its reservation is not there"
	}
	on := func(r *account.Reservation) bool { return len(r.Nodes) == 0 || slices.Contains(r.Nodes, node) }
	for i := range w.policy.Reservations {
		r := &w.policy.Reservations[i]
		if r == own || own != nil && r.Overlap || !on(r) {
			continue
		}
		if begin, end := occurrence(r, w.now); end > w.now && (until == 0 || until > begin) {
			return fmt.Sprintf("reservation %s holds from %d to %d", r.Name, begin, end)
		}
	}
	if own == nil || own.Flex {
		return ""
	}
	if begin, end := occurrence(own, w.now); begin > w.now || until == 0 || until > end || !on(own) {
		return fmt.Sprintf("its reservation %s holds from %d to %d", own.Name, begin, end)
	}
	return ""
}

// TestAReservationKeepsItsNodes: jobs whose limits reach into it do not start on its
// nodes, jobs inside wait for it, run on its nodes and end with it.
func TestAReservationKeepsItsNodes(t *testing.T) {
	const hour = sched.Instant(time.Hour)
	c := sched.New(sched.Config{})
	policy := &account.Policy{Reservations: []account.Reservation{{
		Name: "course", Start: "1970-01-01T02:00:00Z", Duration: account.Duration(time.Hour), Nodes: []string{"a"}, Users: []string{"ann"},
	}}}
	short, long, inside := gang(1, 8, 1, time.Hour), gang(1, 8, 1, 3*time.Hour), gang(1, 1, 8, 0)
	inside.Reservation, inside.Owner.User = "course", "ann"
	other := gang(1, 1, 1, 0)
	other.Reservation, other.Owner.User = "course", "bob"
	out := c.Step(hour/2, sched.PolicySet{Policy: policy}, sched.NodeSet{Node: node("a", 8)}, sched.NodeSet{Node: node("b", 8)},
		sched.Submitted{Job: 1, Spec: long}, sched.Submitted{Job: 2, Spec: long}, sched.Submitted{Job: 3, Spec: short},
		sched.Submitted{Job: 4, Spec: inside}, sched.Submitted{Job: 5, Spec: other})
	starts, waits := map[job.ID]sched.Start{}, map[job.ID]reason.Reason{}
	take := func(out []sched.Decision) {
		for _, d := range out {
			switch d := d.(type) {
			case sched.Start:
				starts[d.Job] = d
			case sched.Wait:
				waits[d.Job] = d.Why
			}
		}
	}
	take(out)
	if s := starts[1]; len(s.Claims) != 1 || s.Claims[0].Node != "b" {
		t.Errorf("the first long job starts so: %+v, want it on b", s)
	}
	if s := starts[3]; len(s.Claims) != 1 || s.Claims[0].Node != "a" {
		t.Errorf("the short job starts so: %+v, want it on a", s)
	}
	if w := waits[4]; w.Code != reason.Reservation || w.Want != "course" || w.Until != 7200 {
		t.Errorf("the job inside waits for %+v", w)
	}
	if w := waits[5]; w.Code != reason.Reservation || w.Until != 0 {
		t.Errorf("a job of somebody else waits for %+v", w)
	}
	if next := c.Next(); next != 2*hour {
		t.Errorf("the core wants to be stepped at %d, want the start of the reservation", next)
	}
	take(c.Step(2*hour, sched.Released{Job: 3}))
	if s := starts[4]; len(s.Claims) != 1 || s.Claims[0].Node != "a" || s.Until != 3*hour {
		t.Errorf("the job inside starts so: %+v, want it on a until the end of the reservation", s)
	}
	if _, early := starts[2]; early {
		t.Errorf("the second long job started beside the reservation: %+v", starts[2])
	}
	take(c.Step(3*hour, sched.Released{Job: 4}))
	if s := starts[2]; len(s.Claims) != 1 || s.Claims[0].Node != "a" {
		t.Errorf("the second long job starts so: %+v, want it on a after the reservation", s)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestAGangIsPlannedAfterReservations: two nodes are closed one after the other, so
// that neither is closed at first and both are open together only after the second.
//
// Seen to fail when only the ends of reservations that hold already were looked at.
func TestAGangIsPlannedAfterReservations(t *testing.T) {
	at := func(minute int) sched.Instant { return sched.Instant(time.Duration(minute) * time.Minute) }
	c := sched.New(sched.Config{})
	policy := &account.Policy{Reservations: []account.Reservation{
		{Name: "a", Start: "1970-01-01T01:20:00Z", Duration: account.Duration(20 * time.Minute), Every: "hour", Nodes: []string{"a"}},
		{Name: "b", Start: "1970-01-01T01:05:00Z", Duration: account.Duration(10 * time.Minute), Every: "hour", Nodes: []string{"b"}},
	}}
	// 15 minutes on both: b is closed from 1:05 to 1:15, a from 1:20 to 1:40.
	out := c.Step(at(61), sched.PolicySet{Policy: policy}, sched.NodeSet{Node: node("a", 8)}, sched.NodeSet{Node: node("b", 8)},
		sched.Submitted{Job: 1, Spec: gang(2, 1, 8, 15*time.Minute)})
	var promised sched.Promise
	for _, d := range out {
		if d, ok := d.(sched.Promise); ok {
			promised = d
		}
	}
	if promised.Job != 1 || promised.At != at(100) {
		t.Errorf("promised %+v, want job 1 at %d", promised, at(100))
	}
}

// TestAJobThatAReservationEnds: a reservation that floats seven minutes ahead keeps off
// what has no limit. A job without one inside another reservation ends with that, so it
// can begin seven minutes before; and what is kept for a job of which nobody knows when
// it starts is not in its way. Drawn by TestLaws.
//
// Seen to fail with: openings that only look at begins and ends, and a planned start that is
// taken to last for ever where its reservation ends it.
func TestAJobThatAReservationEnds(t *testing.T) {
	at := func(minute int) sched.Instant { return sched.Instant(time.Duration(minute) * time.Minute) }
	c := sched.New(sched.Config{})
	policy := &account.Policy{Reservations: []account.Reservation{
		{Name: "floats", Ahead: account.Duration(7 * time.Minute), Duration: account.Duration(4 * time.Minute), Users: []string{"v"}, Flex: true},
		{Name: "holds", Start: "1970-01-01T01:00:00Z", Duration: account.Duration(26 * time.Minute), Users: []string{"u"}},
	}}
	policy.Backfill.Reservations = 3
	outside, inside := of("", "w", gang(1, 1, 8, 0)), of("", "u", gang(1, 1, 8, 0))
	inside.Reservation = "holds"
	c.Step(at(64), sched.PolicySet{Policy: policy}, sched.NodeSet{Node: node("a", 8)},
		sched.Submitted{Job: 1, Spec: outside, Priority: 1}, sched.Submitted{Job: 2, Spec: inside})
	for _, p := range c.Planned() {
		if p.Job == 2 && p.At != at(79) {
			t.Errorf("job 2 is planned for %v, want 1h19m", time.Duration(p.At))
		}
	}
	if out := c.Step(at(79)); !startsNow(out, 2) {
		t.Errorf("job 2 does not start when it is to: %+v, %+v", out, c.Planned())
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
