package sbatch

import (
	"errors"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// switchForms lists the forms of --switches, for messages.
const switchForms = "--switches=COUNT, --switches=COUNT@TIME with TIME as in --time"

// fillTopology reads what is asked of the topology.
func (p *parser) fillTopology(g *job.TaskGroup, set settings) {
	if d, ok := set.get("switches"); ok {
		g.Wishes.Switches = p.parseSwitches(d)
	}
	if d, ok := set.get("segment"); ok {
		p.parseSegment(g, d)
	}
	if d, ok := set.get("spread-job"); ok {
		switch {
		case g.Contiguous || g.Segment > 1 || g.Wishes.Switches.N > 0:
			p.failOption(d, errors.New("does not go together with --contiguous, --segment or --switches"), "leave one of them out")
		default:
			g.Spread = true
		}
		if n := g.Tasks.Want; n > 1 && g.Nodes.Max == 0 { // over as many nodes as possible
			g.Nodes = job.Range{Min: max(g.Nodes.Min, 1), Max: max(n, g.Nodes.Min)}
		}
	}
}

// parseSwitches reads COUNT and COUNT@TIME. Without a time the site says how long.
func (p *parser) parseSwitches(d *Directive) job.Wish {
	text, wait, timed := strings.Cut(d.Value, "@")
	n, ok := nodeCount(text)
	if !ok || n < 1 {
		p.failOption(d, errors.New("is no number of switches (forms: "+switchForms+")"), "")
		return job.Wish{}
	}
	w := job.Wish{N: int(n), For: job.SiteWait}
	if timed {
		limit, err := slurmfmt.ParseDuration(wait)
		p.checkValue(d, err)
		if zero := strings.Trim(wait, "0:-") == ""; err == nil && (limit > 0 || zero) { // unlimited is as long as the site allows
			w.For = limit.Truncate(time.Second)
		}
	}
	return w
}

// parseSegment reads the number of nodes of a segment. A job of fewer nodes is one.
func (p *parser) parseSegment(g *job.TaskGroup, d *Directive) {
	n, ok := nodeCount(d.Value)
	switch {
	case !ok || n < 1:
		p.failOption(d, errors.New("is no number of nodes"), "")
		return
	case n == 1:
		return // every node is one
	case len(g.NodeList) > 0 || g.Contiguous:
		p.failOption(d, errors.New("does not go together with named or contiguous nodes"), "leave one of them out")
		return
	case g.Nodes.Min == 0 || g.Nodes.Min != g.Nodes.Max:
		p.failOption(d, errors.New("needs a fixed number of nodes"), "write --nodes=N with one number")
		return
	case g.Nodes.Min > int(n) && g.Nodes.Min%int(n) != 0:
		p.failOption(d, errors.New("does not divide the number of nodes, "+pluralOf(g.Nodes.Min, "node")), "make --nodes a multiple of it")
		return
	}
	g.Segment = int(n)
}
