package index

import "math/bits"

// MaxDevices is how many devices of one node the core looks at. Those beyond it
// are never handed out.
const MaxDevices = 128

// Set is a set of device positions of one node: position i is Node.Devices[i].
type Set [2]uint64

// Has reports whether position i is in the set.
func (s Set) Has(i int) bool { return s[i>>6]>>(i&63)&1 == 1 }

// With returns the set with position i.
func (s Set) With(i int) Set { s[i>>6] |= 1 << (i & 63); return s }

// Without returns the set without position i.
func (s Set) Without(i int) Set { s[i>>6] &^= 1 << (i & 63); return s }

// And returns what is in both sets.
func (s Set) And(o Set) Set { return Set{s[0] & o[0], s[1] & o[1]} }

// Minus returns what is in s and not in o.
func (s Set) Minus(o Set) Set { return Set{s[0] &^ o[0], s[1] &^ o[1]} }

// Union returns what is in either set.
func (s Set) Union(o Set) Set { return Set{s[0] | o[0], s[1] | o[1]} }

// Len counts the positions in the set.
func (s Set) Len() int { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }

// Positions lists the set in ascending order.
func (s Set) Positions() []int {
	out := make([]int, 0, s.Len())
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			out = append(out, w<<6+bits.TrailingZeros64(word))
		}
	}
	return out
}
