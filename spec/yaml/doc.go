// Package yaml reads YAML that people write by hand and that may come from anybody:
// a job, a configuration. It keeps for every value where it stands, so that a
// message can show the line, and it decides nothing about types: a plain 010 or
// "no" stays the text that was written, and whoever knows the field says what it
// means.
//
// What it reads is one document of block and flow mappings and lists, plain, quoted,
// literal (|) and folded (>) text, and comments. JSON is read too.
//
// What it refuses, by name and before anything is built of it: anchors, aliases,
// merge keys, tags, complex keys (?), directives, more than one document, duplicate
// keys, tabs in the indentation, control characters, text that is not UTF-8, more
// than MaxSize bytes, more than MaxDepth levels. Where YAML allows what is nearly
// always a slip, it is refused as well: plain text that goes on in a line that looks
// like a field or a list entry, flow text over several lines without quotes.
//
// Work and memory are linear in the size of the text, whatever it holds; nothing is
// expanded. The package does no I/O.
package yaml

// Bounds of what is read.
const (
	MaxSize  = 1 << 20 // bytes of a document
	MaxDepth = 16      // levels of mappings and lists
)
