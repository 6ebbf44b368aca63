package kueue

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// object is one object of Kubernetes, with what was told of its fields.
type object struct {
	im         *importer
	file       string
	root       *yaml.Node
	kind, name string
	path       map[*yaml.Node]string
	told       map[*yaml.Node]bool // leaves
	order      []*yaml.Node        // leaves as they stand
}

func newObject(im *importer, file string, root *yaml.Node) *object {
	o := &object{im: im, file: file, root: root, path: map[*yaml.Node]string{}, told: map[*yaml.Node]bool{}}
	o.walkValues("", root)
	o.kind, o.name = scalarText(o.get("kind")), scalarText(o.get("metadata", "name"))
	return o
}

// walkValues names every value by its path.
func (o *object) walkValues(path string, n *yaml.Node) {
	o.path[n] = path
	for _, f := range n.Fields {
		o.walkValues(strings.TrimPrefix(path+"."+f.Name, "."), f.Value)
	}
	for i, item := range n.Items {
		o.walkValues(fmt.Sprintf("%s[%d]", path, i), item)
	}
	if len(n.Fields)+len(n.Items) == 0 && n != o.root {
		o.order = append(o.order, n)
	}
}

// get goes down by names; nil if there is nothing.
func (o *object) get(names ...string) *yaml.Node { return nodeBelow(o.root, names...) }

func nodeBelow(n *yaml.Node, names ...string) *yaml.Node {
	for _, name := range names {
		if n == nil {
			return nil
		}
		n = n.Get(name)
	}
	return n
}

// scalarText is a scalar's; "" of nothing.
func scalarText(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.Scalar {
		return ""
	}
	return n.Text
}

// listItems are a list's entries.
func listItems(n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// addVerdict says what became of a value and all below it.
func (o *object) addVerdict(n *yaml.Node, v policy.Verdict, how string, args ...any) {
	if n == nil {
		return
	}
	if len(args) > 0 {
		how = fmt.Sprintf(how, args...)
	}
	if len(n.Fields)+len(n.Items) == 0 {
		if n == o.root || o.told[n] {
			return
		}
		o.told[n] = true
		what := o.kind + " " + o.name + ": " + o.path[n]
		if n.Kind == yaml.Scalar {
			what += ": " + n.Text
		}
		o.im.report.Add(policy.Finding{File: o.file, Line: n.Place.Line, What: what, Verdict: v, How: how})
		return
	}
	for _, f := range n.Fields {
		o.addVerdict(f.Value, v, how)
	}
	for _, item := range n.Items {
		o.addVerdict(item, v, how)
	}
}

func (o *object) noteKept(n *yaml.Node) { o.addVerdict(n, policy.Kept, "") }

func (o *object) noteAbout(n *yaml.Node, how string, args ...any) {
	o.addVerdict(n, policy.Approximated, how, args...)
}

func (o *object) refuseValue(n *yaml.Node, why string, args ...any) {
	o.addVerdict(n, policy.Refused, why, args...)
}

// reportUnread tells of what nobody has asked for.
func (o *object) reportUnread() {
	o.noteKept(o.get("apiVersion"))
	o.noteKept(o.get("kind"))
	o.noteKept(o.get("metadata", "name"))
	o.addVerdict(o.get("metadata"), policy.Elsewhere, "it is about the object in Kubernetes")
	o.addVerdict(o.get("status"), policy.Elsewhere, "it says what was so in Kubernetes")
	for _, n := range o.order {
		o.refuseValue(n, "nothing here does that")
	}
}
