package state

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/store"
)

// NodeHealth are all fences of a node since checks failed there. A record replaces the one before it;
// one without fences removes them. Names are a format on disk.
type NodeHealth struct {
	Pool   string              `json:"pool"`
	Node   string              `json:"node"`
	Epoch  uint64              `json:"epoch"` // grows by one with each record of the node
	Fences []fleet.HealthFence `json:"fences,omitempty"`
	Text   string              `json:"text,omitempty"` // what changed, for people
}

// Key identifies the node.
func (v *NodeHealth) Key() fleet.NodeKey { return fleet.NodeKey{Pool: v.Pool, Name: v.Node} }

// applyNodeHealth keeps a record without fences too: its epoch tells that a writer is late.
func (s *State) applyNodeHealth(_ *store.Record, v NodeHealth) error {
	if was := s.Health[v.Key()]; v.Epoch <= was.Epoch {
		return fmt.Errorf("the health of node %s has epoch %d after epoch %d", v.Key(), v.Epoch, was.Epoch)
	}
	s.Health[v.Key()] = v
	return nil
}

// encodeHealth lists the health of nodes for the projection, by pool and name.
func (s *State) encodeHealth() []NodeHealth {
	out := make([]NodeHealth, 0, len(s.Health))
	for _, v := range s.Health {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b NodeHealth) int { return strings.Compare(a.Key().String(), b.Key().String()) })
	return out
}

// nodeHealthEvent makes the event of a change of fences.
func nodeHealthEvent(ev *Event, v *NodeHealth) {
	ev.Kind, ev.Nodes, ev.Message = EventUnfenced, []string{v.Node}, v.Text
	if len(v.Fences) > 0 {
		ev.Kind = EventFenced
	}
}
