package sshare

import (
	"math"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api/fastclient"
)

// field is a column of sshare; a negative width stands left.
type field struct {
	name  string
	width int
	text  func(r row, width int) string
}

var fields = []field{
	{"Account", -20, func(r row, _ int) string { return strings.Repeat(" ", r.indent) + r.Get("account").Text() }},
	{"Cluster", 10, func(r row, _ int) string { return r.cluster }},
	{"EffectvUsage", 13, func(r row, w int) string { return formatDecimal(r.Get("effective_usage").Float(), w) }},
	{"FairShare", 10, fairShare},
	{"GrpTRESMins", 30, func(r row, _ int) string { return formatTRES(r.Get("group_minutes"), false) }},
	{"GrpTRESRaw", 30, func(r row, _ int) string { return formatTRES(r.Get("tres_minutes"), true) }},
	{"ID", 6, func(row, int) string { return "" }},
	{"LevelFS", 10, formatLevel},
	{"NormShares", 11, func(r row, w int) string { return formatDecimal(r.norm, w) }},
	{"NormUsage", 11, normUsage},
	{"Partition", 12, func(row, int) string { return "" }},
	{"RawShares", 10, rawShares},
	{"RawUsage", 11, func(r row, _ int) string {
		return strconv.FormatFloat(math.Floor(r.Get("raw_usage").Float()), 'f', 0, 64)
	}},
	{"TRESRunMins", 30, func(r row, _ int) string { return formatTRES(r.Get("run_minutes"), true) }},
	{"User", 10, func(r row, _ int) string { return r.Get("user").Text() }},
}

// isDecimal reports whether a column has numbers with digits behind the point, which are
// never cut.
func (f *field) isDecimal() bool {
	switch f.name {
	case "EffectvUsage", "FairShare", "LevelFS", "NormShares", "NormUsage":
		return true
	}
	return false
}

// findField returns the index of a field by its name or the beginning of it.
func findField(name string) (int, bool) {
	for i := range fields {
		if name != "" && len(name) <= len(fields[i].name) && strings.EqualFold(fields[i].name[:len(name)], name) {
			return i, true
		}
	}
	return 0, false
}

// formatDecimal writes a number with six digits; as one with an exponent where the column is
// too narrow.
func formatDecimal(x float64, width int) string {
	s := strconv.FormatFloat(x, 'f', 6, 64)
	if len(s) > max(width, -width) && width != 0 {
		s = strconv.FormatFloat(x, 'e', 6, 64)
	}
	return s
}

func fairShare(r row, width int) string {
	if r.Get("user").Text() == "" {
		return ""
	}
	return formatDecimal(r.Get("fair_share").Float(), width)
}

func normUsage(r row, width int) string {
	if r.isRoot() {
		return ""
	}
	return formatDecimal(r.Get("norm_usage").Float(), width)
}

func rawShares(r row, _ int) string {
	switch n := r.Get("raw_shares").Int(); {
	case r.isRoot():
		return ""
	case n < 0:
		return "parent"
	default:
		return strconv.FormatInt(n, 10)
	}
}

func formatLevel(r row, width int) string {
	switch v := r.Get("level"); {
	case r.isRoot() || r.Get("raw_shares").Int() < 0:
		return ""
	case !r.Has("level"):
		return "inf"
	default:
		return formatDecimal(v.Float(), width)
	}
}

// tres are the words of Slurm for what is counted, in the order of its numbers, and
// how much of ours one of its units is.
var tres = []struct {
	ours, theirs string
	per          float64
}{
	{"cpu", "cpu", 1},
	{"memory", "mem", 1024},
	{"", "energy", 1},
	{"node", "node", 1},
	{"billing", "billing", 1},
	{"disk", "fs/disk", 1024},
	{"", "vmem", 1},
	{"", "pages", 1},
}

// formatTRES is a list of things as Slurm writes it. all: those too of which there is
// nothing, as far as Slurm always knows them.
func formatTRES(v fastclient.Value, all bool) string {
	var out []string
	seen := map[string]bool{}
	for _, t := range tres {
		seen[t.ours] = true
		if all || v.Has(t.ours) {
			out = append(out, t.theirs+"="+strconv.FormatFloat(math.Floor(v.Get(t.ours).Float()*t.per), 'f', 0, 64))
		}
	}
	for _, name := range v.Names() {
		if !seen[name] {
			theirs := name
			if name == "gpu" || strings.HasPrefix(name, "gpu:") {
				theirs = "gres/" + name
			}
			out = append(out, theirs+"="+strconv.FormatFloat(math.Floor(v.Get(name).Float()), 'f', 0, 64))
		}
	}
	return strings.Join(out, ",")
}
