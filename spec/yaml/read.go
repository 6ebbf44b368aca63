package yaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/coxswain-sched/coxswain/spec"
)

// Parse reads a document. The error is a *spec.Error.
func Parse(src spec.Source) (*Document, error) {
	d, err := openDocument(src, Limits{Size: MaxSize, Depth: MaxDepth})
	if err != nil {
		return nil, err
	}
	if d.Root, err = d.readTree(); err != nil {
		return nil, err
	}
	return d, nil
}

// openDocument takes a text in and knows where its lines begin.
func openDocument(src spec.Source, limits Limits) (*Document, error) {
	d := &Document{name: src.Name, limits: limits}
	if len(src.Data) > limits.Size {
		return nil, &spec.Error{
			File: src.Name, Message: "is larger than " + sizeText(limits.Size),
			Remedy: "keep what is large in a file of its own and name it",
		}
	}
	d.src = normalizeText(string(src.Data))
	d.at = []int{0}
	for i := range len(d.src) - 1 {
		if d.src[i] == '\n' {
			d.at = append(d.at, i+1)
		}
	}
	d.ascii = strings.IndexFunc(d.src, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	return d, nil
}

// normalizeText drops a byte order mark, makes every line end one newline, and ends the
// last line.
func normalizeText(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if s == "" || s[len(s)-1] != '\n' {
		s += "\n"
	}
	return s
}

// readTree lets the library make its tree, in which nothing is expanded, and takes
// that over.
func (d *Document) readTree() (*Node, error) {
	in := yaml.NewDecoder(bytes.NewReader([]byte(d.src)))
	var first, second yaml.Node
	if err := in.Decode(&first); errors.Is(err, io.EOF) {
		return &Node{Place: Place{1, 1, 0}}, nil
	} else if err != nil {
		return nil, d.parseError(err)
	}
	switch err := in.Decode(&second); {
	case err == nil:
		line := second.Line
		if len(second.Content) > 0 {
			line = second.Content[0].Line
		}
		return nil, d.Error(Place{line, 1, 1}, "a second document stands here", "give each job a file of its own")
	case !errors.Is(err, io.EOF):
		return nil, d.parseError(err)
	}
	if len(first.Content) == 0 {
		return &Node{Place: Place{1, 1, 0}}, nil
	}
	n, e := d.convertNode(first.Content[0], 1)
	if e != nil {
		return nil, e
	}
	return n, nil
}

// parseError is what the library says of a text that is no YAML.
func (d *Document) parseError(err error) *spec.Error {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		return &spec.Error{File: d.name, Message: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	p := Place{Line: min(max(at.Mark.Line+d.base, 1), len(d.at)), Col: 1, Len: 1}
	p.Col = d.byteColumn(p.Line, at.Mark.Column)
	message := at.Message
	if strings.Contains(message, "unknown anchor") {
		if d.limits.Aliases {
			return d.Error(p, "an alias (*) of a name that no anchor (&) has", "write the anchor before the alias; a text that begins with * stands in quotes")
		}
		return d.Error(p, aliases, noAlias)
	}
	if at.ContextMsg != "" {
		message = at.ContextMsg + ": " + message
	}
	message, remedy := explainSyntax(message, d.Line(p.Line), p.Col, d.limits.Depth)
	return d.Error(p, message, remedy)
}

const (
	aliases = "aliases (*) are not read"
	noAlias = "write the value again; a text that begins with * stands in quotes"
)

// byteColumn turns the library's column, in characters from 1, into bytes. Where both
// are the same, and in lines that nobody reads, it costs nothing.
func (d *Document) byteColumn(line, col int) int {
	text := d.Line(line)
	if d.ascii || len(text) > 4096 {
		return min(max(col, 1), len(text)+1)
	}
	at := 0
	for n := 1; n < col && at < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at + 1
}

// convertNode makes our node of the library's, or refuses it by name.
func (d *Document) convertNode(y *yaml.Node, depth int) (*Node, *spec.Error) {
	n := &Node{Place: d.nodePlace(y)}
	if err := d.refuseNode(y, n.Place, depth); err != nil {
		return nil, err
	}
	if y.Anchor != "" {
		d.anchors[y] = nil // it is not complete yet
		defer func() { d.anchors[y] = n }()
	}
	switch y.Kind {
	case yaml.AliasNode:
		return d.followAlias(y, n.Place, depth)
	case yaml.ScalarNode:
		n.Kind, n.Text = Scalar, y.Value
		n.Quoted = y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
		switch {
		case y.Style&yaml.TaggedStyle != 0:
			n.Quoted = n.Quoted || y.ShortTag() == "!!str"
		case !n.Quoted && isNull(y.Value):
			n.Kind, n.Text = Null, ""
		}
	case yaml.SequenceNode:
		n.Kind = List
		for _, c := range y.Content {
			item, err := d.convertNode(c, depth+1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, item)
		}
	default:
		n.Kind = Mapping
		return n, d.convertFields(n, y, depth)
	}
	return n, nil
}

// refuseNode names what is not read.
func (d *Document) refuseNode(y *yaml.Node, p Place, depth int) *spec.Error {
	switch {
	case y.Anchor != "" && !d.limits.Aliases:
		return d.Error(p, "anchors (&) are not read", "write the value where it is needed")
	case y.Kind == yaml.AliasNode && !d.limits.Aliases:
		return d.Error(p, aliases, noAlias)
	case y.Style&yaml.TaggedStyle != 0 && !d.readsTag(y):
		return d.Error(p, "tags (!) are not read", "a text that begins with ! stands in quotes")
	case depth > d.limits.Depth:
		return d.Error(p, fmt.Sprintf("more than %d levels", d.limits.Depth), "no job is that deep")
	}
	return nil
}

func (d *Document) convertFields(n *Node, y *yaml.Node, depth int) *spec.Error {
	n.Fields = make([]Field, 0, len(y.Content)/2)
	var merged []mergedFields
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		p := d.nodePlace(key)
		if err := d.refuseNode(key, p, 0); err != nil {
			return err
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			return d.Error(p, "complex keys are not read", "a field is written name: value")
		case key.Value == "<<" && !d.limits.Aliases:
			return d.Error(p, "merge keys (<<) are not read", "write the fields where they are needed")
		}
		value, err := d.convertNode(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		if key.Value == "<<" && key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
			merged = append(merged, mergedFields{p, value})
			continue
		}
		n.Fields = append(n.Fields, Field{Name: key.Value, Place: p, Value: value})
	}
	if name, first, second := doubledField(n.Fields); name != "" {
		return d.Error(second, fmt.Sprintf("%s is given twice, first in line %d", name, first.Line), "keep one of them")
	}
	return d.mergeFields(n, merged)
}

// doubledField finds the first field that is given twice.
func doubledField(fields []Field) (name string, first, second Place) {
	const few = 16
	if len(fields) <= few {
		for i := range fields {
			for k := range i {
				if fields[i].Name == fields[k].Name {
					return fields[i].Name, fields[k].Place, fields[i].Place
				}
			}
		}
		return "", first, second
	}
	seen := make(map[string]Place, len(fields))
	for _, f := range fields {
		if before, ok := seen[f.Name]; ok {
			return f.Name, before, f.Place
		}
		seen[f.Name] = f.Place
	}
	return "", first, second
}

// nodePlace is where a node stands; of one that goes over lines, its first.
func (d *Document) nodePlace(y *yaml.Node) Place {
	p := Place{Line: min(max(y.Line+d.base, 1), len(d.at)), Len: 1}
	p.Col = d.byteColumn(p.Line, y.Column)
	if y.Kind != yaml.ScalarNode {
		return p
	}
	rest := d.Line(p.Line)[p.Col-1:]
	switch {
	case y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		p.Len = quotedLength(rest)
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && strings.HasPrefix(rest, y.Value):
		p.Len = len(y.Value)
	}
	return p
}

// quotedLength is the length of the quoted text that a line begins with, or of the line.
func quotedLength(s string) int {
	if s == "" {
		return 1
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[0] == '"' && s[i] == '\\':
			i++
		case s[i] == s[0] && s[0] == '\'' && i+1 < len(s) && s[i+1] == '\'':
			i++
		case s[i] == s[0]:
			return i + 1
		}
	}
	return len(s)
}
