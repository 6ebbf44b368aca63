package srun

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// knock connects to a node and says hello.
func knock(t *testing.T, a *step.Alloc, node int) *caller {
	t.Helper()
	conn, err := socket.Dial(a.Nodes[node].Socket, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := &caller{wire.NewLink(conn), conn}
	t.Cleanup(l.Close)
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	if err := l.SendJSON(wire.MsgHello, wire.Hello{Version: wire.Protocol, Job: a.Job, Attempt: a.Attempt}); err != nil {
		t.Fatal(err)
	}
	return l
}

// caller is a program that speaks to a node in srun's name.
type caller struct {
	*wire.Link
	conn net.Conn
}

// TestWhatAJobSaysToItsSupervisorIsBounded sends what no srun does.
func TestWhatAJobSaysToItsSupervisorIsBounded(t *testing.T) {
	c := launch(t, steptest.Uniform(1, 1, 4, 0))
	for what, send := range map[string]func(l *caller) error{
		"a message that is longer than any": func(l *caller) error {
			_, err := l.conn.Write(binary.BigEndian.AppendUint32(append([]byte{byte(wire.MsgCreate)}, make([]byte, 8)...), 1<<31))
			return err
		},
		"a hello that is a message": func(l *caller) error { return l.Send(wire.Frame{Kind: wire.MsgWaitGone, Body: make([]byte, 1<<20)}) },
		"a step of a billion tasks": func(l *caller) error {
			return l.SendJSON(wire.MsgCreate, wire.Request{Components: []wire.ComponentRequest{{Tasks: 1 << 30, Overcommit: true}}})
		},
		"many components of many tasks": func(l *caller) error {
			return l.SendJSON(wire.MsgCreate, wire.Request{Components: make([]wire.ComponentRequest, wire.MaxTasks+1)})
		},
		"negative tasks": func(l *caller) error {
			return l.SendJSON(wire.MsgCreate, wire.Request{Components: []wire.ComponentRequest{{Tasks: -1}}})
		},
		"millions of objects": func(l *caller) error {
			return l.Send(wire.Frame{Kind: wire.MsgPrepare, Body: []byte(`{"programs":[` + strings.Repeat("{},", wire.MaxObjects) + `{}]}`)})
		},
	} {
		l := knock(t, c.alloc, 0)
		if send(l) != nil {
			continue // it was cut off
		}
		if f, err := l.Receive(); err == nil && f.Kind != wire.MsgRefused {
			t.Errorf("%s: %d %s", what, f.Kind, f.Body)
		}
	}
	if got := c.run(`srun -n2 echo fine`); got.out != "fine\nfine\n" {
		t.Errorf("afterwards: %q %q", got.out, got.err)
	}
}

// TestPreparationsThatFitNothingAreRefused: an index that leads nowhere would be the
// supervisor's end.
func TestPreparationsThatFitNothingAreRefused(t *testing.T) {
	c := launch(t, steptest.Uniform(1, 1, 4, 0))
	good := func() wire.Preparation {
		return wire.Preparation{
			Info:     step.Info{Step: 7, Tasks: 1, Components: []step.Component{{Tasks: 1}}, Parts: []step.StepPart{{Ranks: []int{0}, CPUs: 1}}},
			Programs: []wire.Program{{Args: []string{"true"}, Dir: "/"}},
		}
	}
	for what, spoil := range map[string]func(p *wire.Preparation){
		"component below zero": func(p *wire.Preparation) { p.Info.Parts[0].Component = -1 },
		"no such component":    func(p *wire.Preparation) { p.Info.Parts[0].Component = 1 },
		"node below zero":      func(p *wire.Preparation) { p.Info.Parts[0].Node = -1 },
		"no such node":         func(p *wire.Preparation) { p.Info.Parts[0].Node = 5 },
		"no such group":        func(p *wire.Preparation) { p.Info.Components[0].Group = 3 },
		"group below zero":     func(p *wire.Preparation) { p.Info.Components[0].Group = -3 },
		"no programs":          func(p *wire.Preparation) { p.Programs = nil },
		"no tasks":             func(p *wire.Preparation) { p.Info.Tasks = 0 },
		"step below zero":      func(p *wire.Preparation) { p.Info.Step = -5 },
		"rank below zero":      func(p *wire.Preparation) { p.Info.Parts[0].Ranks = []int{-1} },
		"no such rank":         func(p *wire.Preparation) { p.Info.Parts[0].Ranks = []int{1} },
		"a rank twice":         func(p *wire.Preparation) { p.Info.Parts[0].Ranks = []int{0, 0} },
	} {
		p := good()
		spoil(&p)
		l := knock(t, c.alloc, 0)
		if err := l.SendJSON(wire.MsgPrepare, p); err != nil {
			t.Fatal(err)
		}
		if f, err := l.Receive(); err != nil || f.Kind != wire.MsgRefused {
			t.Errorf("%s: %d %s, %v", what, f.Kind, f.Body, err)
		}
	}
	l := knock(t, c.alloc, 0)
	if err := l.SendJSON(wire.MsgPrepare, good()); err != nil {
		t.Fatal(err)
	}
	if f, err := l.Receive(); err != nil || f.Kind != wire.MsgHeld {
		t.Errorf("one that fits: %d %s, %v", f.Kind, f.Body, err)
	}
}

// TestInputBeyondTheWindowEndsTheStep sends input that nobody reads, without waiting
// for its acknowledgement.
func TestInputBeyondTheWindowEndsTheStep(t *testing.T) {
	c := launch(t, steptest.Uniform(1, 1, 4, 0))
	l := knock(t, c.alloc, 0)
	p := wire.Preparation{
		Info:     step.Info{Step: 7, Tasks: 1, Components: []step.Component{{Tasks: 1}}, Parts: []step.StepPart{{Ranks: []int{0}, CPUs: 1}}},
		Programs: []wire.Program{{Args: []string{"sleep", "600"}, Dir: "/", Stdout: wire.Stream{Kind: wire.StreamNone}, Stderr: wire.Stream{Kind: wire.StreamNone}}},
		Env:      []string{"PATH=/usr/bin:/bin"},
	}
	if err := l.SendJSON(wire.MsgPrepare, p); err != nil {
		t.Fatal(err)
	}
	if f, err := l.Receive(); err != nil || f.Kind != wire.MsgHeld {
		t.Fatalf("%d %s, %v", f.Kind, f.Body, err)
	}
	_ = l.Send(wire.Frame{Kind: wire.MsgGo})
	go func() {
		for l.Send(wire.Frame{Kind: wire.MsgStdin, Rank: -1, Body: make([]byte, 32<<10)}) == nil {
		}
	}()
	for {
		f, err := l.Receive()
		if err != nil {
			t.Fatalf("no word of its end: %v", err)
		}
		if f.Kind == wire.MsgOver {
			return
		}
	}
}
