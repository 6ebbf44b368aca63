// Package manifest reads manifests for Kubernetes: a text of YAML or JSON becomes documents,
// each checked, with the line of every field.
//
//	Read(name, data) ──► File{Documents} ──► Document.Check(engine)
//	                                         Document.JSON(path)
//
// Guarantees. Every field of a document is looked up in the table (spec/manifest/fields): one
// that the kind does not have, that has a value of another type, or that is missing is an error
// with file, line, document, path and remedy. Check says for one engine which fields are refused
// and which have no effect; what it does not name is honoured, or goes into the pod as it is.
// Nothing is dropped in silence. A kind that is not read is refused by name.
//
// Values mean what they mean to Kubernetes: the plain words of YAML 1.1 (yes, 0644), text only
// where a text is expected, null as a field that is left out. JSON of a document or a part of it
// is what kubectl would send.
//
// Work and memory are linear in the size of the text; a text of more than MaxSize, more than
// MaxDepth levels, or whose aliases stand for too many values is refused. The package does no
// I/O, fills in no defaults, and knows nothing of pools and queues; spec/manifest/work makes jobs
// of documents. Documents are not changed after Read, and are safe for concurrent use.
package manifest

// Bounds of what is read.
const (
	MaxSize  = 50 << 20 // bytes of a text
	MaxDepth = 24       // levels of mappings and lists in a document
)
