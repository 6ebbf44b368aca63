package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// standing says on which machines the nodes of a hand are.
func standing(h *hand, hosts ...string) *hand {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.nodes {
		if i < len(hosts) && hosts[i] != "" {
			h.nodes[i].Hosts = strings.Split(hosts[i], ",")
		}
	}
	return h
}

// TestAMachineIsInOnePool: whatever its nodes are named there, and however many machines a
// node stands for.
//
// Seen to fail without the question for owners in NodeWithDrain.
func TestAMachineIsInOnePool(t *testing.T) {
	for name, tt := range map[string]struct {
		p, q *hand
		want string // the node that q's job has; empty: it waits
	}{
		"a pod on a machine that the other pool has by its name": {named("a", 1, 8), standing(named("b", 2, 8), "a1"), "b2"},
		"both in pods":                        {standing(named("a", 1, 8), "kube-1"), standing(named("b", 2, 8), "kube-1", "kube-2"), "b2"},
		"of one nothing is said":              {standing(named("a", 1, 8), "kube-1"), named("b", 1, 8), "b1"},
		"a pool as one node":                  {named("a", 2, 8), standing(named("b", 1, 8), "a2,a9"), ""},
		"a pod's name is no machine's":        {standing(named("a", 1, 8), "b1"), standing(named("b", 1, 8), "a1"), "b1"},
		"a machine of the name that a pod is": {standing(named("a", 1, 8), "b1"), named("b", 2, 8), "b2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := two(t, tt.p, tt.q, control.Config{})
			home := b.submit(gang(1, 8))
			if v := b.launched(home); v.Claims[0].Node != "a1" {
				t.Errorf("the first pool's job has %v", v.Claims)
			}
			views, err := b.ctl.NodeViews(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			owner := map[string]string{}
			for _, v := range views {
				if v.Node.State != fleet.Up {
					continue
				}
				for _, m := range v.Node.Machines() {
					if was := owner[m]; was != "" {
						t.Errorf("machine %s is %s and %s", m, was, v.Node.Name)
					}
					owner[m] = v.Node.Name
				}
			}
			if tt.want == "" {
				if n := owner["a9"]; n != "" {
					t.Errorf("%s is used", n)
				}
				return
			}
			if v := b.launched(b.submit(in("q", gang(1, 8)))); v.Claims[0].Node != tt.want {
				t.Errorf("the second pool's job has %v, want %s", v.Claims, tt.want)
			}
		})
	}
}

// TestAMachineThatIsFoundTwiceLater keeps what runs there, and begins nothing.
func TestAMachineThatIsFoundTwiceLater(t *testing.T) {
	p, q := named("a", 1, 8), named("b", 1, 8)
	b := two(t, p, q, control.Config{})
	id := b.submit(in("q", gang(1, 4)))
	v := b.launched(id)
	q.start(v)
	b.state(id, job.Running)
	b.close() // a look that is under way would find it before
	standing(q, "a1")
	b.open()
	eventually(t, "b1 is draining", func() bool {
		views, err := b.ctl.NodeViews(t.Context())
		return err == nil && len(views) == 2 && views[1].Node.Name == "b1" && views[1].Node.State == fleet.Draining && views[1].Node.Why == "machine a1 belongs to pool p"
	})
	q.end(v, engine.Exited, 0)
	b.state(id, job.Completed)
}

// TestAMachineStaysWithItsPool when a node of another pool turns out to be on it, at which work runs: look
// after look, and when that work has ended.
func TestAMachineStaysWithItsPool(t *testing.T) {
	clock, p, q := newClock(), named("a", 1, 8), named("b", 1, 8)
	b := two(t, p, q, control.Config{Clock: clock})
	id := b.submit(in("q", gang(1, 4)))
	v := b.launched(id)
	q.start(v)
	b.state(id, job.Running)
	standing(q, "a1")
	nodes := func() (out string) {
		views, err := b.ctl.NodeViews(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range views {
			out += v.Node.Name + " " + string(v.Node.State) + "; "
		}
		return out
	}
	for look := range 4 {
		b.pass(clock, 31*time.Second)
		eventually(t, fmt.Sprintf("look %d", look), func() bool { return nodes() == "a1 up; b1 draining; " })
	}
	q.end(v, engine.Exited, 0)
	b.state(id, job.Completed)
	b.pass(clock, 31*time.Second)
	if got := nodes(); got != "a1 up; b1 draining; " {
		t.Errorf("when its work has ended: %s", got)
	}
}

// TestALookFindsAMachineTwice before the pool is added.
func TestALookFindsAMachineTwice(t *testing.T) {
	s := &sites{hands: map[string]*hand{"q": standing(named("q", 2, 8), "a1")}, closed: map[string]int{}}
	b := openWith(t, named("a", 1, 8), control.Config{OpenPool: s.open})
	look := func(what string) engine.Finding {
		t.Helper()
		found, err := b.ctl.CheckPool(t.Context(), state.PoolSpec{Name: "q", Engine: "hand"})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found.Findings {
			if f.What == what {
				return f
			}
		}
		return engine.Finding{}
	}
	if f := look("machines"); f.State != engine.Warning || f.Text != "q1: on a1 of pool p; nothing starts there until the machine is handed over to pool q" || f.Mend == "" {
		t.Errorf("of one node: %+v", f)
	}
	standing(s.hands["q"], "a1", "a1")
	if f := look("machines"); f.State != engine.Warning || !strings.HasPrefix(f.Text, "q[1-2]: ") {
		t.Errorf("of all: %+v", f)
	}
	standing(s.hands["q"], "x", "y")
	if f := look("machines"); f.What != "" {
		t.Errorf("of none: %+v", f)
	}
	standing(s.hands["q"], "a1.example.org", "y")
	if f := look("machine names"); f.State != engine.Warning || !strings.HasPrefix(f.Text, "q1: seem to be the machines of a1 of pool p") {
		t.Errorf("under another name: %+v", f)
	}
}
