package yaml

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/coxswain-sched/coxswain/spec"
)

// Kind is what a node is.
type Kind uint8

// The kinds.
const (
	Null    Kind = iota // nothing is written, or a plain ~ or null
	Scalar              // text, a number, true: as written
	List                // entries in order
	Mapping             // fields in order
)

// String is the kind as messages name it.
func (k Kind) String() string {
	return [...]string{"nothing", "a value", "a list", "a group of fields"}[k]
}

// Place is a part of one line.
type Place struct {
	Line, Col int // from 1; Col counts bytes
	Len       int // bytes
}

// Node is one value of a document.
type Node struct {
	Kind   Kind
	Place  Place  // of a list or mapping: of its first character
	Text   string // of a scalar
	Quoted bool   // the scalar stands in quotes or is a block: it is text
	Items  []*Node
	Fields []Field
}

// Field is one entry of a mapping.
type Field struct {
	Name  string
	Place Place // of the name
	Value *Node
}

// Get returns the value of a field, nil if there is none.
func (n *Node) Get(name string) *Node {
	for _, f := range n.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// Document is a text that has been read.
type Document struct {
	Root   *Node // Null if the text holds comments and blanks alone
	name   string
	src    string
	at     []int // start of each line
	ascii  bool
	limits Limits
	base   int // lines of the text before what the library reads

	anchors  map[*yaml.Node]*Node // what has an anchor; nil while it is read
	expanded int                  // nodes that aliases have added
	text     int                  // bytes of text that they have added
}

// Line is a line as written, without its end; "" if there is none of that number.
func (d *Document) Line(n int) string {
	if n < 1 || n > len(d.at) {
		return ""
	}
	end := len(d.src)
	if n < len(d.at) {
		end = d.at[n]
	}
	return strings.TrimSuffix(d.src[d.at[n-1]:end], "\n")
}

// Error is a message about a place, with its line.
func (d *Document) Error(p Place, message, remedy string) *spec.Error {
	return &spec.Error{
		File: d.name, Line: p.Line, Col: p.Col, Len: p.Len, ShowCol: true, Text: d.Line(p.Line),
		Message: message, Remedy: remedy,
	}
}

// Name is the name of the text.
func (d *Document) Name() string { return d.name }
