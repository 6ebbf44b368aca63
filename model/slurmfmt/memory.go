package slurmfmt

import (
	"math"
	"strconv"
	"strings"
)

// MemoryForms lists the forms of a memory size, for messages.
const MemoryForms = "number with K, M, G or T, MiB without a unit: 512M, 4G"

const mib = 1 << 20

// ParseMemory reads a memory size into bytes: a whole number, then K, M, G or T
// in either case and an optional B. Without a unit it is MiB; K rounds up to a
// full MiB. What 0 means is for the option to say (--mem=0 is all of a node).
func ParseMemory(s string) (int64, error) {
	digits := strings.TrimPrefix(s, "+")
	end := 0
	for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
		end++
	}
	unit := strings.ToLower(digits[end:])
	if len(unit) == 2 {
		unit = strings.TrimSuffix(unit, "b")
	}
	shift, known := map[string]int{"": 20, "k": 10, "m": 20, "g": 30, "t": 40}[unit]
	if !known || end == 0 {
		return 0, textError(s, "is not a memory size (%s)", MemoryForms)
	}
	n, ok := parseDigits(digits[:end])
	if !ok || n > (math.MaxInt64-mib)>>shift {
		return 0, textError(s, "is too large for a memory size")
	}
	return (n<<shift + mib - 1) / mib * mib, nil
}

// FormatMemory prints bytes as scontrol does: whole MiB, with the largest of M,
// G and T that leaves a whole number.
func FormatMemory(bytes int64) string {
	n := bytes / mib
	units := "MGT"
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + units[i:i+1]
}
