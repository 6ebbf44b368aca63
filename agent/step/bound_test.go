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
func knock(t *testing.T, c *crew, node int) *link {
	t.Helper()
	l, err := dial(c.alloc, node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	_ = l.conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return l
}

// TestWhatAJobSaysToItsSupervisorIsBounded sends what no srun does.
func TestWhatAJobSaysToItsSupervisorIsBounded(t *testing.T) {
	c := launch(t, uniform(1, 1, 4, 0))
	for what, send := range map[string]func(l *link) error{
		"a message that is longer than any": func(l *link) error {
			_, err := l.conn.Write(binary.BigEndian.AppendUint32(append([]byte{byte(mCreate)}, make([]byte, 8)...), 1<<31))
			return err
		},
		"a hello that is a message": func(l *link) error { return l.send(frame{kind: mWaitGone, body: make([]byte, 1<<20)}) },
		"a step of a billion tasks": func(l *link) error {
			return l.sendJSON(mCreate, request{Components: []ask{{Tasks: 1 << 30, Overcommit: true}}})
		},
		"many components of many tasks": func(l *link) error {
			return l.sendJSON(mCreate, request{Components: make([]ask, mostTasks+1)})
		},
		"negative tasks": func(l *link) error {
			return l.sendJSON(mCreate, request{Components: []ask{{Tasks: -1}}})
		},
		"millions of objects": func(l *link) error {
			return l.send(frame{kind: mPrepare, body: []byte(`{"programs":[` + strings.Repeat("{},", mostObjects) + `{}]}`)})
		},
	} {
		l := knock(t, c, 0)
		if send(l) != nil {
			continue // it was cut off
		}
		if f, err := l.receive(); err == nil && f.kind != mRefused {
			t.Errorf("%s: %d %s", what, f.kind, f.body)
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
	good := func() preparation {
		return preparation{
			Info:     Info{Step: 7, Tasks: 1, Components: []Component{{Tasks: 1}}, Parts: []StepPart{{Ranks: []int{0}, CPUs: 1}}},
			Programs: []program{{Args: []string{"true"}, Dir: "/"}},
		}
	}
	for what, spoil := range map[string]func(p *preparation){
		"component below zero": func(p *preparation) { p.Info.Parts[0].Component = -1 },
		"no such component":    func(p *preparation) { p.Info.Parts[0].Component = 1 },
		"node below zero":      func(p *preparation) { p.Info.Parts[0].Node = -1 },
		"no such node":         func(p *preparation) { p.Info.Parts[0].Node = 5 },
		"no such group":        func(p *preparation) { p.Info.Components[0].Group = 3 },
		"group below zero":     func(p *preparation) { p.Info.Components[0].Group = -3 },
		"no programs":          func(p *preparation) { p.Programs = nil },
		"no tasks":             func(p *preparation) { p.Info.Tasks = 0 },
		"step below zero":      func(p *preparation) { p.Info.Step = -5 },
		"rank below zero":      func(p *preparation) { p.Info.Parts[0].Ranks = []int{-1} },
		"no such rank":         func(p *preparation) { p.Info.Parts[0].Ranks = []int{1} },
		"a rank twice":         func(p *preparation) { p.Info.Parts[0].Ranks = []int{0, 0} },
	} {
		p := good()
		spoil(&p)
		l := knock(t, c, 0)
		if err := l.sendJSON(mPrepare, p); err != nil {
			t.Fatal(err)
		}
		if f, err := l.receive(); err != nil || f.kind != mRefused {
			t.Errorf("%s: %d %s, %v", what, f.kind, f.body, err)
		}
	}
	l := knock(t, c, 0)
	if err := l.sendJSON(mPrepare, good()); err != nil {
		t.Fatal(err)
	}
	if f, err := l.receive(); err != nil || f.kind != mHeld {
		t.Errorf("one that fits: %d %s, %v", f.kind, f.body, err)
	}
}

// TestKeptMessagesAreBoundedTogether fills the purse from many connections.
func TestKeptMessagesAreBoundedTogether(t *testing.T) {
	c := launch(t, uniform(1, 1, 4, 0))
	n := c.nodes[0]
	n.purse.spend(mostKept - 1<<10)
	big, err := json.Marshal(request{Name: strings.Repeat("x", 4<<10), Components: []ask{{Tasks: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	l := knock(t, c, 0)
	if err := l.send(frame{kind: mCreate, body: big}); err != nil {
		t.Fatal(err)
	}
	if f, err := l.receive(); err == nil && (f.kind != mRefused || !strings.Contains(string(f.body), "too many steps")) {
		t.Errorf("%d %s", f.kind, f.body)
	}
	n.purse.spend(1<<10 - mostKept)
	for i := range 3 { // what a connection took is given back with it
		l := knock(t, c, 0)
		if err := l.send(frame{kind: mCreate, body: big}); err != nil {
			t.Fatal(err)
		}
		if f, err := l.receive(); err != nil || f.kind != mCreated {
			t.Fatalf("%d: %d %s, %v", i, f.kind, f.body, err)
		}
		_ = l.send(frame{kind: mDone})
		_, _ = l.receive() // its end
	}
	waitFor(t, "the purse is full again", func() bool {
		n.purse.mu.Lock()
		defer n.purse.mu.Unlock()
		return n.purse.spent == 0
	})
}

// TestInputBeyondTheWindowEndsTheStep sends input that nobody reads, without waiting
// for its acknowledgement.
func TestInputBeyondTheWindowEndsTheStep(t *testing.T) {
	c := launch(t, uniform(1, 1, 4, 0))
	l := knock(t, c, 0)
	p := preparation{
		Info:     Info{Step: 7, Tasks: 1, Components: []Component{{Tasks: 1}}, Parts: []StepPart{{Ranks: []int{0}, CPUs: 1}}},
		Programs: []program{{Args: []string{"sleep", "600"}, Dir: "/", Stdout: stream{Kind: streamNone}, Stderr: stream{Kind: streamNone}}},
		Env:      []string{"PATH=/usr/bin:/bin"},
	}
	if err := l.sendJSON(mPrepare, p); err != nil {
		t.Fatal(err)
	}
	if f, err := l.receive(); err != nil || f.kind != mHeld {
		t.Fatalf("%d %s, %v", f.kind, f.body, err)
	}
	_ = l.send(frame{kind: mGo})
	go func() {
		for l.send(frame{kind: mStdin, rank: -1, body: make([]byte, 32<<10)}) == nil {
		}
	}()
	for {
		f, err := l.receive()
		if err != nil {
			t.Fatalf("no word of its end: %v", err)
		}
		if f.kind == mOver {
			return
		}
	}
}

// TestConnectionsAreBounded opens more than a node serves.
func TestConnectionsAreBounded(t *testing.T) {
	c := launch(t, uniform(1, 1, 4, 0))
	n := c.nodes[0]
	n.mu.Lock()
	for range mostLinks {
		n.links[new(link)] = true
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
