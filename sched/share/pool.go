package share

import (
	"encoding/binary"
)

// Score rates a node that has room for a request: the larger the better. For a part
// of a device it also says of which one.
type Score interface {
	Rate(n *Node, r *Request) (score int64, device int)
}

// Learner is a score that learns from what arrives, placed or not. It reports when
// its scores have changed.
type Learner interface {
	Score
	Arrived(r *Request) (changed bool)
}

// Pool places requests one after the other. Nothing ever leaves it unless Free is
// called.
type Pool struct {
	Nodes []Node
	score Score

	version []uint32 // of nodes, raised when they change
	memo    map[string]*rated
	epoch   uint32 // raised when all scores have changed
}

// rated is what is known of one request on every node.
type rated struct {
	epoch uint32
	nodes []rate
}

type rate struct {
	version uint32 // of the node; 0: not rated
	fits    bool
	device  int8
	score   int64
}

// NewPool returns a pool of nodes, which it owns from then on.
func NewPool(nodes []Node, score Score) *Pool {
	p := &Pool{Nodes: nodes, score: score, version: make([]uint32, len(nodes)), memo: map[string]*rated{}}
	for i := range p.version {
		p.version[i] = 1
	}
	return p
}

// Place takes room for a request where the score is best, and says where; node is -1
// if it fits nowhere.
func (p *Pool) Place(r *Request) (node int, devices []int) {
	if l, ok := p.score.(Learner); ok && l.Arrived(r) {
		p.epoch++
	}
	if random, ok := p.score.(*Random); ok {
		node, device := random.chooseRandom(p.Nodes, r)
		return node, p.takePlace(node, r, device)
	}
	node, device := p.bestPlace(r)
	return node, p.takePlace(node, r, device)
}

func (p *Pool) bestPlace(r *Request) (node, device int) {
	known := p.knownRates(r)
	node = -1
	for i := range p.Nodes {
		x := &known.nodes[i]
		if x.version != p.version[i] {
			*x = p.rateNode(i, r)
		}
		if x.fits && (node < 0 || x.score > known.nodes[node].score) {
			node, device = i, int(x.device)
		}
	}
	return node, device
}

func (p *Pool) rateNode(i int, r *Request) rate {
	n := &p.Nodes[i]
	x := rate{version: p.version[i], fits: n.Fits(r)}
	if x.fits {
		score, device := p.score.Rate(n, r)
		x.score, x.device = score, int8(device)
	}
	return x
}

func (p *Pool) knownRates(r *Request) *rated {
	key := make([]byte, 0, 64)
	for _, x := range []int64{r.CPU, r.Memory, int64(r.Count), int64(r.Milli)} {
		key = binary.AppendVarint(key, x)
	}
	for _, m := range r.Models {
		key = binary.AppendVarint(key, int64(m))
	}
	k := p.memo[string(key)]
	if k == nil {
		k = &rated{nodes: make([]rate, len(p.Nodes)), epoch: p.epoch}
		p.memo[string(key)] = k
	}
	if k.epoch != p.epoch {
		k.epoch = p.epoch
		clear(k.nodes)
	}
	return k
}

func (p *Pool) takePlace(node int, r *Request, device int) []int {
	if node < 0 {
		return nil
	}
	n := &p.Nodes[node]
	devices := n.devicesTaken(r, device)
	n.changeUse(r, devices, -1)
	p.version[node]++
	return devices
}

// Free gives back what a request took.
func (p *Pool) Free(node int, r *Request, devices []int) {
	p.Nodes[node].changeUse(r, devices, 1)
	p.version[node]++
}

func (n *Node) changeUse(r *Request, devices []int, sign int) {
	n.CPU += int64(sign) * r.CPU
	n.Memory += int64(sign) * r.Memory
	for _, d := range devices {
		n.Left[d] += sign * r.Milli
	}
	if k := r.kindIndex(); k >= 0 {
		n.Kinds[k] -= sign
	}
}
