package yaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/coxswain-sched/coxswain/spec"
)

// Limits say how much of YAML a text may use.
type Limits struct {
	Size    int  // bytes
	Depth   int  // levels of mappings and lists
	Aliases bool // anchors, aliases, merge keys and the tags of YAML itself are read
}

// maxExpanded is how many values aliases may stand for in one document: a few lines of aliases
// of aliases can stand for more than a computer has room for.
const maxExpanded = 200_000

// ParseAll reads a text of at most so many bytes that may hold several documents,
// separated by ---, as Kubernetes has them. Empty ones are left out.
func ParseAll(src spec.Source, most int) ([]*Document, error) {
	return ParseStream(src, Limits{Size: most, Depth: MaxDepth})
}

// ParseStream reads a text that may hold several documents, separated by ---. Empty ones are
// left out. An alias stands for the very node that has its anchor: the tree is not copied, and
// nobody may change it. The error is a *spec.Error.
func ParseStream(src spec.Source, limits Limits) ([]*Document, error) {
	text, err := openDocument(src, limits)
	if err != nil {
		return nil, err
	}
	var out []*Document
	in := yaml.NewDecoder(bytes.NewReader([]byte(text.src)))
	for {
		var y yaml.Node
		if err := in.Decode(&y); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, text.parseError(err)
		}
		if len(y.Content) == 0 {
			continue
		}
		d := *text
		d.anchors = map[*yaml.Node]*Node{}
		root, e := d.convertNode(y.Content[0], 1)
		if e != nil {
			return nil, e
		}
		if d.anchors = nil; root.Kind != Null {
			d.Root = root
			out = append(out, &d)
		}
	}
}

// isNull reports whether a plain text means that there is no value.
func isNull(text string) bool {
	return text == "" || text == "~" || text == "null" || text == "Null" || text == "NULL"
}

// plainTags are the tags that say what a plain value is anyway.
var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq"}

func (d *Document) readsTag(y *yaml.Node) bool {
	return d.limits.Aliases && slices.Contains(plainTags, y.ShortTag())
}

// followAlias returns the node that an alias stands for.
func (d *Document) followAlias(y *yaml.Node, p Place, depth int) (*Node, *spec.Error) {
	n, known := d.anchors[y.Alias]
	switch {
	case !known:
		return nil, d.Error(p, "an alias (*) of a name that no anchor (&) has", "write the anchor before the alias; a text that begins with * stands in quotes")
	case n == nil:
		return nil, d.Error(p, "an alias (*) of the value that it is a part of", "write the value out")
	}
	m := measureNode(n, map[*Node]measure{})
	if d.expanded = addSizes(d.expanded, m.size); d.expanded > maxExpanded {
		return nil, d.Error(p, fmt.Sprintf("aliases (*) stand for more than %d values", maxExpanded), "write the values out, or make several files")
	}
	if depth+m.height > d.limits.Depth+1 {
		return nil, d.Error(p, fmt.Sprintf("more than %d levels", d.limits.Depth), "no job is that deep")
	}
	return n, nil
}

// measure is the size of a tree in nodes and its height in levels.
type measure struct{ size, height int }

// measureNode measures a tree in which nodes stand at several places. Each is visited once.
func measureNode(n *Node, known map[*Node]measure) measure {
	if m, ok := known[n]; ok {
		return m
	}
	m := measure{size: 1}
	add := func(child *Node) {
		c := measureNode(child, known)
		m.size, m.height = addSizes(m.size, c.size), max(m.height, c.height)
	}
	for _, i := range n.Items {
		add(i)
	}
	for _, f := range n.Fields {
		add(f.Value)
	}
	m.height++
	known[n] = m
	return m
}

func addSizes(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// mergedFields is the value of one merge key.
type mergedFields struct {
	at    Place
	value *Node
}

// mergeFields adds the fields of merge keys (<<). A field of the mapping itself wins, and of two
// that are merged the first.
func (d *Document) mergeFields(n *Node, merged []mergedFields) *spec.Error {
	for _, m := range merged {
		from := []*Node{m.value}
		if m.value.Kind == List {
			from = m.value.Items
		}
		for _, other := range from {
			if other.Kind != Mapping {
				return d.Error(m.at, "a merge key (<<) of "+other.Kind.String(), "merge an alias of a group of fields: <<: *NAME")
			}
			if len(n.Fields)+len(other.Fields) > maxExpanded {
				return d.Error(m.at, fmt.Sprintf("aliases (*) stand for more than %d values", maxExpanded), "write the values out")
			}
			have := make(map[string]bool, len(n.Fields))
			for _, f := range n.Fields {
				have[f.Name] = true
			}
			for _, f := range other.Fields {
				if !have[f.Name] {
					n.Fields = append(n.Fields, f)
				}
			}
		}
	}
	return nil
}

// sizeText is a size as a message shows it.
func sizeText(bytes int) string {
	if bytes > 1<<20 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/(1<<20)), ".0") + " MiB"
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}
