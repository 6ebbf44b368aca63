// Package nodefence keeps the fences of an engine's nodes in a file of its own, and looks what is on a node: the
// half of engine.NodeFencer that needs nobody to ask.
//
// A fence is on the disk before Fence returns, and so is the epoch of one that was removed: a call of an
// earlier hand-over that arrives late changes nothing, over restarts too. Nobody but the engine reads
// the file.
package nodefence

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Fences are those of an engine's nodes. Its methods are safe for concurrent use, but for Refuse and Mark.
type Fences struct {
	name  string // of the file
	lock  sync.Locker
	nodes []fleet.Node
	look  func(node string) (work []engine.NodeWork, unknown []string)
	marks map[string]mark // by node
}

// mark is the last call of which was heard.
type mark struct {
	engine.NodeFence
	Stands bool `json:"stands"`
}

// Open reads the fences from a file, which need not be there. The lock is held while a fence changes, so that
// who holds it knows that none does; look says what is on a node, and is called without it.
func Open(name string, nodes []fleet.Node, lock sync.Locker, look func(node string) (work []engine.NodeWork, unknown []string)) (*Fences, error) {
	f := &Fences{name: name, lock: lock, nodes: nodes, look: look, marks: map[string]mark{}}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &f.marks); err != nil {
		return nil, fault.New(fault.Internal, "%s, the fences of nodes: %w", name, err).
			Advise("if no machine is to be kept from this pool, remove the file")
	}
	return f, nil
}

// Fence closes a node; see engine.NodeFencer.
func (f *Fences) Fence(ctx context.Context, node string, to engine.NodeFence) error {
	return f.changeMark(ctx, node, mark{to, true})
}

// Unfence opens a node; see engine.NodeFencer.
func (f *Fences) Unfence(ctx context.Context, node string, to engine.NodeFence) error {
	return f.changeMark(ctx, node, mark{to, false})
}

// changeMark puts a mark in the place of the one before.
func (f *Fences) changeMark(ctx context.Context, node string, to mark) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.checkNode(node); err != nil {
		return err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	was := f.marks[node]
	if err := to.Follows(node, was.Epoch); err != nil {
		return err
	}
	if was == to {
		return nil
	}
	f.marks[node] = to
	if err := f.writeFile(); err != nil {
		f.marks[node] = was
		return fault.New(fault.Unavailable, "the fence of node %s cannot be written down: %w", node, err).Advise("make room in the state directory")
	}
	return nil
}

func (f *Fences) checkNode(node string) error {
	if !slices.ContainsFunc(f.nodes, func(n fleet.Node) bool { return n.Name == node }) {
		return fault.New(fault.NotFound, "there is no node %q here", node)
	}
	return nil
}

// writeFile puts the marks on the disk, whole or not at all.
func (f *Fences) writeFile() error {
	text, err := json.Marshal(f.marks)
	if err != nil {
		return err
	}
	return kit.WriteDurably(f.name, append(text, '\n'))
}

// Refuse is the error of a launch that a fence keeps from one of its nodes, else nil. The caller holds the lock.
func (f *Fences) Refuse(ref engine.Ref, nodes []fleet.Node) error {
	for i := range nodes {
		if m := f.marks[nodes[i].Name]; m.Stands {
			return engine.OnFenced(ref, nodes[i].Name, m.NodeFence)
		}
	}
	return nil
}

// Mark says of nodes which are fenced. The caller holds the lock.
func (f *Fences) Mark(nodes []fleet.Node) {
	for i := range nodes {
		n := &nodes[i]
		if m := f.marks[n.Name]; m.Stands {
			if n.Fence = m.Epoch; n.State == fleet.Up {
				n.State = fleet.Draining
			}
		}
	}
}

// Empty looks what is on a node; see engine.NodeFencer.
func (f *Fences) Empty(ctx context.Context, node string) (engine.NodeContents, error) {
	if err := ctx.Err(); err != nil {
		return engine.NodeContents{}, err
	}
	if err := f.checkNode(node); err != nil {
		return engine.NodeContents{}, err
	}
	c := engine.NodeContents{At: time.Now().Round(0), Looked: []string{"allocations", "processes"}}
	f.lock.Lock()
	if m := f.marks[node]; m.Stands {
		c.Fence = &m.NodeFence
	}
	f.lock.Unlock()
	c.Work, c.Unknown = f.look(node) // after the fence
	return c, nil
}
