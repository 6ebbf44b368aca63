// Package hostlist reads and writes Slurm's short form of many host names,
// such as "gpu[001-004,007],login1".
//
//	list   = item { separator item }          separator: comma, blank, tab or newline
//	item   = prefix { "[" ranges "]" suffix }
//	ranges = range { "," range }
//	range  = digits | digits "-" digits
//
// A range keeps the width of its lower bound: n[08-10] is n08, n09, n10. Several
// brackets in one item give every combination, the last bracket running fastest.
//
// The package does no I/O and holds no state. It refuses a list that is too
// large before it allocates anything for it, so that a few bytes from a user
// cannot fill the memory. It does not know the functions that only a Slurm
// controller can resolve (block{}, switch{}, feature{} and their like) nor the
// boxes of old multi-dimensional machines; the former are refused by name.
package hostlist

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of a list. MaxHosts and MaxBytes bound the whole expansion.
const (
	MaxRange  = 64 << 10  // hosts in one range
	MaxRanges = 256 << 10 // ranges in one list
	MaxHosts  = 1 << 20   // hosts in one list
	MaxBytes  = 64 << 20  // bytes of all names of one list
)

// Error says what is wrong with a list and where. Offset and Len count bytes of
// List; Len is at least 1 unless the list ends there.
type Error struct {
	List        string
	Offset, Len int
	Reason      string
}

// Error names the part that is wrong and why.
func (e *Error) Error() string {
	part := e.List[e.Offset : e.Offset+e.Len]
	if len(part) > 40 {
		part = part[:40] + "…"
	}
	return fmt.Sprintf("host list: %q %s", part, e.Reason)
}

// Expand returns every name of the list in the order written, duplicates kept.
// An empty list has no names. The error is always an *Error.
func Expand(list string) ([]string, error) {
	items, err := parseList(list)
	if err != nil {
		return nil, err
	}
	n, err := countNames(list, items)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, n)
	for _, it := range items {
		names = it.appendNames(names)
	}
	return names, nil
}

// Count returns how many names Expand would return, without making them.
func Count(list string) (int, error) {
	items, err := parseList(list)
	if err != nil {
		return 0, err
	}
	return countNames(list, items)
}

// item is one comma-separated entry: text[0] sets[0] text[1] sets[1] … text[n].
type item struct {
	at, end int // where it stands in the list
	text    []string
	sets    [][]span
}

// span is lo, lo+1 … hi, printed with at least width digits.
type span struct {
	lo, hi uint64
	width  int
}

func (s span) count() int { return int(s.hi-s.lo) + 1 }

func (s span) appendTo(b []byte, v uint64) []byte {
	digits := strconv.AppendUint(nil, v, 10)
	for range s.width - len(digits) {
		b = append(b, '0')
	}
	return append(b, digits...)
}

// countNames returns the number of names, refusing what exceeds MaxHosts or MaxBytes.
func countNames(list string, items []item) (int, error) {
	hosts, size := 0, 0
	for _, it := range items {
		n, length := 1, len(strings.Join(it.text, ""))
		for _, set := range it.sets {
			count, widest := 0, 0
			for _, s := range set {
				count += s.count()
				widest = max(widest, s.width, len(strconv.FormatUint(s.hi, 10)))
			}
			n *= min(count, MaxHosts+1)
			length += widest
			if n > MaxHosts {
				break
			}
		}
		hosts += n
		if hosts > MaxHosts {
			return 0, &Error{list, it.at, it.end - it.at, fmt.Sprintf("makes a list of more than %d hosts", MaxHosts)}
		}
		if length > MaxBytes {
			return 0, &Error{list, it.at, it.end - it.at, "is too long for a name"}
		}
		size += n * length
		if size > MaxBytes {
			return 0, &Error{list, it.at, it.end - it.at, fmt.Sprintf("makes a list of more than %d MiB", MaxBytes>>20)}
		}
	}
	return hosts, nil
}

// appendNames appends every combination in Slurm's order: the last bracket runs fastest; of
// those before it the first one does.
func (it item) appendNames(names []string) []string {
	switch n := len(it.sets); {
	case n == 0:
		return append(names, it.text[0])
	case n > 2:
		return it.appendMany(names)
	}
	var walk func(prefix []byte, depth int)
	walk = func(prefix []byte, depth int) {
		if depth == len(it.sets) {
			names = append(names, string(prefix))
			return
		}
		for _, s := range it.sets[depth] {
			for v := s.lo; ; v++ {
				b := s.appendTo(prefix[:len(prefix):len(prefix)], v)
				walk(append(b, it.text[depth+1]...), depth+1)
				if v == s.hi {
					break
				}
			}
		}
	}
	walk([]byte(it.text[0]), 0)
	return names
}

// appendMany is appendNames of three brackets or more.
func (it item) appendMany(names []string) []string {
	last := len(it.sets) - 1
	chosen := make([][]byte, len(it.sets))
	var walk func(depth int)
	walk = func(depth int) {
		if depth == len(it.sets) {
			b := []byte(it.text[0])
			for i, digits := range chosen {
				b = append(append(b, digits...), it.text[i+1]...)
			}
			names = append(names, string(b))
			return
		}
		at := last
		if depth < last {
			at = last - 1 - depth
		}
		for _, s := range it.sets[at] {
			for v := s.lo; ; v++ {
				chosen[at] = s.appendTo(nil, v)
				walk(depth + 1)
				if v == s.hi {
					break
				}
			}
		}
	}
	walk(0)
	return names
}
