package printer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
	Closing  bool     `json:"closing,omitempty" doc:"Coxswain is told to keep them closed, and the engine does not do it"`
	Do       string   `json:"do" doc:"what closes them"`
}

// Dangers finds such machines. A hand-over whose old engine is not fenced yet is none: the old pool owns the
// machine still.
func Dangers(list []api.Machine) []Danger {
	out := []Danger{}
	type kind struct {
		owner, pool string
		closing     bool
	}
	at := map[kind]int{}
	for i := range list {
		m := &list[i]
		for j := range m.Nodes {
			n := &m.Nodes[j]
			if m.Epoch == 0 || !slices.Contains(m.Open, n.Pool) || mayBeOpen(m, n.Pool) {
				continue
			}
			is := kind{m.Pool, n.Pool, m.Closed}
			k, known := at[is]
			if !known {
				k = len(out)
				at[is] = k
				out = append(out, Danger{Owner: m.Pool, Pool: n.Pool, Engine: n.Engine, Closing: m.Closed})
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

// closeNodes is how an administrator closes nodes: by our fence, or, where the engine does not set that, there.
func closeNodes(d *Danger) string {
	if !d.Closing {
		return fmt.Sprintf("cox node fence %s --reason %q", quoteHosts(d.Machines), "pool "+d.Owner+" has it")
	}
	switch d.Engine {
	case "slurm":
		return fmt.Sprintf("cox pool check %s says which right is missing; until then: scontrol update nodename=%s state=drain reason=%q", d.Pool, hostlist.Compress(d.Nodes), "pool "+d.Owner+" has the machine")
	case "kube":
		return fmt.Sprintf("cox pool check %s says which right is missing; until then: kubectl cordon %s", d.Pool, strings.Join(d.Nodes, " "))
	}
	return fmt.Sprintf("cox pool check %s says what its engine lacks", d.Pool)
}

// quoteHosts is a host list as a shell takes it.
func quoteHosts(names []string) string {
	list := hostlist.Compress(names)
	if strings.ContainsAny(list, "[]") {
		return "'" + list + "'"
	}
	return list
}

// Stuck is a machine that a hand-over has given to a pool that cannot use it.
type Stuck struct {
	Machine string `json:"machine"`
	Pool    string `json:"pool" doc:"that owns it by now"`
	Why     string `json:"why"`
	Do      string `json:"do" doc:"what mends it"`
}

// stuckMachines finds machines that have been admitted to a pool that does not report them any more, or in which they
// were not ready by the deadline of the hand-over. Nothing walks them back.
func stuckMachines(list []api.Machine, now time.Time) []Stuck {
	out := []Stuck{}
	for i := range list {
		m := &list[i]
		reports := func(pool string) bool {
			return slices.ContainsFunc(m.Nodes, func(n api.MachineNode) bool { return n.Pool == pool })
		}
		admitted, back := m.To != "" && m.To == m.Pool, fmt.Sprintf("cox node move %s --to %s", m.Name, m.Last)
		switch {
		case m.Last == "" || !reports(m.Last) && !admitted:
		case !reports(m.Pool):
			out = append(out, Stuck{
				Machine: m.Name, Pool: m.Pool, Why: fmt.Sprintf("it belongs to pool %s, which reports no node there", m.Pool),
				Do: fmt.Sprintf("start the agent of pool %s there (cox pool list shows whether its engine answers), or give the machine back, if you have seen that nothing of that pool runs there: %s --force", m.Pool, back),
			})
		case admitted && !m.Deadline.IsZero() && now.After(m.Deadline):
			out = append(out, Stuck{
				Machine: m.Name, Pool: m.Pool, Do: "mend that, or move the machine back: " + back,
				Why: fmt.Sprintf("it has come to pool %s, and was not ready by the deadline %s: it waits for %s", m.Pool, m.Deadline.UTC().Format(time.RFC3339), m.Waits),
			})
		}
	}
	return out
}

// Diagnosis is what is wrong with machines and their hand-overs.
type Diagnosis struct {
	Dangers  []Danger             `json:"dangers"`
	Stuck    []Stuck              `json:"stuck"`
	Warnings []api.MachineWarning `json:"warnings"`
}

// Diagnose finds what is wrong.
func Diagnose(all *api.Machines, now time.Time) Diagnosis {
	return Diagnosis{Dangers: Dangers(all.Machines), Stuck: stuckMachines(all.Machines, now), Warnings: append([]api.MachineWarning{}, all.Warnings...)}
}

// IsWell reports whether nothing is.
func (d *Diagnosis) IsWell() bool { return len(d.Dangers)+len(d.Stuck)+len(d.Warnings) == 0 }

// Text says what is wrong, and below each thing what mends it.
func (d *Diagnosis) Text() string {
	var b strings.Builder
	b.WriteString(DangerText(d.Dangers))
	for _, s := range d.Stuck {
		fmt.Fprintf(&b, "%s: %s\n  %s\n", s.Machine, s.Why, s.Do)
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "%s\n", w.Text)
		if w.Do != "" {
			fmt.Fprintf(&b, "  %s\n", w.Do)
		}
	}
	return b.String()
}

// Fenced says what becomes of machines whose other nodes are closed, or opened.
func Fenced(list []api.FencedMachine, removed bool) string {
	var b strings.Builder
	asked := false
	for i := range list {
		v := &list[i]
		nodes := strings.Join(v.Nodes, ", ")
		switch {
		case v.Error != nil:
			fmt.Fprintf(&b, "%s: refused: %s", v.Machine, v.Error.Error())
			if v.Error.Remedy != "" {
				fmt.Fprintf(&b, " (%s)", v.Error.Remedy)
			}
			b.WriteString("\n")
			continue
		case v.Already && removed:
			fmt.Fprintf(&b, "%s: %s was open before, or is being opened\n", v.Machine, nodes)
			continue
		case v.Already:
			fmt.Fprintf(&b, "%s: %s was closed before, or is being closed\n", v.Machine, nodes)
		case removed:
			fmt.Fprintf(&b, "%s: %s is being opened; two engines can start work there then\n", v.Machine, nodes)
		default:
			fmt.Fprintf(&b, "%s: %s is being closed; pool %s has the machine\n", v.Machine, nodes, v.Owner)
		}
		asked = true
	}
	if asked {
		b.WriteString("cox machines shows the marks, as soon as the engines have answered\n")
	}
	return b.String()
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
