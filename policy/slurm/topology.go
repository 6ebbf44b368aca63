package slurm

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// whereNodesLie is where what is said of switches and blocks goes.
const whereNodesLie = "the topology: --cluster writes it; a Slurm pool asks the cluster itself"

// joint is a switch or a block.
type joint struct {
	at     setting
	nodes  []string
	below  []string // switches
	length int      // levels below it, itself included; 0: not known yet, -1: being looked at
}

// tree is the switches or blocks of a topology.
type tree struct {
	joints map[string]*joint
	order  []string
}

// readTopology reads topology.conf.
func (im *importer) readTopology(f File) {
	t := &tree{joints: map[string]*joint{}}
	for _, l := range confLines(f.Text) {
		if isTemplated(l.text) {
			im.readTemplate(f, l)
			continue
		}
		all := l.splitSettings(f.Name)
		im.reportEach(all, ofSwitches, "topology.conf", whereNodesLie)
		if all[0].hasKey("blocksizes") || all[0].hasKey("blocklevels") {
			im.checkBlockSizes(all[0])
			continue
		}
		j := &joint{at: all[0]}
		for _, s := range all[1:] {
			switch {
			case s.hasKey("nodes"):
				j.nodes = im.readChildren(s, j.nodes, true)
			case s.hasKey("switches"):
				j.below = im.readChildren(s, j.below, false)
			}
		}
		im.addJoint(t, all[0].value, j)
	}
	im.placeNodes(t)
}

func (im *importer) addJoint(t *tree, name string, j *joint) {
	if name == "" || t.joints[name] != nil {
		im.refuseSetting(j.at, "a switch or block needs a name of its own")
		return
	}
	t.joints[name], t.order = j, append(t.order, name)
}

// readChildren reads a list of nodes or switches.
func (im *importer) readChildren(s setting, had []string, nodes bool) []string {
	if strings.EqualFold(s.value, "all") && nodes {
		return im.cluster.order
	}
	names, ok := im.expandHosts(s)
	if ok && nodes {
		im.checkDeclared(s, names)
	}
	return append(had, names...)
}

// checkBlockSizes checks BlockSizes: each is the one before it, doubled some times.
func (im *importer) checkBlockSizes(s setting) {
	last := 0
	for _, v := range splitCommas(strings.Trim(s.value, "[]")) {
		n, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil || n < 1 || last > 0 && (n <= last || n%last != 0) {
			im.refuseUnreadable(s, "a list of block sizes: numbers, each a multiple of the one before")
			return
		}
		last = n
	}
}

// placeNodes puts nodes below their leaves. Of several topologies the first one counts.
func (im *importer) placeNodes(t *tree) {
	if len(t.order) == 0 {
		return
	}
	c := im.cluster
	first := c.trees == 0
	c.trees++
	for _, name := range t.order {
		j := t.joints[name]
		for _, b := range j.below {
			if t.joints[b] == nil {
				im.refuseSetting(j.at, "no line defines the switch %.80s below it: correct the name", b)
			}
		}
		if t.levelsBelow(name, 0) < 0 {
			im.refuseSetting(j.at, "this switch is below itself: remove it from Switches")
		}
	}
	for _, name := range t.order {
		j := t.joints[name]
		if !first {
			break
		}
		for _, n := range j.nodes {
			if m := c.nodes[n]; m != nil && len(j.below) == 0 && m.path == nil {
				m.path = t.switchPath(name)
			}
		}
	}
}

// switchPath is the switches from the top down to one. Where several are above one, the first is.
func (t *tree) switchPath(name string) []string {
	out := []string{name}
	for len(out) <= len(t.order) {
		i := slices.IndexFunc(t.order, func(o string) bool { return t.joints[o].length > 0 && slices.Contains(t.joints[o].below, out[0]) })
		if i < 0 {
			break
		}
		out = slices.Insert(out, 0, t.order[i])
	}
	return out
}

// levelsBelow counts the levels from a switch down; -1: it is above itself.
func (t *tree) levelsBelow(name string, above int) int {
	j := t.joints[name]
	switch {
	case j == nil:
		return 0
	case j.length != 0:
		return j.length
	case above > len(t.joints):
		return -1
	}
	j.length = -1
	most := 0
	for _, b := range j.below {
		h := t.levelsBelow(b, above+1)
		if h < 0 {
			return -1
		}
		most = max(most, h)
	}
	j.length = most + 1
	return j.length
}

// yamlKeys are the keys of topology.yaml (24.11 and newer), by the one above them.
var yamlKeys = map[string][]string{
	"":         {"topology", "cluster_default", "tree", "block", "flat", "ring", "torus3d"},
	"tree":     {"switches"},
	"switches": {"switch", "children", "nodes"},
	"block":    {"block_sizes", "blocks"},
	"blocks":   {"block", "nodes"},
	"ring":     {"rings"},
	"rings":    {"ring", "nodes"},
	"torus3d":  {"toruses"},
	"toruses":  {"name", "dims", "placements", "nodes", "coords"},
}

// topologyYAML reads topology.yaml.
func (im *importer) topologyYAML(f File) error {
	file, err := parser.ParseBytes([]byte(f.Text), 0)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) && y.GetToken() != nil {
			p := y.GetToken().Position
			return fault.New(fault.Invalid, "%s:%d:%d: %s", f.Name, p.Line, p.Column, y.GetMessage()).Advise("correct the YAML")
		}
		return fault.New(fault.Invalid, "%s: %w", f.Name, err).Advise("correct the YAML")
	}
	for _, d := range file.Docs {
		seq, ok := d.Body.(*ast.SequenceNode)
		if !ok {
			if d.Body != nil {
				im.refuseSetting(setting{file: f.Name, line: 1, key: f.Name, alone: true}, "topology.yaml is a list: begin each entry with - topology: NAME")
			}
			continue
		}
		for _, v := range seq.Values {
			t := &tree{joints: map[string]*joint{}}
			im.walkYAML(f, v, "", nil, t)
			im.placeNodes(t)
		}
	}
	return nil
}

// walkYAML reports every scalar below a node of YAML, and makes joints of switches and blocks. j is
// the one that the keys are about.
func (im *importer) walkYAML(f File, n ast.Node, under string, j *joint, t *tree) {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			im.walkYAML(f, v, under, j, t)
		}
	case *ast.MappingValueNode:
		im.walkPair(f, n, under, j, t)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			if one := (&joint{}); under == "switches" || under == "blocks" {
				im.walkYAML(f, v, under, one, t)
				if one.at.key != "" {
					im.addJoint(t, one.at.value, one)
				}
				continue
			}
			im.walkYAML(f, v, under, j, t)
		}
	}
}

func (im *importer) walkPair(f File, n *ast.MappingValueNode, under string, j *joint, t *tree) {
	key := strings.ToLower(n.Key.String())
	s := setting{file: f.Name, key: key}
	if tok := n.Key.GetToken(); tok != nil {
		s.line = tok.Position.Line
	}
	if !slices.Contains(yamlKeys[under], key) && !slices.Contains(yamlKeys["toruses"], under) {
		s.alone = true
		im.refuseSetting(s, "%s", unknownDirective(key, "topology.yaml", yamlKeys[under]))
		return
	}
	_, deeper := yamlKeys[key]
	if _, scalar := n.Value.(ast.ScalarNode); !scalar && (deeper || key == "placements") && !(under == "blocks" || under == "rings") {
		im.walkYAML(f, n.Value, key, j, t)
		return
	}
	s.value = scalarText(n.Value)
	im.noteElsewhere(s, "%s", whereNodesLie)
	switch {
	case key == "block_sizes":
		im.checkBlockSizes(s)
	case j == nil:
	case key == "switch" || key == "block":
		j.at = s
	case key == "nodes":
		j.nodes = im.readChildren(s, j.nodes, true)
	case key == "children":
		j.below = im.readChildren(s, j.below, false)
	}
}

// scalarText is a scalar, or a list of them, in a line.
func scalarText(n ast.Node) string {
	switch n := n.(type) {
	case nil:
		return ""
	case *ast.StringNode:
		return n.Value
	case *ast.SequenceNode:
		var all []string
		for _, v := range n.Values {
			all = append(all, scalarText(v))
		}
		return strings.Join(all, ",")
	}
	return strings.TrimSpace(n.String())
}
