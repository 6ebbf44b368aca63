// Package policy is the site's rules (account.Policy) as a document that people
// write and keep under version control: queues.yaml.
//
// The reader is strict: a field that does not exist, a name that nobody has, an
// amount without its unit is an error with file, line, column and what would be
// right, and all errors of a document come together. What is not said is the zero
// value, which is what account says it is. The writer has one form for each policy,
// and what it writes is read as the same policy, to the byte when it is written
// again. Fields, forms, the JSON Schema and docs/reference/queues.md follow from the types of
// package account by their tags:
//
//	yaml:"name"            the field's name
//	doc:"…"                what it means
//	enum:"a,b"             the words that it may be
//	words:"parent=-1"      words for single numbers or durations
//
// Differences between two policies come in sentences. Imports from other systems are
// packages below this one. The package knows no jobs: what a change does to them,
// says who has them.
package policy
