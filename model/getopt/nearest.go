package getopt

import "strings"

// Nearest is the main name of the option that an unknown long name most likely means: the
// one with the fewest changed letters, else the one that shares most of its words. It is
// empty where no option is near.
func Nearest(name string, n int, option func(index int) Option) string {
	best, cost := "", 1+min(len(name)/3, 3)
	shared, by := "", 0
	words := splitWords(name)
	for i := range n {
		o := option(i)
		if o.Long == "" {
			continue
		}
		if d := Distance(name, o.Long); d < cost {
			best, cost = o.Canonical(), d
		}
		of := splitWords(o.Long)
		common := 0
		for _, w := range of {
			for _, v := range words {
				if w == v && len(w) > 2 {
					common++
				}
			}
		}
		// Of names that share as many words, the one with the fewest others is meant.
		if weight := 16*common - len(of); common > 0 && weight > by {
			shared, by = o.Canonical(), weight
		}
	}
	if best == "" {
		return shared
	}
	return best
}

// splitWords cuts a long name at its hyphens and underscores.
func splitWords(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
}

// Distance counts the letters to insert, drop, replace or swap with their neighbour
// to make b of a (optimal string alignment), for "did you mean". A word of more than
// 64 letters is near to nothing: its distance is its length.
func Distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range now {
		now[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, now = last, now, before
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
	}
	return now[len(b)]
}
