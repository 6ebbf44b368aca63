package quota

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// Share is a node's dominant share: of the resource of which it borrows most, the
// part of all that could be lent to it, divided by its weight. The zero value is the
// share of a node that borrows nothing.
type Share struct {
	Borrowed, Lendable resource.Amount // Lendable 0: no share
	Weight             int64           // in units of 1/1,000,000,000; 0 with a share: more than any other
	Resource           int32           // of the Tree
	Borrowing          bool            // of any resource, even one of which nothing could be lent
}

// Share works out a node's share. A root has none.
func (s *State) Share(n int32) Share {
	x := Share{Weight: s.nodes[n].weight, Resource: None}
	p := s.nodes[n].parent
	if p == None {
		return x
	}
	for r := range s.Resources {
		var borrowed resource.Amount
		for fr := range s.FRs {
			if s.FRs[fr].Resource == int32(r) {
				borrowed = borrowed.Add(s.Borrowed(n, int32(fr)))
			}
		}
		if borrowed == 0 {
			continue
		}
		x.Borrowing = true
		if l := s.nodes[p].lendable[r]; l > 0 && (x.Lendable == 0 || lessRatio(x.Borrowed, x.Lendable, borrowed, l)) {
			x.Borrowed, x.Lendable, x.Resource = borrowed, l, int32(r)
		}
	}
	return x
}

// lessRatio reports whether a/b < c/d.
func lessRatio(a, b, c, d resource.Amount) bool {
	h1, l1 := bits.Mul64(uint64(a), uint64(d))
	h2, l2 := bits.Mul64(uint64(c), uint64(b))
	return h1 < h2 || h1 == h2 && l1 < l2
}

// isInfinite reports whether the node has no right to what it borrows.
func (x Share) isInfinite() bool { return x.Weight == 0 && x.Borrowed > 0 }

// Compare orders shares; nodes with the smaller one go first and lose last.
func (x Share) Compare(y Share) int {
	if x.Lendable == 0 || y.Lendable == 0 { // at least one of them is 0
		return cmp.Compare(min(x.Lendable, 1), min(y.Lendable, 1))
	}
	wx, wy := x.Weight, y.Weight
	switch {
	case wx == 0 && wy == 0:
		wx, wy = 1, 1
	case wx == 0:
		return 1
	case wy == 0:
		return -1
	}
	return productOf(x.Borrowed, y.Lendable, wy).compareTo(productOf(y.Borrowed, x.Lendable, wx))
}

// wide is a number of 192 bits, the highest first.
type wide [3]uint64

func productOf(a, b resource.Amount, w int64) wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	h1, l1 := bits.Mul64(hi, uint64(w))
	h2, l2 := bits.Mul64(lo, uint64(w))
	mid, carry := bits.Add64(l1, h2, 0)
	return wide{h1 + carry, mid, l2}
}

func (x wide) compareTo(y wide) int {
	return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(x[2], y[2]))
}

// PerMille is the share in thousandths, rounded up, as it is shown: what is borrowed
// without a right to it is math.MaxInt64.
func (x Share) PerMille() int64 {
	if x.Lendable == 0 {
		return 0
	}
	if x.isInfinite() {
		return math.MaxInt64
	}
	num := new(big.Int).Mul(big.NewInt(int64(x.Borrowed)), big.NewInt(1000))
	num.Mul(num, big.NewInt(unit))
	den := new(big.Int).Mul(big.NewInt(int64(x.Lendable)), big.NewInt(x.Weight))
	q, r := new(big.Int).QuoRem(num, den, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return math.MaxInt64
	}
	return q.Int64()
}
