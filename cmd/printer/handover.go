package printer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// Moved prints what becomes of machines that are handed over, or of hand-overs that are walked back. Who waits needs
// no hint where to look.
func Moved(list []api.MovedMachine, dry, abort, waits bool) string {
	var b strings.Builder
	moving := 0
	for i := range list {
		v := &list[i]
		name := v.Machine
		if v.Node != "" && v.Node != v.Machine {
			name += " (" + v.Node + ")"
		}
		switch {
		case v.Error != nil:
			fmt.Fprintf(&b, "%s: refused: %s", name, v.Error.Error())
			if v.Error.Remedy != "" {
				fmt.Fprintf(&b, " (%s)", v.Error.Remedy)
			}
			b.WriteString("\n")
			continue
		case abort:
			fmt.Fprintf(&b, "%s: walked back, stays in pool %s\n", name, v.From)
		case dry:
			fmt.Fprintf(&b, "%s: would move from pool %s to pool %s; %s\n", name, v.From, v.To, v.Why)
		default:
			fmt.Fprintf(&b, "%s: moves from pool %s to pool %s; %s\n", name, v.From, v.To, v.Why)
		}
		moving++
	}
	if moving > 0 && !dry && !waits {
		b.WriteString("cox machines shows how far they are\n")
	}
	return b.String()
}

// Machines is the table of machines.
func Machines(list []api.Machine, wide bool) *Table {
	t := &Table{Columns: []Column{{Title: "MACHINE"}, {Title: "OWNER"}, {Title: "HAND-OVER"}, {Title: "NODES", Least: 12}}}
	if wide {
		t.Columns = append(t.Columns, Column{Title: "EPOCH", Right: true}, Column{Title: "BY"}, Column{Title: "DEADLINE"})
	}
	t.Columns = append(t.Columns, Column{Title: "WAITS OR WHY", Least: 12})
	for i := range list {
		m := &list[i]
		var nodes []string
		for j := range m.Nodes {
			nodes = append(nodes, m.Nodes[j].Pool+"/"+m.Nodes[j].Node+marksOf(&m.Nodes[j]))
		}
		cells := []Cell{{Text: m.Name, Tone: Accent}, textCell(m.Pool), textCell(handoverText(m)), textCell(strings.Join(nodes, " "))}
		if wide {
			deadline := ""
			if !m.Deadline.IsZero() {
				deadline = m.Deadline.Local().Format("2006-01-02T15:04:05")
			}
			cells = append(cells, textCell(strconv.FormatUint(m.Epoch, 10)), textCell(m.By), textCell(deadline))
		}
		why := m.Waits
		if len(m.Open) > 1 {
			why = "open in " + strings.Join(m.Open, " and ") + ": cox doctor"
		}
		t.Rows = append(t.Rows, append(cells, Cell{Text: why, Tone: Warn}))
	}
	return t
}

// marksOf are the marks on a node, in parentheses; empty: none.
func marksOf(n *api.MachineNode) string {
	var marks []string
	if n.Fence != 0 {
		marks = append(marks, "fence "+strconv.FormatUint(n.Fence, 10))
	}
	switch {
	case n.Drained != "":
		marks = append(marks, "drained: "+n.Drained)
	case n.Why != "":
		marks = append(marks, n.State+": "+n.Why)
	case n.State != "up" && n.Fence == 0:
		marks = append(marks, n.State)
	}
	if len(marks) == 0 {
		return ""
	}
	return "(" + strings.Join(marks, "; ") + ")"
}

func handoverText(m *api.Machine) string {
	switch {
	case m.To == "":
		return ""
	case m.Back:
		return "back to " + m.Pool + ", " + m.Step
	case m.To == m.Pool:
		return "from " + m.Last + ", " + m.Step
	}
	return "to " + m.To + ", " + m.Step
}

// Danger is machines on which the engine of a pool could start work now that does not own them.
type Danger struct {
	Machines []string `json:"machines"`
	Owner    string   `json:"owner"`
	Pool     string   `json:"pool" doc:"whose engine could start work there too"`
	Engine   string   `json:"engine"`
	Nodes    []string `json:"nodes" doc:"what that pool calls them"`
	Do       string   `json:"do" doc:"what closes them"`
}

// Dangers finds such machines. A hand-over whose old engine is not fenced yet is none: the old pool owns the
// machine still.
func Dangers(list []api.Machine) []Danger {
	out := []Danger{}
	at := map[[2]string]int{}
	for i := range list {
		m := &list[i]
		for j := range m.Nodes {
			n := &m.Nodes[j]
			if m.Epoch == 0 || !slices.Contains(m.Open, n.Pool) || mayBeOpen(m, n.Pool) {
				continue
			}
			k, known := at[[2]string{m.Pool, n.Pool}]
			if !known {
				k = len(out)
				at[[2]string{m.Pool, n.Pool}] = k
				out = append(out, Danger{Owner: m.Pool, Pool: n.Pool, Engine: n.Engine})
			}
			out[k].Machines, out[k].Nodes = append(out[k].Machines, m.Name), append(out[k].Nodes, n.Node)
		}
	}
	for i := range out {
		out[i].Do = closeNodes(&out[i])
	}
	return out
}

// mayBeOpen reports whether the engine of a pool may start work on a machine: its owner's, until a hand-over
// has fenced it.
func mayBeOpen(m *api.Machine, pool string) bool {
	fenced := m.To != "" && m.To != m.Pool && !m.Back && m.Step != string(fleet.StepAsked) && m.Step != string(fleet.StepDrain)
	return pool == m.Pool && !fenced
}

// closeNodes is how an administrator closes nodes in an engine.
func closeNodes(d *Danger) string {
	switch d.Engine {
	case "slurm":
		return fmt.Sprintf("scontrol update nodename=%s state=drain reason=%q", hostlist.Compress(d.Nodes), "pool "+d.Owner+" has the machine")
	case "kube":
		return "kubectl cordon " + strings.Join(d.Nodes, " ")
	}
	return "close " + hostlist.Compress(d.Nodes) + " in the engine of pool " + d.Pool
}

// DangerText says what is wrong, and what closes it.
func DangerText(list []Danger) string {
	var b strings.Builder
	for i := range list {
		d := &list[i]
		fmt.Fprintf(&b, "%s: pool %s owns the machine, and the engine of pool %s could start work there too: no mark stands on %s\n  %s\n",
			hostlist.Compress(d.Machines), d.Owner, d.Pool, hostlist.Compress(d.Nodes), d.Do)
	}
	return b.String()
}
