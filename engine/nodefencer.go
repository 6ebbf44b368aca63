package engine

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// NodeFencer is an optional ability: the engine can close a node to all new work, whoever asks for it, and
// say what is on it. An administrator's own mark on the node (a drain, a cordon) is never changed.
//
// Each call names the epoch of the hand-over (fleet.MachineOwner). A Fence of a later epoch takes the place
// of an earlier one, a call of an earlier epoch than the fence that stands, or than the last one that was
// removed, is fault.Conflict and changes nothing. All of them may be repeated. fault.Unavailable: not sure; fault.Permission: the engine's
// account lacks the right, and the error says which; fault.NotFound: it has no such node.
type NodeFencer interface {
	// Fence returns once the engine starts nothing on the node any more. What runs there goes on. A launch there
	// is refused as fault.Exhausted (OnFenced), or never begins.
	Fence(ctx context.Context, node string, f NodeFence) error
	// Unfence removes our fence. It is no error if there is none.
	Unfence(ctx context.Context, node string, f NodeFence) error
	// Empty looks whether the node is empty: what is on it, and which marks stand. It counts only what was seen after
	// the call: an agent of the node that does not answer is NodeContents.Unknown.
	Empty(ctx context.Context, node string) (NodeContents, error)
}

// NodeFence is our mark on a node.
type NodeFence struct {
	Epoch  uint64 `json:"epoch"`
	Reason string `json:"reason"` // for people: who has the machine now, or why it is closed
}

// NodeContents is what an engine sees on one of its nodes.
type NodeContents struct {
	At      time.Time  `json:"at"`
	Fence   *NodeFence `json:"fence,omitempty"`   // ours, that stands; nil: none
	Drained string     `json:"drained,omitempty"` // an administrator's mark, in its words; empty: none
	Work    []NodeWork `json:"work,omitempty"`    // empty: nothing is there, as far as Unknown is empty
	Unknown []string   `json:"unknown,omitempty"` // what could not be seen, and why; the node is not proved empty then
	Looked  []string   `json:"looked,omitempty"`  // what was looked at: "allocations", "steps", "pods", "processes", "device memory"
}

// NodeWork is something on a node.
type NodeWork struct {
	Kind  string `json:"kind"` // allocation, step, pod, process, device
	Name  string `json:"name"`
	Owner string `json:"owner,omitempty"`
	Ours  bool   `json:"ours,omitempty"` // of an attempt of this engine's pool
}

// ProvedEmpty reports whether the node is closed by a fence of this epoch and nothing is on it.
func (c *NodeContents) ProvedEmpty(epoch uint64) bool {
	return c.Fence != nil && c.Fence.Epoch == epoch && len(c.Work) == 0 && len(c.Unknown) == 0
}

// OnFenced is the error of a Launch on a node that is fenced: the job gives its nodes back and is placed again.
func OnFenced(ref Ref, node string, f NodeFence) error {
	return fault.New(fault.Exhausted, "launch of attempt %s: node %s is fenced (epoch %d): %s", ref, node, f.Epoch, f.Reason)
}

// Follows reports whether a call of the fence may change a node of which the last call heard was of an epoch; 0:
// none was. fault.Conflict: the call was overtaken. fault.Invalid: it names no epoch.
func (f *NodeFence) Follows(node string, last uint64) error {
	switch {
	case f.Epoch == 0:
		return fault.New(fault.Invalid, "a fence of node %s needs an epoch", node)
	case f.Epoch < last:
		return fault.New(fault.Conflict, "the fence of node %s is of epoch %d; a call of epoch %d comes too late", node, last, f.Epoch)
	}
	return nil
}
