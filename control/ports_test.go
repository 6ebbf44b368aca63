package control_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// listensOn is a job of one CPU that has chosen its port.
func listensOn(number int) *job.Spec {
	s := gang(1, 1)
	s.Groups[0].PerTask.Devices = nil
	s.Serve = &job.Serve{Ports: []job.Port{{Name: "http", Number: number}}}
	return s
}

func (b *bench) waitsForPort(id job.ID) reason.Reason {
	b.t.Helper()
	return b.until(id, "waiting for its port", func(v state.View) bool {
		return v.Job.State == job.Pending && v.Why.Resource == "port:8000"
	}).Why
}

// TestAFixedPortIsTakenOnce: each node has a port once; who waits for it is told who has it, also after a
// restart, and starts when it is free.
//
// Seen to fail with: CoreSpec without ports; nodes that are not told again; a count that restart forgets.
func TestAFixedPortIsTakenOnce(t *testing.T) {
	b := open(t, newHand(2, 8))
	first, second := b.launched(b.submit(listensOn(8000))), b.launched(b.submit(listensOn(8000)))
	if first.Claims[0].Node == second.Claims[0].Node {
		t.Errorf("both listen on node %s", first.Claims[0].Node)
	}
	third := b.submit(listensOn(8000))
	why := b.waitsForPort(third)
	if want := "port 8000 is taken on node " + first.Claims[0].Node + " by job " + first.Job.ID.String(); why.String() != want {
		t.Errorf("it waits because %s, want %s", why, want)
	}
	b.launched(b.submit(listensOn(8001)))
	b.reopen()
	b.waitsForPort(third)
	b.fail(second.Job.ID, engine.Exited, 0)
	if v := b.launched(third); v.Claims[0].Node != second.Claims[0].Node {
		t.Errorf("it runs on %s, the port is free on %s", v.Claims[0].Node, second.Claims[0].Node)
	}
}

// addressed is a hand whose tasks have networks of their own.
type addressed struct{ *hand }

func (addressed) OwnAddresses() bool { return true }

// TestPortsOfOneMachine: nodes that share the network of a machine have a port once; an engine that gives
// each task an address of its own has it as often as one likes.
func TestPortsOfOneMachine(t *testing.T) {
	h := newHand(2, 8)
	for i := range h.nodes {
		h.nodes[i].Virtual, h.nodes[i].Address = true, "127.0.0.2"
	}
	b := open(t, h)
	b.launched(b.submit(listensOn(8000)))
	b.waitsForPort(b.submit(listensOn(8000)))

	pods := addressed{newHand(1, 8)}
	own := openFor(t, pods, pods.hand, control.Config{})
	own.launched(own.submit(listensOn(8000)))
	own.launched(own.submit(listensOn(8000)))
}
