package pmix

import (
	"fmt"
	"slices"
	"sync"
)

// Status codes of PMIx that Coxswain itself gives.
const (
	StatusError        = -1
	StatusBadParam     = -27
	StatusNotSupported = -47
	StatusNotFound     = -46
)

// Exchange is srun's side: it joins fences and routes requests. It is safe for concurrent use.
type Exchange struct {
	Layout Layout
	Send   func(node int, m Message) // to the PMIx server of a node of the layout; called by several goroutines
	Abort  func(rank, code int, text string)
	Say    func(text string)
	Lost   func(rank int) // a rank went away without a word: the others would wait for ever

	mu     sync.Mutex
	fences map[string]*fence // by the ranks that take part
}

// fence is what came to the fences of one set of ranks.
type fence struct {
	nodes []int            // that take part, in order
	come  map[int][][]byte // what each node brought, to this fence and to later ones
}

// Handle handles a message of a node's PMIx server.
func (x *Exchange) Handle(node int, m Message) {
	switch m.Op {
	case OpFence:
		x.enterFence(node, m)
	case OpGet:
		holder := x.Layout.Holder(m.Rank)
		if holder < 0 {
			x.Send(node, Message{Op: OpGot, ID: m.ID, Status: StatusNotFound})
			return
		}
		x.Send(holder, Message{Op: OpWant, ID: m.ID, Node: node, Rank: m.Rank})
	case OpHave:
		if m.Node >= 0 && m.Node < len(x.Layout.Nodes) {
			x.Send(m.Node, Message{Op: OpGot, ID: m.ID, Status: m.Status, Data: m.Data})
		}
	case OpAbort:
		x.Abort(m.Rank, m.Status, m.Text)
	case OpLost:
		x.Lost(m.Rank)
	case OpSay:
		x.Say(m.Text)
	}
}

// enterFence notes that a node came to a fence, and answers all nodes if it was the last.
func (x *Exchange) enterFence(node int, m Message) {
	nodes := x.nodesOf(m.Ranks)
	if !slices.Contains(nodes, node) {
		x.Send(node, Message{Op: OpFenced, Ranks: m.Ranks, Status: StatusBadParam})
		return
	}
	key := fmt.Sprint(m.Ranks)
	x.mu.Lock()
	f := x.fences[key]
	if f == nil {
		f = &fence{nodes: nodes, come: make(map[int][][]byte)}
		if x.fences == nil {
			x.fences = make(map[string]*fence)
		}
		x.fences[key] = f
	}
	f.come[node] = append(f.come[node], m.Data)
	for _, n := range f.nodes {
		if len(f.come[n]) == 0 {
			x.mu.Unlock()
			return
		}
	}
	var all []byte
	left := 0
	for _, n := range f.nodes {
		all = append(all, f.come[n][0]...)
		f.come[n] = f.come[n][1:]
		left += len(f.come[n])
	}
	if left == 0 {
		delete(x.fences, key)
	}
	x.mu.Unlock()
	for _, n := range nodes {
		x.Send(n, Message{Op: OpFenced, Ranks: m.Ranks, Data: all})
	}
}

// nodesOf lists the nodes that have some of the ranks; none: all. It is empty if a rank is
// nobody's.
func (x *Exchange) nodesOf(ranks []int) []int {
	var out []int
	if len(ranks) == 0 {
		for n := range x.Layout.Nodes {
			out = append(out, n)
		}
		return out
	}
	seen := make(map[int]bool)
	for _, r := range ranks {
		n := x.Layout.Holder(r)
		if n < 0 {
			return nil
		}
		seen[n] = true
	}
	for n := range x.Layout.Nodes {
		if seen[n] {
			out = append(out, n)
		}
	}
	return out
}
