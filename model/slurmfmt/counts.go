package slurmfmt

import (
	"strconv"
	"strings"
)

// MaxCounts bounds the length of a list of counts.
const MaxCounts = 1 << 20

// ParseCounts reads the form of SLURM_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE:
// "2(x3),1" is 2, 2, 2, 1.
func ParseCounts(s string) ([]int, error) {
	var out []int
	at := 0
	for part := range strings.SplitSeq(s, ",") {
		value, times, repeated := strings.Cut(part, "(x")
		n, ok := parseDigits(value)
		count := int64(1)
		if repeated {
			var closed, fine bool
			times, closed = strings.CutSuffix(times, ")")
			count, fine = parseDigits(times)
			ok = ok && closed && fine && count > 0
		}
		if !ok || n > 1<<40 {
			return nil, wrongPart(s, at, at+len(part), "is not a list of counts (form: 72(x2),36)")
		}
		if int64(len(out))+count > MaxCounts {
			return nil, wrongPart(s, at, at+len(part), "has more than %d counts", MaxCounts)
		}
		for range count {
			out = append(out, int(n))
		}
		at += len(part) + 1
	}
	return out, nil
}

// FormatCounts prints counts in that form; equal neighbours are joined.
func FormatCounts(counts []int) string {
	var b strings.Builder
	for i := 0; i < len(counts); {
		j := i
		for j < len(counts) && counts[j] == counts[i] {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(counts[i]))
		if j-i > 1 {
			b.WriteString("(x" + strconv.Itoa(j-i) + ")")
		}
		i = j
	}
	return b.String()
}
