package fake_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/enginetest"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func nodes(names ...string) []fleet.Node {
	var out []fleet.Node
	for _, n := range names {
		out = append(out, fleet.Node{Name: n, Pool: "fake", State: fleet.Up})
	}
	return out
}

func TestConformance(t *testing.T) {
	c := newClock()
	broken := ""
	script := func(l *engine.Launch) fake.Outcome {
		var p enginetest.Program
		if err := json.Unmarshal(l.Script, &p); err != nil {
			t.Error(err)
		}
		o := fake.Outcome{Ready: time.Millisecond, Run: p.Run, Resists: p.Resists}
		o.Exit.Code = job.ExitCode{Status: p.Exit, Signal: p.Signal}
		for _, cl := range l.Claims {
			if cl.Node == broken {
				o.FailNode = broken
			}
		}
		return o
	}
	enginetest.Run(t, enginetest.Harness{
		New: func(t *testing.T) engine.Engine {
			broken = ""
			return fake.New(fake.Config{Now: c.Now, Nodes: nodes("f1", "f2", "f3", "f4"), Script: script})
		},
		Waiting: func(t *testing.T) engine.Engine {
			return fake.New(fake.Config{Now: c.Now, Nodes: nodes("f1", "f2", "f3", "f4"), Script: func(*engine.Launch) fake.Outcome { return fake.Outcome{Ready: fake.Never} }})
		},
		Script: func(p enginetest.Program) []byte {
			b, err := json.Marshal(p)
			if err != nil {
				t.Error(err)
			}
			return b
		},
		Reopen: func(t *testing.T, e engine.Engine, closed func()) engine.Engine {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			closed()
			return e.(*fake.Engine).World().Open()
		},
		Break: func(_ *testing.T, _ engine.Engine, node string) { broken = node },
		Kill: func(_ *testing.T, e engine.Engine, ref engine.Ref, node string) {
			e.(*fake.Engine).World().Kill(ref, node)
		},
		Outside: enginetest.Outside{
			Start: func(_ *testing.T, e engine.Engine, node string) (runs bool, end func()) {
				w := e.(*fake.Engine).World()
				err := w.StartForeign(node, engine.NodeWork{Kind: "process", Name: "other"}, false)
				return err == nil, func() { w.EndForeign(node, "other") }
			},
			Drain: func(_ *testing.T, e engine.Engine, node, why string) { e.(*fake.Engine).World().Drain(node, why) },
			Silence: func(_ *testing.T, e engine.Engine, node string) (restore func()) {
				w := e.(*fake.Engine).World()
				w.Silence(node)
				return func() { w.Return(node) }
			},
		},
		Tick: func(e engine.Engine) { c.pass(10 * time.Millisecond); e.(*fake.Engine).Advance() },
		Now:  c.Now,
	})
}
