package step

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step/socket"
)

// knock connects to a node and says hello.
func knock(t *testing.T, c *crew, node int) *Link {
	t.Helper()
	l, err := Dial(c.alloc, node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	_ = l.conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return l
}

// TestWhatAJobSaysToItsSupervisorIsBounded sends what no srun does.
func TestWhatAJobSaysToItsSupervisorIsBounded(t *testing.T) {
	c := launch(t, uniform(1, 1, 4, 0))
	for what, send := range map[string]func(l *Link) error{
		"a message that is longer than any": func(l *Link) error {
			_, err := l.conn.Write(binary.BigEndian.AppendUint32(append([]byte{byte(MsgCreate)}, make([]byte, 8)...), 1<<31))
			return err
		},
		"a hello that is a message": func(l *Link) error { return l.Send(Frame{Kind: MsgWaitGone, Body: make([]byte, 1<<20)}) },
		"a step of a billion tasks": func(l *Link) error {
			return l.SendJSON(MsgCreate, Request{Components: []ComponentRequest{{Tasks: 1 << 30, Overcommit: true}}})
		},
		"many components of many tasks": func(l *Link) error {
			return l.SendJSON(MsgCreate, Request{Components: make([]ComponentRequest, MaxTasks+1)})
		},
		"negative tasks": func(l *Link) error {
			return l.SendJSON(MsgCreate, Request{Components: []ComponentRequest{{Tasks: -1}}})
		},
		"millions of objects": func(l *Link) error {
			return l.Send(Frame{Kind: MsgPrepare, Body: []byte(`{"programs":[` + strings.Repeat("{},", maxObjects) + `{}]}`)})
		},
	} {
		l := knock(t, c, 0)
		if send(l) != nil {
			continue // it was cut off
		}
		if f, err := l.Receive(); err == nil && f.Kind != MsgRefused {
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
	c := launch(t, uniform(1, 1, 4, 0))
	good := func() Preparation {
		return Preparation{
			Info:     Info{Step: 7, Tasks: 1, Components: []Component{{Tasks: 1}}, Parts: []StepPart{{Ranks: []int{0}, CPUs: 1}}},
			Programs: []Program{{Args: []string{"true"}, Dir: "/"}},
		}
	}
	for what, spoil := range map[string]func(p *Preparation){
		"component below zero": func(p *Preparation) { p.Info.Parts[0].Component = -1 },
		"no such component":    func(p *Preparation) { p.Info.Parts[0].Component = 1 },
		"node below zero":      func(p *Preparation) { p.Info.Parts[0].Node = -1 },
		"no such node":         func(p *Preparation) { p.Info.Parts[0].Node = 5 },
		"no such group":        func(p *Preparation) { p.Info.Components[0].Group = 3 },
		"group below zero":     func(p *Preparation) { p.Info.Components[0].Group = -3 },
		"no programs":          func(p *Preparation) { p.Programs = nil },
		"no tasks":             func(p *Preparation) { p.Info.Tasks = 0 },
		"step below zero":      func(p *Preparation) { p.Info.Step = -5 },
		"rank below zero":      func(p *Preparation) { p.Info.Parts[0].Ranks = []int{-1} },
		"no such rank":         func(p *Preparation) { p.Info.Parts[0].Ranks = []int{1} },
		"a rank twice":         func(p *Preparation) { p.Info.Parts[0].Ranks = []int{0, 0} },
	} {
		p := good()
		spoil(&p)
		l := knock(t, c, 0)
		if err := l.SendJSON(MsgPrepare, p); err != nil {
			t.Fatal(err)
		}
		if f, err := l.Receive(); err != nil || f.Kind != MsgRefused {
			t.Errorf("%s: %d %s, %v", what, f.Kind, f.Body, err)
		}
	}
	l := knock(t, c, 0)
	if err := l.SendJSON(MsgPrepare, good()); err != nil {
		t.Fatal(err)
	}
	if f, err := l.Receive(); err != nil || f.Kind != MsgHeld {
		t.Errorf("one that fits: %d %s, %v", f.Kind, f.Body, err)
	}
}

// TestKeptMessagesAreBoundedTogether fills the purse from many connections.
func TestKeptMessagesAreBoundedTogether(t *testing.T) {
	c := launch(t, uniform(1, 1, 4, 0))
	n := c.nodes[0]
	n.budget.Spend(maxKept - 1<<10)
	big, err := json.Marshal(Request{Name: strings.Repeat("x", 4<<10), Components: []ComponentRequest{{Tasks: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	l := knock(t, c, 0)
	if err := l.Send(Frame{Kind: MsgCreate, Body: big}); err != nil {
		t.Fatal(err)
	}
	if f, err := l.Receive(); err == nil && (f.Kind != MsgRefused || !strings.Contains(string(f.Body), "too many steps")) {
		t.Errorf("%d %s", f.Kind, f.Body)
	}
	n.budget.Spend(1<<10 - maxKept)
	for i := range 3 { // what a connection took is given back with it
		l := knock(t, c, 0)
		if err := l.Send(Frame{Kind: MsgCreate, Body: big}); err != nil {
			t.Fatal(err)
		}
		if f, err := l.Receive(); err != nil || f.Kind != MsgCreated {
			t.Fatalf("%d: %d %s, %v", i, f.Kind, f.Body, err)
		}
		_ = l.Send(Frame{Kind: MsgDone})
		_, _ = l.Receive() // its end
	}
	waitFor(t, "the purse is full again", func() bool {
		n.budget.mu.Lock()
		defer n.budget.mu.Unlock()
		return n.budget.spent == 0
	})
}

// TestInputBeyondTheWindowEndsTheStep sends input that nobody reads, without waiting
// for its acknowledgement.
func TestInputBeyondTheWindowEndsTheStep(t *testing.T) {
	c := launch(t, uniform(1, 1, 4, 0))
	l := knock(t, c, 0)
	p := Preparation{
		Info:     Info{Step: 7, Tasks: 1, Components: []Component{{Tasks: 1}}, Parts: []StepPart{{Ranks: []int{0}, CPUs: 1}}},
		Programs: []Program{{Args: []string{"sleep", "600"}, Dir: "/", Stdout: Stream{Kind: StreamNone}, Stderr: Stream{Kind: StreamNone}}},
		Env:      []string{"PATH=/usr/bin:/bin"},
	}
	if err := l.SendJSON(MsgPrepare, p); err != nil {
		t.Fatal(err)
	}
	if f, err := l.Receive(); err != nil || f.Kind != MsgHeld {
		t.Fatalf("%d %s, %v", f.Kind, f.Body, err)
	}
	_ = l.Send(Frame{Kind: MsgGo})
	go func() {
		for l.Send(Frame{Kind: MsgStdin, Rank: -1, Body: make([]byte, 32<<10)}) == nil {
		}
	}()
	for {
		f, err := l.Receive()
		if err != nil {
			t.Fatalf("no word of its end: %v", err)
		}
		if f.Kind == MsgOver {
			return
		}
	}
}

// TestConnectionsAreBounded opens more than a node serves.
func TestConnectionsAreBounded(t *testing.T) {
	c := launch(t, uniform(1, 1, 4, 0))
	n := c.nodes[0]
	n.mu.Lock()
	for range maxLinks {
		n.links[new(Link)] = true
	}
	n.mu.Unlock()
	conn, err := socket.Dial(c.alloc.Nodes[0].Socket, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("one too many: %v", err)
	}
	n.mu.Lock()
	clear(n.links)
	n.mu.Unlock()
	if got := c.run(`srun -n1 echo fine`); got.out != "fine\n" {
		t.Errorf("afterwards: %s", fmt.Sprint(got))
	}
}
