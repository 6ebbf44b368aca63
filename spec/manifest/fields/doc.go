// Package fields is the table of the fields of manifests for Kubernetes: for each kind that
// spec/manifest reads every field of its public form, its type, and what each engine does with
// it. Reading, refusing and the pages of documentation are all made from it.
//
// The files *.tbl are the table. "type NAME" begins a group of fields, "type NAME = OTHER" one
// that has those of another group, too, but for those that it has itself. A line below it is
//
//	NAME TYPE MARKS SENTENCE | REMEDY
//
// TYPE is string, bool, int32, int64, count (from 0), port, mode (of a file, octal), float,
// quantity, intstr (a number or a text), duration, time, bytes (base64), raw (anything), the
// name of another group, A|B for one of several words (A| for one), [TYPE] for a list, {TYPE} for fields of
// any name. ! behind it: the field is required. =VALUE behind it: with this value the field
// says what holds anyway, so nothing is said about it.
//
// MARKS are three letters, for this machine, Slurm and Kubernetes: y the field is honoured,
// > the pod gets it as it is, ~ it has no effect and a warning says so, n it is refused. Three
// more behind a / are for services. A field without marks has those of the field that it stands in. The sentence says what an
// engine does with the field, or why it does not; the remedy what to write instead.
package fields
