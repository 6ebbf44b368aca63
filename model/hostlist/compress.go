package hostlist

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Compress returns the shortest list of the names, each once, ordered as by
// Compare: Expand(Compress(names)) is names sorted without duplicates. Names
// that are empty or contain brackets or separators are not host names; empty
// ones are left out, others are written as they are.
func Compress(names []string) string {
	hosts := splitHosts(names)
	slices.SortFunc(hosts, host.compare)
	return joinHosts(slices.Compact(hosts))
}

// CompressInOrder shortens without sorting and keeps duplicates:
// Expand(CompressInOrder(names)) is names. Rank order survives it.
func CompressInOrder(names []string) string { return joinHosts(splitHosts(names)) }

// Compare orders host names as Slurm does: by prefix, in which numbers count as
// numbers (rack9-1 before rack10-1), then number of trailing digits, then their
// value: n2 before n10, n10 before n010.
func Compare(a, b string) int { return newHost(a).compare(newHost(b)) }

// host is a name cut before its trailing digits.
type host struct {
	prefix, digits string
	value          uint64
}

func newHost(name string) host {
	cut := len(name)
	for cut > 0 && name[cut-1] >= '0' && name[cut-1] <= '9' {
		cut--
	}
	v, err := strconv.ParseUint(name[cut:], 10, 64)
	if err != nil { // no digits, or too many for a number
		return host{prefix: name}
	}
	return host{name[:cut], name[cut:], v}
}

func (h host) compare(o host) int {
	return cmp.Or(
		compareNatural(h.prefix, o.prefix),
		cmp.Compare(len(h.digits), len(o.digits)),
		cmp.Compare(h.value, o.value),
	)
}

// compareNatural compares texts piece by piece, runs of digits by value. A run with a
// leading zero is compared from its left, as decimals are: 01 before 1, 010 before
// 09.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		na, nb := leadingDigits(a), leadingDigits(b)
		c := 0
		switch {
		case na == 0 || nb == 0:
			na, nb = 1, 1
			c = cmp.Compare(a[0], b[0])
		case a[0] == '0' || b[0] == '0':
			c = strings.Compare(a[:na], b[:nb])
		default:
			c = cmp.Or(cmp.Compare(na, nb), strings.Compare(a[:na], b[:nb]))
		}
		if c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func splitHosts(names []string) []host {
	hosts := make([]host, 0, len(names))
	for _, n := range names {
		if n != "" {
			hosts = append(hosts, newHost(n))
		}
	}
	return hosts
}

// run is a range of consecutive values; first and last keep their digits.
type run struct{ first, last host }

// continuesRun reports whether the host continues the run when that is written with
// the width of its first number.
func (r run) continuesRun(h host) bool {
	if h.value != r.last.value+1 || h.value == 0 || h.value-r.first.value >= MaxRange {
		return false
	}
	s := span{width: len(r.first.digits)}
	return string(s.appendTo(nil, h.value)) == h.digits
}

func joinHosts(hosts []host) string {
	var b strings.Builder
	for i := 0; i < len(hosts); {
		prefix := hosts[i].prefix
		var runs []run
		for ; i < len(hosts) && hosts[i].prefix == prefix && hosts[i].digits != ""; i++ {
			if n := len(runs); n > 0 && runs[n-1].continuesRun(hosts[i]) {
				runs[n-1].last = hosts[i]
			} else {
				runs = append(runs, run{hosts[i], hosts[i]})
			}
		}
		if len(runs) == 0 { // a name without a number
			i++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		writeGroup(&b, prefix, runs)
	}
	return b.String()
}

func writeGroup(b *strings.Builder, prefix string, runs []run) {
	b.WriteString(prefix)
	if len(runs) == 0 {
		return
	}
	if len(runs) == 1 && runs[0].first == runs[0].last {
		b.WriteString(runs[0].first.digits)
		return
	}
	for i, r := range runs {
		b.WriteByte("[,"[min(i, 1)])
		b.WriteString(r.first.digits)
		if r.first != r.last {
			b.WriteByte('-')
			b.WriteString(r.last.digits)
		}
	}
	b.WriteByte(']')
}
