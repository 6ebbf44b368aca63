package printer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// NodeTone is the tone of a node's state.
func NodeTone(state string) Tone {
	switch state {
	case "up":
		return Good
	case "draining":
		return Warn
	case "down", "unknown":
		return Bad
	}
	return Plain
}

// NodeTable is the table of nodes; wide adds addresses, features and the way through
// the network.
func NodeTable(p Page, nodes []api.Node, wide bool) *Table {
	several := !wide && slices.ContainsFunc(nodes, func(n api.Node) bool { return n.Pool != nodes[0].Pool })
	t := &Table{Columns: []Column{
		{Title: "NODE"},
		{Title: "STATE"},
		{Title: "CPUS", Right: true},
		{Title: "MEMORY", Right: true},
		{Title: "GPUS", Right: true},
		{Title: "TYPE"},
		{Title: "PARTITIONS", Least: 10},
	}}
	if several {
		t.Columns = append(t.Columns, Column{Title: "POOL"})
	}
	if wide {
		t.Columns = append(t.Columns, Column{Title: "POOL"}, Column{Title: "ENGINE"}, Column{Title: "ADDRESS"}, Column{Title: "MACHINE"}, Column{Title: "OWNER"},
			Column{Title: "PATH"}, Column{Title: "FEATURES", Least: 10})
	}
	t.Columns = append(t.Columns, Column{Title: "JOBS OR WHY", Least: 12})
	for i := range nodes {
		n := &nodes[i]
		cells := []Cell{
			{Text: n.Name, Tone: Accent},
			{Text: n.State, Tone: NodeTone(n.State)},
			textCell(Number(n.CPUsUsed) + "/" + Number(n.CPUs)), textCell(Bytes(n.MemoryUsed) + "/" + Bytes(n.Memory)),
			textCell(gpuUse(n)), textCell(typesOf(n)), textCell(strings.Join(n.Partitions, ",")),
		}
		if several {
			cells = append(cells, textCell(n.Pool))
		}
		if wide {
			cells = append(cells, textCell(n.Pool), textCell(n.Engine), textCell(n.Address), textCell(hostlist.Compress(n.Hosts)), textCell(n.Owner), textCell(strings.Join(n.Path, "/")), textCell(strings.Join(n.Features, ",")))
		}
		t.Rows = append(t.Rows, append(cells, jobsOrWhy(n)))
	}
	return t
}

func jobsOrWhy(n *api.Node) Cell {
	jobs := strings.Join(n.Jobs, ",")
	switch {
	case n.State == "up":
		return textCell(jobs)
	case jobs == "":
		return Cell{Text: n.Why, Tone: Warn}
	}
	return Cell{Text: jobs + "; " + n.Why, Tone: Warn}
}

func gpuUse(n *api.Node) string {
	if len(n.Devices) == 0 {
		for _, c := range n.Counted {
			if !strings.Contains(c.Name, ":") {
				return fmt.Sprintf("%d/%d", c.Used, c.All)
			}
		}
		return ""
	}
	return fmt.Sprintf("%d/%d", Busy(n.Devices), len(n.Devices))
}

// typesOf names the kinds of devices of a node, or of a pool as a whole.
func typesOf(n *api.Node) string {
	var of []api.Counted
	for _, c := range n.Counted {
		if _, kind, typed := strings.Cut(c.Name, ":"); typed {
			of = append(of, api.Counted{Name: kind, All: c.All})
		}
	}
	switch {
	case len(n.Devices) > 0 || len(of) == 0:
		return Types(n.Devices)
	case len(of) == 1:
		return of[0].Name
	}
	var names []string
	for _, c := range of {
		names = append(names, fmt.Sprintf("%d %s", c.All, c.Name))
	}
	return strings.Join(names, " + ")
}

// Busy counts the devices that a job or somebody else holds.
func Busy(devices []api.Device) int {
	busy := 0
	for _, d := range devices {
		if len(d.Jobs) > 0 || d.Foreign > 0 {
			busy++
		}
	}
	return busy
}

// Types names the kinds of devices of a node: "h100", "4 a100 + 4 h100".
func Types(devices []api.Device) string {
	count := map[string]int{}
	for _, d := range devices {
		count[typeOf(d)]++
	}
	names := make([]string, 0, len(count))
	for n := range count {
		names = append(names, n)
	}
	slices.Sort(names)
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	for i, n := range names {
		names[i] = fmt.Sprintf("%d %s", count[n], n)
	}
	return strings.Join(names, " + ")
}

func typeOf(d api.Device) string {
	switch {
	case d.Profile != "":
		return d.Profile
	case d.Type != "":
		return d.Type
	}
	return d.Kind
}

// Node is the card of one node with its devices and who holds them.
func Node(p Page, n *api.Node) string {
	c := card{p: p}
	head := fmt.Sprintf("%s %s, pool %s on %s", n.Name, n.State, n.Pool, n.Engine)
	if n.Virtual {
		head += ", virtual"
	}
	c.head("%s", head)
	why := n.Why
	if isClosedByCheck(n) {
		why = "" // the fence says it
	}
	if n.By != "" {
		why += " (by " + n.By
		if !n.Since.IsZero() {
			why += ", " + p.Ago(n.Since) + " ago"
		}
		why += ")"
	}
	c.fact("why", why)
	for _, f := range n.Fences {
		text := f.String() + ", " + p.Ago(f.At) + " ago"
		if f.Device != nil {
			text = fleet.Subject(f.Device) + ": " + text
		}
		c.fact("fenced", text)
	}
	c.fact("CPUs", fmt.Sprintf("%s of %s used", Number(n.CPUsUsed), Number(n.CPUs)))
	c.fact("memory", fmt.Sprintf("%s of %s used", Bytes(n.MemoryUsed), Bytes(n.Memory)))
	if len(n.Devices) > 0 {
		c.fact("GPUs", fmt.Sprintf("%d of %d used, %s", Busy(n.Devices), len(n.Devices), Types(n.Devices)))
	}
	for _, d := range n.Counted {
		name := strings.TrimPrefix(d.Name, "gpu:")
		if name == d.Name {
			name = "GPUs"
		}
		c.fact(name, fmt.Sprintf("%d of %d used", d.Used, d.All))
	}
	for _, d := range sortDevices(n.Devices) {
		c.fact(" "+strconv.Itoa(d.Index), deviceText(d))
	}
	c.fact("jobs", strings.Join(n.Jobs, ", "))
	c.fact("parts", strings.Join(n.Partitions, ", "))
	c.fact("features", strings.Join(n.Features, ", "))
	c.fact("address", n.Address)
	c.fact("machine", hostlist.Compress(n.Hosts))
	if n.Owner != "" {
		owner := "pool " + n.Owner
		if n.Handover != "" {
			owner += ", " + n.Handover
		}
		c.fact("owner", owner)
	}
	if n.Fence != 0 {
		c.fact("fence", "ours, of hand-over "+strconv.FormatUint(n.Fence, 10))
	}
	c.fact("path", strings.Join(n.Path, " / "))
	switch {
	case isClosedByCheck(n) || n.State == "up" && len(n.Fences) > 0:
		c.fact("next", "it is used again when the check passes; to check it now: cox node check "+n.Name)
	case n.State == "draining" && (n.By != "" || n.Fence == 0 && (n.Owner == "" || n.Owner == n.Pool && n.Handover == "")):
		c.fact("next", "cox node resume "+n.Name)
	}
	return c.b.String()
}

// isClosedByCheck reports whether a failed check alone keeps new work off a node.
func isClosedByCheck(n *api.Node) bool {
	return n.State == "draining" && n.Since.IsZero() && slices.ContainsFunc(n.Fences, func(f fleet.HealthFence) bool { return f.Device == nil })
}

func sortDevices(devices []api.Device) []api.Device {
	out := slices.Clone(devices)
	slices.SortFunc(out, func(a, b api.Device) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

func deviceText(d api.Device) string {
	parts := []string{typeOf(d)}
	if d.Memory > 0 {
		parts = append(parts, Bytes(int64(d.Memory)))
	}
	if d.Declared {
		parts = append(parts, "declared")
	}
	if d.NUMA >= 0 {
		parts = append(parts, fmt.Sprintf("NUMA %d", d.NUMA))
	}
	if d.Fenced != "" {
		parts = append(parts, "fenced")
	}
	switch {
	case len(d.Jobs) > 0:
		parts = append(parts, "held by "+strings.Join(d.Jobs, ", "))
	case d.Fenced != "":
	case d.Foreign == 1: // that it is used, and not how much of it
		parts = append(parts, "used by others")
	case d.Foreign > 0:
		parts = append(parts, Bytes(int64(d.Foreign))+" used by processes that are not ours")
	default:
		parts = append(parts, "free")
	}
	return strings.Join(parts, ", ")
}

// NodeChecks is the table of what checks of nodes saw.
func NodeChecks(p Page, nodes []api.NodeCheck) *Table {
	several := slices.ContainsFunc(nodes, func(n api.NodeCheck) bool { return n.Pool != nodes[0].Pool })
	t := &Table{Columns: []Column{{Title: "NODE"}, {Title: "CHECK"}, {Title: "RESULT"}, {Title: "AGO", Right: true}, {Title: "WHAT WAS SEEN", Least: 20}}}
	for i := range nodes {
		n := &nodes[i]
		name := n.Node
		if several {
			name = n.Pool + "/" + n.Node
		}
		add := func(check, result string, tone Tone, text string) {
			ago := ""
			if !n.At.IsZero() {
				ago = p.Ago(n.At)
			}
			t.Rows = append(t.Rows, []Cell{{Text: name, Tone: Accent}, textCell(check), {Text: result, Tone: tone}, textCell(ago), textCell(text)})
		}
		switch {
		case n.Error != "":
			add("", "unknown", Warn, n.Error)
		case n.At.IsZero():
			add("", "", Dim, "not checked yet")
		case len(n.Results) == 0:
			add("", "", Dim, "it has no checks")
		}
		for _, r := range n.Results {
			text := r.Text
			if r.From != "" {
				text += " (as " + r.From + " says)"
			}
			if isFenced(n.Fences, &r) {
				text += "; fenced"
			}
			check := r.Check
			if r.Device != nil {
				check += " " + strconv.Itoa(*r.Device)
			}
			add(check, string(r.Verdict), verdictTone(r.Verdict), text)
		}
	}
	return t
}

// isFenced reports whether a fence stands for what a result is about.
func isFenced(fences []fleet.HealthFence, r *fleet.CheckResult) bool {
	return slices.ContainsFunc(fences, func(f fleet.HealthFence) bool {
		return f.Check == r.Check && (f.Device == nil && r.Device == nil || f.Device != nil && r.Device != nil && *f.Device == *r.Device)
	})
}

func verdictTone(v fleet.Verdict) Tone {
	switch v {
	case fleet.Passed:
		return Good
	case fleet.Failed:
		return Bad
	}
	return Warn
}

// Drained says what became of nodes after a drain or a resume.
func Drained(p Page, nodes []api.Node) string {
	c := card{p: p}
	for i := range nodes {
		n := &nodes[i]
		switch {
		case isClosedByCheck(n):
			c.fact(n.Name, "not drained, but "+n.Why+" (cox node check "+n.Name+")")
		case n.State == "draining" && len(n.Jobs) > 0:
			c.fact(n.Name, fmt.Sprintf("draining: %s still there: %s", Count(len(n.Jobs), "job"), strings.Join(n.Jobs, ", ")))
		case n.State == "draining":
			c.fact(n.Name, "drained: empty")
		default:
			c.fact(n.Name, n.State)
		}
	}
	return c.b.String()
}
