package command

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// place is a switch of a tree, or a block.
type place struct {
	name  string
	size  int // of what lies higher is larger
	nodes []string
}

// readTopology says where nodes lie: the names of switches, or blocks, from the top down. A
// cluster without one has none.
func (s *Site) readTopology(ctx context.Context) (map[string][]string, error) {
	out, err := s.runQuery(ctx, "scontrol", "show", "topology")
	if err != nil {
		if fault.KindOf(err) == fault.Unavailable {
			return nil, err
		}
		return nil, nil // the plugin has nothing to show
	}
	return parseTopology(string(out))
}

// parseTopology reads what scontrol says of switches and blocks, one a line.
func parseTopology(text string) (map[string][]string, error) {
	var all []place
	for line := range strings.Lines(text) {
		var p place
		level := -1
		for field := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(field, "=")
			var err error
			switch key {
			case "SwitchName", "BlockName", "AggregatedBlock":
				p.name = value
			case "Level":
				level, err = strconv.Atoi(value)
			case "Nodes":
				p.nodes, err = expandHosts(value)
			}
			if err != nil {
				return nil, fault.New(fault.Unavailable, "scontrol show topology: %q: %w", line, err)
			}
		}
		if p.size = level; level < 0 {
			p.size = len(p.nodes)
		}
		if p.name != "" {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name)) })
	out := map[string][]string{}
	last := map[string]int{} // size of the deepest place so far
	for _, p := range all {
		for _, n := range p.nodes {
			if size, known := last[n]; known && size == p.size {
				continue // a node with two leaves: the first by name
			}
			last[n], out[n] = p.size, append(out[n], p.name)
		}
	}
	return out, nil
}
