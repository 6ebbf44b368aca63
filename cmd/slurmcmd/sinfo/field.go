package sinfo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/fleet"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// field is a column of sinfo.
type field struct {
	letter byte
	long   string
	head   string
	alike  bool // nodes that differ in it are not of one line
	text   func(b []byte, s *show, g *group) []byte
}

func fixedField(v string) func([]byte, *show, *group) []byte {
	return func(b []byte, _ *show, _ *group) []byte { return append(b, v...) }
}

// nodeField is a column that one node gives for all of its line.
func nodeField(f func(n *fleet.Node) string) func([]byte, *show, *group) []byte {
	return func(b []byte, _ *show, g *group) []byte {
		if len(g.nodes) == 0 {
			return append(b, "n/a"...)
		}
		return append(b, f(g.nodes[0])...)
	}
}

// minimumField is a number, with a + behind it where other nodes have more.
func minimumField(f func(n *fleet.Node) int64) func([]byte, *show, *group) []byte {
	return func(b []byte, _ *show, g *group) []byte {
		if len(g.nodes) == 0 {
			return append(b, '0')
		}
		low, high := f(g.nodes[0]), f(g.nodes[0])
		for _, n := range g.nodes {
			low, high = min(low, f(n)), max(high, f(n))
		}
		b = strconv.AppendInt(b, low, 10)
		if high > low {
			b = append(b, '+')
		}
		return b
	}
}

func nullText(s string) string {
	if s == "" {
		return "(null)"
	}
	return s
}

func noneText(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func limitText(seconds int64, without string) string {
	if seconds == 0 {
		return without
	}
	return string(jobs.AppendSpan(nil, seconds))
}

func stateField(f func(short, long string) string) func([]byte, *show, *group) []byte {
	return nodeField(func(n *fleet.Node) string { short, long, _ := n.Words(); return f(short, long) })
}

var fields = []field{
	{'a', "available", "AVAIL", true, func(b []byte, _ *show, g *group) []byte { return append(b, g.part.State...) }},
	{'A', "nodeai", "NODES(A/I)", false, func(b []byte, _ *show, g *group) []byte {
		a, i, _ := g.nodeCounts()
		return fmt.Appendf(b, "%d/%d", a, i)
	}},
	{'b', "features_act", "ACTIVE_FEATURES", true, nodeField(featuresText)},
	{'B', "maxcpuspernode", "MAX_CPUS_PER_NODE", true, fixedField("UNLIMITED")},
	{'c', "cpus", "CPUS", false, minimumField(func(n *fleet.Node) int64 { return n.CPUs })},
	{'C', "cpusstate", "CPUS(A/I/O/T)", false, func(b []byte, _ *show, g *group) []byte { return g.cpuCounts(b) }},
	{'d', "disk", "TMP_DISK", false, minimumField(func(n *fleet.Node) int64 { return n.Disk >> 20 })},
	{'D', "nodes", "NODES", false, func(b []byte, _ *show, g *group) []byte { return strconv.AppendInt(b, int64(len(g.nodes)), 10) }},
	{'e', "freemem", "FREE_MEM", false, func(b []byte, _ *show, g *group) []byte { return g.appendRange(b, freeMemory) }},
	{'E', "reason", "REASON", true, nodeField(func(n *fleet.Node) string { return noneText(n.Why) })},
	{'f', "features", "AVAIL_FEATURES", true, nodeField(featuresText)},
	{'F', "nodeaiot", "NODES(A/I/O/T)", false, func(b []byte, _ *show, g *group) []byte {
		a, i, o := g.nodeCounts()
		return fmt.Appendf(b, "%d/%d/%d/%d", a, i, o, len(g.nodes))
	}},
	{'g', "groups", "GROUPS", true, fixedField("all")},
	{'G', "gres", "GRES", true, nodeField(func(n *fleet.Node) string { return nullText(n.GRES) })},
	{'h', "oversubscribe", "OVERSUBSCRIBE", true, fixedField("NO")},
	{'H', "timestamp", "TIMESTAMP", true, nodeField(reasonTime)},
	{'i', "reservation", "RESERVATION", true, fixedField("")},
	{'I', "priorityjobfactor", "PRIO_JOB_FACTOR", true, fixedField("1")},
	{'l', "time", "TIMELIMIT", true, func(b []byte, _ *show, g *group) []byte { return append(b, limitText(g.part.TimeLimit, "infinite")...) }},
	{0, "maxtime", "TIMELIMIT", true, func(b []byte, _ *show, g *group) []byte { return append(b, limitText(g.part.TimeLimit, "infinite")...) }},
	{'L', "defaulttime", "DEFAULTTIME", true, func(b []byte, _ *show, g *group) []byte { return append(b, limitText(g.part.DefaultTime, "n/a")...) }},
	{'m', "memory", "MEMORY", false, minimumField(func(n *fleet.Node) int64 { return n.Memory >> 20 })},
	{'M', "preemptmode", "PREEMPT_MODE", true, fixedField("OFF")},
	{'n', "nodehost", "HOSTNAMES", true, nodeField(func(n *fleet.Node) string { return n.Name })},
	{'N', "nodelist", "NODELIST", false, func(b []byte, _ *show, g *group) []byte { return append(b, g.hostList()...) }},
	{'o', "nodeaddr", "NODE_ADDR", true, nodeField(func(n *fleet.Node) string { return nullText(n.Address) })},
	{'O', "cpusload", "CPU_LOAD", false, appendLoad},
	{'p', "prioritytier", "PRIO_TIER", true, fixedField("1")},
	{'P', "partition", "PARTITION", true, func(b []byte, _ *show, g *group) []byte {
		if b = append(b, g.part.Name...); g.part.Default {
			b = append(b, '*')
		}
		return b
	}},
	{'R', "partitionname", "PARTITION", true, func(b []byte, _ *show, g *group) []byte { return append(b, g.part.Name...) }},
	{'r', "root", "ROOT", true, fixedField("no")},
	{'s', "size", "JOB_SIZE", true, fixedField("1-infinite")},
	{'S', "allocnodes", "ALLOCNODES", true, fixedField("all")},
	{'t', "statecompact", "STATE", true, stateField(func(short, _ string) string { return short })},
	{'T', "statelong", "STATE", true, stateField(func(_, long string) string { return long })},
	{0, "statecomplete", "STATECOMPLETE", true, stateField(func(_, long string) string { return long })},
	{'u', "user", "USER", true, nodeField(reasonUser)},
	{'U', "userlong", "USER", true, nodeField(reasonUser)},
	{'v', "version", "VERSION", true, fixedField("24.11")},
	{'V', "cluster", "CLUSTER", true, func(b []byte, s *show, _ *group) []byte {
		if s.heading == "" {
			return append(b, "N/A"...)
		}
		return append(b, s.heading...)
	}},
	{'w', "weight", "WEIGHT", false, fixedField("1")},
	{'X', "sockets", "SOCKETS", false, minimumField(func(n *fleet.Node) int64 { return n.Sockets })},
	{'Y', "cores", "CORES", false, minimumField((*fleet.Node).Cores)},
	{'Z', "threads", "THREADS", false, fixedField("1")},
	{'z', "socketcorethread", "S:C:T", true, nodeField(func(n *fleet.Node) string { return fmt.Sprintf("%d:%d:1", n.Sockets, n.Cores()) })},
	{0, "allocmem", "ALLOCMEM", true, nodeField(func(n *fleet.Node) string { return strconv.FormatInt(n.MemoryUsed>>20, 10) })},
	{0, "comment", "COMMENT", true, fixedField("(null)")},
	{0, "extra", "EXTRA", true, fixedField("(null)")},
	{0, "gresused", "GRES_USED", true, nodeField(func(n *fleet.Node) string { return nullText(n.GRESUsed) })},
	{0, "port", "PORT", true, fixedField("0")},
}

// findLetter returns the index of a field by its letter in -o.
func findLetter(letter byte) (int, bool) {
	for i := range fields {
		if fields[i].letter == letter {
			return i, true
		}
	}
	return 0, false
}

// findLong returns the index of a field by its name in -O.
func findLong(name string) (int, bool) {
	for i := range fields {
		if fields[i].long == name {
			return i, true
		}
	}
	return 0, false
}

// appendLoad appends the load of the nodes' machines, or the range of it.
func appendLoad(b []byte, _ *show, g *group) []byte {
	low, high, known := 0.0, 0.0, false
	for _, n := range g.nodes {
		switch {
		case !n.KnowsSystem():
		case !known:
			low, high, known = n.Load, n.Load, true
		default:
			low, high = min(low, n.Load), max(high, n.Load)
		}
	}
	if !known {
		return append(b, "N/A"...)
	}
	b = strconv.AppendFloat(b, low, 'f', 2, 64)
	if high > low {
		b = strconv.AppendFloat(append(b, '-'), high, 'f', 2, 64)
	}
	return b
}

func featuresText(n *fleet.Node) string { return nullText(strings.Join(n.Features, ",")) }

func freeMemory(n *fleet.Node) int64 { return max(n.Memory-n.MemoryUsed, 0) >> 20 }

func reasonTime(n *fleet.Node) string {
	if n.Since.IsZero() || n.State == "up" {
		return "Unknown"
	}
	return n.Since.Local().Format("2006-01-02T15:04:05")
}

func reasonUser(n *fleet.Node) string {
	if n.By == "" {
		return "Unknown"
	}
	return n.By
}

// nodeCounts are the nodes that jobs have, that are idle, and that take no work.
func (g *group) nodeCounts() (alloc, idle, other int) {
	for _, n := range g.nodes {
		switch {
		case n.Busy() && n.State != "down":
			alloc++
		case n.Usable():
			idle++
		default:
			other++
		}
	}
	return alloc, idle, other
}

func (g *group) cpuCounts(b []byte) []byte {
	var alloc, idle, other, total int64
	for _, n := range g.nodes {
		total += n.CPUs
		alloc += n.CPUsUsed
		if rest := max(n.CPUs-n.CPUsUsed, 0); n.Usable() {
			idle += rest
		} else {
			other += rest
		}
	}
	return fmt.Appendf(b, "%d/%d/%d/%d", alloc, idle, other, total)
}

// appendRange is a number or a range of them.
func (g *group) appendRange(b []byte, f func(n *fleet.Node) int64) []byte {
	if len(g.nodes) == 0 {
		return append(b, "n/a"...)
	}
	low, high := f(g.nodes[0]), f(g.nodes[0])
	for _, n := range g.nodes {
		low, high = min(low, f(n)), max(high, f(n))
	}
	b = strconv.AppendInt(b, low, 10)
	if high > low {
		b = strconv.AppendInt(append(b, '-'), high, 10)
	}
	return b
}

func (g *group) hostList() string {
	names := make([]string, len(g.nodes))
	for i, n := range g.nodes {
		names[i] = n.Name
	}
	return hostlist.Compress(names)
}
