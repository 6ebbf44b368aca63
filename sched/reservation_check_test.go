package sched_test

import (
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched"
)

// clock is an instant so many hours after a day began, and how documents write it.
func clock(hours float64) (sched.Instant, string) {
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(hours * float64(time.Hour)))
	return sched.Instant(at.UnixNano()), at.Format(time.RFC3339)
}

func hold(name string, from, hours float64, nodes ...string) account.Reservation {
	_, start := clock(from)
	return account.Reservation{Name: name, Start: start, Duration: account.Duration(hours * float64(time.Hour)), Nodes: nodes}
}

// inForce are the reservations of reservable: n5 from 8 to 9.
var inForce = []account.Reservation{hold("old", 8, 1, "n5")}

// reservable is six nodes: n1 has a job until 2, n2 one without a limit, n6 is down,
// and n5 is reserved from 8 to 9.
func reservable() *sched.Core {
	c := sched.New(sched.Config{})
	now, _ := clock(0)
	var events []sched.Event
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5", "n6"} {
		n := node(name, 8)
		if name == "n6" {
			n.State = fleet.Down
		}
		events = append(events, sched.NodeSet{Node: n})
	}
	until, _ := clock(2)
	claims := func(name string) []fleet.Claim {
		return []fleet.Claim{{Node: name, Tasks: 1, Devices: []fleet.DeviceClaim{{Index: 0, Share: 1000}}}}
	}
	events = append(events,
		sched.PolicySet{Policy: &account.Policy{Reservations: inForce}},
		sched.Restored{Job: 1, Spec: gang(1, 1, 1, 2*time.Hour), Claims: claims("n1"), Until: until, Began: now},
		sched.Restored{Job: 2, Spec: gang(1, 1, 1, 0), Claims: claims("n2"), Began: now})
	c.Step(now, events...)
	return c
}

// TestWhatAReservationWouldMeet: jobs that run beyond its beginning, unless it says that
// they do not matter or is floating; other reservations, unless one of the two may
// overlap.
//
// Seen to fail with: a job counted that ends as it begins.
func TestWhatAReservationWouldMeet(t *testing.T) {
	c := reservable()
	for _, x := range []struct {
		name string
		ask  account.Reservation
		want []string // node, and the job or the reservation that has it
	}{
		{"all, early", hold("x", 1, 1), []string{"n1 1", "n2 2"}},
		{"as the first ends", hold("x", 2, 1, "n1", "n3"), nil},
		{"for ever", hold("x", 7, 2), []string{"n2 2", "n5 old"}},
		{"ignoring jobs", func() account.Reservation { r := hold("x", 1, 1); r.Ignore = true; return r }(), nil},
		{"floating", account.Reservation{Name: "x", Ahead: account.Duration(time.Hour), Duration: account.Duration(time.Hour)}, nil},
		{"over the old one", func() account.Reservation { r := hold("x", 8, 1, "n5"); r.Overlap = true; return r }(), nil},
		{"the old one, longer", hold("old", 8, 2, "n5"), nil},
	} {
		_, way, _ := c.Reservable(&sched.ReserveAsk{Reservation: x.ask}, inForce)
		var got []string
		for _, o := range way {
			what := o.Reservation
			if o.Job != 0 {
				what = string('0' + rune(o.Job))
			}
			got = append(got, o.Node+" "+what)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %q is in its way, want %q", x.name, got, x.want)
		}
	}
}

// TestNodesByNumber: the shortest stretch of nodes that are free all that time and up;
// first those on which no start is promised for then.
func TestNodesByNumber(t *testing.T) {
	c := reservable()
	choose := func(count int, from, hours float64) []string {
		nodes, _, _ := c.Reservable(&sched.ReserveAsk{Reservation: hold("x", from, hours), Count: count}, inForce)
		return nodes
	}
	for _, x := range []struct {
		count       int
		from, hours float64
		want        []string
	}{
		{1, 1, 1, []string{"n3"}},
		{3, 1, 1, []string{"n3", "n4", "n5"}},
		{4, 1, 1, nil}, // n1 and n2 are in use, n6 is down
		{4, 2, 1, []string{"n1", "n3", "n4", "n5"}},
		{3, 7.5, 1, []string{"n1", "n3", "n4"}}, // n5 is reserved
		{4, 7.5, 1, nil},
	} {
		if got := choose(x.count, x.from, x.hours); !slices.Equal(got, x.want) {
			t.Errorf("%d nodes from %v for %v hours are %q, want %q", x.count, x.from, x.hours, got, x.want)
		}
	}
	// A reservation that was made since the core's last step keeps its nodes.
	newest := append(slices.Clone(inForce), hold("new", 1, 1, "n3"))
	if nodes, _, _ := c.Reservable(&sched.ReserveAsk{Reservation: hold("x", 1, 1), Count: 1}, newest); !slices.Equal(nodes, []string{"n4"}) {
		t.Errorf("beside a reservation of n3 it gets %q, want n4", nodes)
	}
	// A job waits for four whole nodes until n1 is free, and is promised n1, n3, n4, n5.
	now, _ := clock(0)
	c.Step(now+1, sched.Submitted{Job: 3, Spec: gang(4, 8, 1, time.Hour)})
	if got := choose(1, 1, 1); !slices.Equal(got, []string{"n3"}) {
		t.Errorf("before the promised start the node is %q", got)
	}
	nodes, _, late := c.Reservable(&sched.ReserveAsk{Reservation: hold("x", 2.5, 1), Count: 1}, inForce)
	if len(nodes) != 1 || len(late) != 1 || late[0].Job != 3 {
		t.Errorf("all free nodes are promised: it gets %q, and job 3 is told late: %v", nodes, late)
	}
	if _, _, late := c.Reservable(&sched.ReserveAsk{Reservation: hold("x", 3, 1, "n3")}, inForce); len(late) != 0 {
		t.Errorf("as the promised job ends nobody is late: %v", late)
	}
}
