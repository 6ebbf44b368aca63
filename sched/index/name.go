package index

import (
	"cmp"
	"strings"
)

// CompareNames orders node names as people do: runs of digits by value, so v2
// stands before v10. Names that differ only in leading zeros are ordered as text.
func CompareNames(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		var c int
		if isDigit(x[0]) && isDigit(y[0]) {
			var m, n string
			m, x = splitNumber(x)
			n, y = splitNumber(y)
			c = cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n))
		} else {
			c = cmp.Compare(x[0], y[0])
			x, y = x[1:], y[1:]
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// splitNumber splits off the leading run of digits, without its leading zeros.
func splitNumber(s string) (digits, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return strings.TrimLeft(s[:i], "0"), s[i:]
}
