// Package spec is the contract of the front ends. A front end turns a user's
// text into a job:
//
//	Parse(src spec.Source, opts Options) (*job.Spec, []spec.Warning, error)
//
// It knows nothing of nodes, queues or engines and does no I/O of its own. What
// the text asks for is honoured, or becomes a Warning that names file, line and
// option, or an *Error that also says what would be right. Nothing is dropped
// silently. A Document is what other programs read: the job and its warnings as JSON.
package spec
