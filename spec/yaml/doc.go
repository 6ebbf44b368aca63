// Package yaml reads YAML that people write by hand and that may come from anybody:
// a job, a configuration. It keeps for every value where it stands, so that a
// message can show the line, and it decides nothing about types: a plain 010 or
// "no" stays the text that was written, and whoever knows the field says what it
// means.
//
// The reading itself is the library's (go.yaml.in/yaml), whose tree keeps anchors
// and aliases apart: nothing is expanded. What this package refuses of that tree, by
// name: anchors, aliases, merge keys, tags, complex keys (?), more than one document,
// duplicate keys, more than MaxSize bytes, more than MaxDepth levels.
//
// Work and memory are linear in the size of the text, whatever it holds. The package
// does no I/O.
package yaml

// Bounds of what is read.
const (
	MaxSize  = 1 << 20 // bytes of a document
	MaxDepth = 16      // levels of mappings and lists
)
