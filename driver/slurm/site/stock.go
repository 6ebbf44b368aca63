package site

import (
	"strconv"
	"strings"
)

// Words takes a list with commas apart. Slurm's words for none and for all are none.
func Words(text string) (out []string) {
	for w := range strings.SplitSeq(text, ",") {
		switch w = strings.TrimSpace(w); w {
		case "", "(null)", "N/A", "ALL", "NONE", "none":
		default:
			out = append(out, w)
		}
	}
	return out
}

// Amount is how much of a kind a list of amounts names: 2 for "gres/gpu" of
// "cpu=8,gres/gpu=2". ok is false if it does not.
func Amount(tres, kind string) (n int64, ok bool) {
	for part := range strings.SplitSeq(tres, ",") {
		name, value, is := strings.Cut(strings.TrimSpace(part), "=")
		if !is || name != kind {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// GPUs are those of a job: of its amounts where the cluster counts GPUs there
// (AccountingStorageTRES=gres/gpu), else of what it asked for on each node and in all, in
// the forms "gres:gpu:2" and "gres/gpu:h100:2".
func GPUs(tres, perNode, perJob string, nodes int) int {
	if n, ok := Amount(tres, "gres/gpu"); ok {
		return int(n)
	}
	return sumRequested(perNode)*nodes + sumRequested(perJob)
}

func sumRequested(text string) (sum int) {
	for part := range strings.SplitSeq(text, ",") {
		f := strings.Split(strings.TrimPrefix(strings.Replace(strings.TrimSpace(part), "gres/", "gres:", 1), "gres:"), ":")
		if f[0] != "gpu" {
			continue
		}
		n, err := strconv.Atoi(f[len(f)-1])
		if err != nil { // a name alone is one
			n = 1
		}
		sum += n
	}
	return sum
}

// Seconds reads Slurm's forms of a time: "30", "1:30" (minutes and seconds), "01:30:00",
// "2-00", "2-12:30", "2-12:30:10". Words such as UNLIMITED and NONE are 0: no limit.
func Seconds(text string) int64 {
	days, rest, split := strings.Cut(strings.TrimSpace(text), "-")
	if !split {
		days, rest = "0", days
	}
	d, err := strconv.ParseInt(days, 10, 32)
	if err != nil {
		return 0
	}
	var f []int64
	for p := range strings.SplitSeq(rest, ":") {
		n, err := strconv.ParseInt(p, 10, 32)
		if err != nil || len(f) == 3 {
			return 0
		}
		f = append(f, n)
	}
	switch {
	case split: // hours first
		f = append(f, 0, 0)[:3]
	case len(f) == 1: // minutes
		f = []int64{0, f[0], 0}
	case len(f) == 2:
		f = []int64{0, f[0], f[1]}
	}
	return d*86400 + f[0]*3600 + f[1]*60 + f[2]
}
