package sinfo

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// group is one line: nodes of one partition that are alike.
type group struct {
	part  *fleet.Partition
	nodes []*fleet.Node
}

// groupNodes collects nodes into lines. With byNode every node is a line, once for each
// of its partitions unless the format shows none.
func (s *show) groupNodes(parts []fleet.Partition, nodes []fleet.Node) []*group {
	var out []*group
	byName := make(map[string]*fleet.Node, len(nodes))
	for i := range nodes {
		byName[nodes[i].Name] = &nodes[i]
	}
	for i := range parts {
		p := &parts[i]
		if !emptyOrContains(s.partitions, p.Name) {
			continue
		}
		part := len(out)
		keys := map[string]*group{}
		for _, name := range p.Nodes {
			n := byName[name]
			if n == nil || !s.wantsNode(n) {
				continue
			}
			key := s.groupKey(p, n)
			g := keys[key]
			if g == nil {
				g = &group{part: p}
				keys[key] = g
				out = append(out, g)
			}
			g.nodes = append(g.nodes, n)
		}
		if len(out) == part && !s.byNode && !s.reasons {
			out = append(out, &group{part: p})
		}
	}
	if !s.hasField('P', 'R', 'a', 'l', 'L') {
		out = s.mergePartitions(out)
	}
	return out
}

// mergePartitions joins lines of several partitions where the format shows no partition.
func (s *show) mergePartitions(list []*group) []*group {
	var out []*group
	keys := map[string]*group{}
	for _, g := range list {
		if len(g.nodes) == 0 {
			continue
		}
		key := s.groupKey(&fleet.Partition{}, g.nodes[0])
		if have := keys[key]; have != nil {
			for _, n := range g.nodes {
				if !slices.Contains(have.nodes, n) {
					have.nodes = append(have.nodes, n)
				}
			}
			continue
		}
		keys[key] = g
		out = append(out, g)
	}
	if len(out) == 0 && len(list) > 0 {
		return list[:1]
	}
	return out
}

// groupKey is the values that nodes of one line share.
func (s *show) groupKey(p *fleet.Partition, n *fleet.Node) string {
	if s.byNode {
		return n.Name
	}
	one := &group{part: p, nodes: []*fleet.Node{n}}
	var b strings.Builder
	for i := range fields {
		f := &fields[i]
		if !f.alike || !s.used[i] {
			continue
		}
		b.Write(f.text(nil, s, one))
		b.WriteByte(0)
	}
	return b.String()
}

// wantsNode reports whether -t, -n, -d, -r and -R let a node through.
func (s *show) wantsNode(n *fleet.Node) bool {
	short, long, _ := n.Words()
	switch {
	case s.dead && !strings.HasSuffix(short, "*"), s.responding && strings.HasSuffix(short, "*"):
		return false
	case s.nodes != nil && !slices.Contains(s.nodes, n.Name):
		return false
	case s.reasons && (n.Why == "" || n.State == "up"):
		return false
	case len(s.states) == 0:
		return true
	}
	for _, st := range s.states {
		if stateMatches(st, strings.TrimSuffix(long, "*"), n) {
			return true
		}
	}
	return false
}

// stateMatches compares a state of -t with a node's long word. drain means both of
// drained and draining; alloc and idle count the base state of a node that drains.
func stateMatches(want, long string, n *fleet.Node) bool {
	switch want {
	case "drain":
		return long == "drained" || long == "draining"
	case "no_respond":
		return n.State == "unknown"
	}
	return want == long
}

// stateWords are the words of -t with the long word that each means.
var stateWords = []struct{ word, long string }{
	{"allocated", "allocated"},
	{"completing", "completing"},
	{"down", "down"},
	{"drained", "drained"},
	{"draining", "draining"},
	{"drng", "draining"},
	{"fail", "fail"},
	{"future", "future"},
	{"idle", "idle"},
	{"maint", "maint"},
	{"mixed", "mixed"},
	{"no_respond", "no_respond"},
	{"npc", "perfctrs"},
	{"perfctrs", "perfctrs"},
	{"planned", "planned"},
	{"power_down", "power_down"},
	{"powered_down", "powered_down"},
	{"powering_down", "powering_down"},
	{"powering_up", "powering_up"},
	{"reserved", "reserved"},
	{"unknown", "unknown"},
	{"cloud", "cloud"},
	{"reboot", "reboot"},
}

// stateNames are what an error about -t lists.
const stateNames = "unknown,down,idle,allocated,mixed,future,drain,drained,draining,no_respond,reserved,perfctrs,cloud,completing," +
	"powering_down,powered_down,power_down,powering_up,fail,maint,reboot"

// readState reads a state of -t, which may be shortened to three letters.
func readState(word string) (string, bool) {
	word = strings.ToLower(word)
	if word == "drain" {
		return word, true
	}
	if len(word) >= 3 {
		for _, s := range stateWords {
			if strings.HasPrefix(s.word, word) {
				return s.long, true
			}
		}
	}
	return "", false
}

// sortGroups sorts lines: by the partitions' order, then the most notable state first;
// nodes by name where each has its line.
func (s *show) sortGroups(list []*group) {
	rank := func(g *group) int {
		if len(g.nodes) == 0 {
			return -1
		}
		_, _, r := g.nodes[0].Words()
		return r
	}
	switch {
	case s.sort != "":
		s.orderBy(list)
	case s.byNode:
		slices.SortStableFunc(list, func(a, b *group) int { return hostlist.Compare(a.nodes[0].Name, b.nodes[0].Name) })
	default:
		place := map[*fleet.Partition]int{}
		for _, g := range list {
			if _, ok := place[g.part]; !ok {
				place[g.part] = len(place)
			}
		}
		slices.SortStableFunc(list, func(a, b *group) int {
			return cmp.Or(cmp.Compare(place[a.part], place[b.part]), cmp.Compare(rank(b), rank(a)))
		})
	}
}

// orderBy sorts by the letters of --sort, most significant first.
func (s *show) orderBy(list []*group) {
	keys := strings.Split(s.sort, ",")
	for _, key := range slices.Backward(keys) {
		down := strings.HasPrefix(key, "-")
		key = strings.TrimLeft(key, "+-#")
		if key == "" {
			continue
		}
		i, ok := findLetter(key[0])
		if !ok {
			continue
		}
		slices.SortStableFunc(list, func(a, b *group) int {
			x, y := string(fields[i].text(nil, s, a)), string(fields[i].text(nil, s, b))
			n := hostlist.Compare(x, y)
			if down {
				return -n
			}
			return n
		})
	}
}

func emptyOrContains(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
