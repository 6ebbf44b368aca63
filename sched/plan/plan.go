// Package plan answers the one question of a timetable: from which instant on can so
// many nodes take their parts of a gang together?
//
// The answer for each node is known to the caller. A node that only becomes freer
// can from one instant on; a node on which something is planned can during spans,
// which end where a gang that began later would run into what is planned. The
// earliest instant for all is then the beginning of one of them.
//
// The package knows no node, no job and no clock. Slowly is the same question asked
// of every instant in turn, for tests.
package plan

import (
	"cmp"
	"slices"
)

// Span is the instants at which a node could begin to take its part: from From on,
// before End. Spans of one node do not overlap.
type Span[I ~int64] struct{ From, End I }

// Never is the instant that is never reached.
const Never = 1<<63 - 1

// Earliest returns the first instant at which at least need nodes can begin: those
// of plain that have come by then, and those with a span that holds it. It is Never
// where there is none. Both lists are reordered.
func Earliest[I ~int64](plain []I, spans []Span[I], need int) I {
	first, last, early := answerBounds(plain, len(spans), need)
	if first == Never {
		return Never
	}
	rest := plain[:0]
	for _, at := range plain {
		if at >= first && at <= last && at != Never {
			rest = append(rest, at)
		}
	}
	slices.Sort(rest)
	slices.SortFunc(spans, func(a, b Span[I]) int { return cmp.Compare(a.From, b.From) })
	ends := make([]I, len(spans))
	for i, s := range spans {
		ends[i] = s.End
	}
	slices.Sort(ends)
	return sweepInstants(first, rest, spans, ends, need-early)
}

// answerBounds says before and after which instant the answer cannot be, whatever the
// spans are, and how many plain nodes have come before the first.
func answerBounds[I ~int64](plain []I, spans, need int) (first, last I, early int) {
	first, last = -1<<63, Never
	if n := need - spans; n > len(plain) {
		return Never, last, 0
	} else if n > 0 {
		first = Nth(plain, n-1)
	}
	if need <= len(plain) && need > 0 {
		last = Nth(plain, need-1)
	}
	for _, at := range plain {
		if at < first {
			early++
		}
	}
	return first, last, early
}

// sweepInstants goes through the instants at which a node begins, all lists sorted.
func sweepInstants[I ~int64](first I, plain []I, spans []Span[I], ends []I, need int) I {
	come, begun, ended := 0, 0, 0
	for come < len(plain) || begun < len(spans) {
		at := I(Never)
		if come < len(plain) {
			at = plain[come]
		}
		if begun < len(spans) {
			at = min(at, max(first, spans[begun].From))
		}
		for come < len(plain) && plain[come] <= at {
			come++
		}
		for begun < len(spans) && spans[begun].From <= at {
			begun++
		}
		for ended < len(ends) && ends[ended] <= at {
			ended++
		}
		if come+begun-ended >= need && at != Never {
			return at
		}
	}
	return Never
}

// Nth is the element that sorting would put at index n; it reorders all.
func Nth[I cmp.Ordered](all []I, n int) I {
	lo, hi := 0, len(all)-1
	for lo < hi {
		a, b, c := all[lo], all[(lo+hi)/2], all[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for all[i] < pivot {
				i++
			}
			for all[j] > pivot {
				j--
			}
			if i <= j {
				all[i], all[j] = all[j], all[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return all[n]
		}
	}
	return all[lo]
}
