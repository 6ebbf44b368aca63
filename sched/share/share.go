// Package share scores where a request for devices, or for a part of one, is placed
// best on a pool whose devices can be divided.
//
// A score looks at one node and one request: the policies that were published for
// this, each in a file of its own with its source (Random, BestFit, DotProduct,
// Clustering, Packing, Fragmentation), and Coxswain's own (Expected). Pool
// places request after request by one of them and works out only the scores of nodes
// that have changed. Equal scores: the first node.
//
// It is pure and knows nothing of time, gangs or isolation: a share of a device
// limits nothing by itself (docs/explanation/sharing.md).
package share

import "slices"

// Whole is a whole device in thousandths.
const Whole = 1000

// Request is what one task asks of one node.
type Request struct {
	CPU    int64 // thousandths
	Memory int64 // any unit, the nodes' one
	Count  int   // devices
	Milli  int   // thousandths of each: Whole, or less if Count is 1
	Models []int // that will do, sorted; empty: any
}

// Total is the thousandths of devices that it takes.
func (r *Request) Total() int { return r.Count * r.Milli }

// Part reports whether it takes less than a whole device.
func (r *Request) Part() bool { return r.Count == 1 && r.Milli < Whole }

// Takes reports whether a model will do.
func (r *Request) Takes(model int) bool {
	return len(r.Models) == 0 || slices.Contains(r.Models, model)
}

// Node is what is left on a node, and what it has.
type Node struct {
	CPU, Memory int64
	Left        []int // thousandths of each device
	Model       int
	Kinds       [10]int // running requests by kind: of a part, of 1, 2 … devices; the last: of more
}

// Total is what is left of its devices together.
func (n *Node) Total() int {
	sum := 0
	for _, l := range n.Left {
		sum += l
	}
	return sum
}

// Idle counts devices that nobody uses.
func (n *Node) Idle() int {
	c := 0
	for _, l := range n.Left {
		if l == Whole {
			c++
		}
	}
	return c
}

// Fits reports whether a request has room.
func (n *Node) Fits(r *Request) bool {
	if n.CPU < r.CPU || n.Memory < r.Memory || r.Count > 0 && !r.Takes(n.Model) {
		return false
	}
	need := r.Count
	for _, l := range n.Left {
		if need == 0 {
			break
		}
		if l >= r.Milli {
			need--
		}
	}
	return need == 0
}

// kindIndex is the index of a request in Node.Kinds; -1: it takes no device.
func (r *Request) kindIndex() int {
	switch {
	case r.Count == 0:
		return -1
	case r.Part():
		return 0
	}
	return min(r.Count, 9)
}

// devicesTaken lists what a request takes: the device that was chosen for a part, the
// first idle ones otherwise.
func (n *Node) devicesTaken(r *Request, chosen int) []int {
	if r.Part() {
		return []int{chosen}
	}
	var out []int
	for i, l := range n.Left {
		if len(out) < r.Count && l >= r.Milli {
			out = append(out, i)
		}
	}
	return out
}

// tightestDevice is the device with the least left that has room for a part.
func (n *Node) tightestDevice(milli int) int {
	best := -1
	for i, l := range n.Left {
		if l >= milli && (best < 0 || l < n.Left[best]) {
			best = i
		}
	}
	return best
}
