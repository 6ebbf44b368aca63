package pools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// Check is the result of a check of a pool.
type Check struct {
	Info     engine.Info // empty: the engine did not answer
	Nodes    []fleet.Node
	Findings []engine.Finding
}

// Missing lists the findings without which the pool cannot run the jobs that it should.
func (p *Check) Missing() (out []engine.Finding) {
	for _, f := range p.Findings {
		if f.State == engine.Missing {
			out = append(out, f)
		}
	}
	return out
}

// checkWait bounds a look at a pool.
const checkWait = 2 * time.Minute

// CheckEngine asks the engine of a pool for all that can be known before it is given work.
// find looks for machines of the pool that other pools own.
func CheckEngine(ctx context.Context, name string, e engine.Engine, find func(pool string, nodes []fleet.Node) []engine.Finding) *Check {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	out := &Check{}
	add := func(what string, state engine.FindingState, format string, args ...any) {
		out.Findings = append(out.Findings, engine.Finding{What: what, State: state, Text: fmt.Sprintf(format, args...)})
	}
	info, err := e.Info(ctx)
	if err != nil {
		out.Findings = append(out.Findings, engine.Finding{What: "engine", State: engine.Missing, Text: err.Error(), Mend: fault.Remedy(err)})
		return out
	}
	out.Info = info
	add("engine", engine.Found, "%s, gangs %s", strings.TrimSpace(info.Name+" "+info.Version), info.Abilities.Gang)
	switch nodes, err := e.Nodes(ctx); {
	case err != nil:
		out.Findings = append(out.Findings, engine.Finding{What: "nodes", State: engine.Missing, Text: err.Error(), Mend: fault.Remedy(err)})
	case len(nodes) == 0:
		add("nodes", engine.Warning, "it has none: jobs for it are refused until it does")
	default:
		out.Nodes = nodes
		devices := 0
		for i := range nodes {
			devices += len(nodes[i].Devices)
		}
		add("nodes", engine.Found, "%d with %d devices: %s", len(nodes), devices, hostlist.Compress(nodeNames(nodes)))
	}
	out.Findings = append(out.Findings, find(name, out.Nodes)...)
	looked := false
	if k, ok := e.(engine.Checker); ok {
		more, err := k.Check(ctx)
		looked = len(more) > 0
		out.Findings = append(out.Findings, more...)
		if err != nil {
			out.Findings = append(out.Findings, engine.Finding{What: "check", State: engine.Missing, Text: err.Error(), Mend: fault.Remedy(err)})
		}
	}
	if looked {
		return out // its findings say what the notes say, and what would mend it
	}
	for _, n := range info.Notes {
		add("note", engine.Warning, "%s", n)
	}
	return out
}

func nodeNames(nodes []fleet.Node) []string {
	out := make([]string, len(nodes))
	for i := range nodes {
		out[i] = nodes[i].Name
	}
	return out
}

// NoSuchPool is the error for a pool that is not there.
func (ps *Set) NoSuchPool(name string) error {
	return fault.New(fault.NotFound, "there is no pool %.70s", name).Advise("pools here: %s", strings.Join(ps.ConfiguredNames(), ", "))
}
