package yaml

import (
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

// maxExpandedText is how many bytes of text aliases may stand for in one document.
const maxExpandedText = 4 << 20

// ParseAll reads a text of at most so many bytes that may hold several documents,
// separated by ---, as Kubernetes has them. Empty ones are left out.
func ParseAll(src spec.Source, most int) ([]*Document, error) {
	return ParseStream(src, Limits{Size: most, Depth: MaxDepth})
}

// ParseStream reads a text that may hold several documents, separated by ---. Empty ones are
// left out. An alias stands for the very node that has its anchor: the tree is not copied, and
// nobody may change it. The error is a *spec.Error.
func ParseStream(src spec.Source, limits Limits) ([]*Document, error) {
	return parseStream(src, limits, true)
}

// parseStream reads a text; plain says whether documents that are plain are read without the library.
func parseStream(src spec.Source, limits Limits, plain bool) ([]*Document, error) {
	text, err := openDocument(src, limits)
	if err != nil {
		return nil, err
	}
	var out []*Document
	add := func(d *Document, root *Node) {
		if d.anchors = nil; root.Kind != Null {
			d.Root = root
			out = append(out, d)
		}
	}
	parts := []part{{0, len(text.src), 0}}
	if plain {
		parts, plain = text.splitParts()
	}
	for _, p := range parts {
		if root, ok := text.readPart(p, plain); ok {
			d := *text
			add(&d, root)
			continue
		}
		in := yaml.NewDecoder(strings.NewReader(text.src[p.start:p.end]))
		for {
			var y yaml.Node
			if err := in.Decode(&y); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				text.base = p.line
				return nil, text.parseError(err)
			}
			if len(y.Content) == 0 {
				continue
			}
			d := *text
			d.base, d.anchors = p.line, map[*yaml.Node]*Node{}
			root, e := d.convertNode(y.Content[0], 1)
			if e != nil {
				return nil, e
			}
			add(&d, root)
		}
	}
	return out, nil
}

// part is a part of a text, and how many lines are before it.
type part struct{ start, end, line int }

// splitParts cuts a text at the lines that separate documents. false: something else is on such a line, and
// the one part is the whole.
func (d *Document) splitParts() ([]part, bool) {
	var out []part
	begin := part{}
	for i, at := range d.at {
		line := d.Line(i + 1)
		switch {
		case strings.HasPrefix(line, "%"), strings.HasPrefix(line, "..."):
			return []part{{0, len(d.src), 0}}, false
		case !strings.HasPrefix(line, "---"):
			continue
		case strings.TrimRight(line, " ") != "---":
			return []part{{0, len(d.src), 0}}, false
		}
		begin.end = at
		out = append(out, begin)
		begin = part{start: min(at+len(line)+1, len(d.src)), line: i + 1}
	}
	begin.end = len(d.src)
	return append(out, begin), true
}

// readPart reads a part that is JSON or plain.
func (d *Document) readPart(p part, split bool) (*Node, bool) {
	if !split {
		return nil, false
	}
	if rest := strings.TrimLeft(d.src[p.start:p.end], " \t\n"); rest != "" && rest[0] == '{' {
		return readJSON(d.src, p.start, p.end, p.line+1, d.limits.Depth)
	}
	return readPlain(d.src, p.start, p.end, p.line+1, d.limits.Depth)
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
	if d.text = addSizes(d.text, m.text); d.text > maxExpandedText {
		return nil, d.Error(p, "aliases (*) stand for more than "+sizeText(maxExpandedText)+" of text", "keep a large text in one place, such as a ConfigMap, or make several files")
	}
	if depth+m.height > d.limits.Depth+1 {
		return nil, d.Error(p, fmt.Sprintf("more than %d levels", d.limits.Depth), "no job is that deep")
	}
	return n, nil
}

// measure is the size of a tree in nodes, its height in levels, and the bytes of its texts and names.
type measure struct{ size, height, text int }

// measureNode measures a tree in which nodes stand at several places. Each is visited once.
func measureNode(n *Node, known map[*Node]measure) measure {
	if m, ok := known[n]; ok {
		return m
	}
	m := measure{size: 1, text: len(n.Text)}
	add := func(child *Node) {
		c := measureNode(child, known)
		m.size, m.height, m.text = addSizes(m.size, c.size), max(m.height, c.height), addSizes(m.text, c.text)
	}
	for _, i := range n.Items {
		add(i)
	}
	for _, f := range n.Fields {
		m.text = addSizes(m.text, len(f.Name))
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
	if len(merged) == 0 {
		return nil
	}
	have := make(map[string]bool, len(n.Fields))
	for _, f := range n.Fields {
		have[f.Name] = true
	}
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
			for _, f := range other.Fields {
				if !have[f.Name] {
					have[f.Name] = true
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
