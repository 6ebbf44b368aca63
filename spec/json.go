package spec

import (
	"encoding/json"
	"io"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Document is a text as it was understood: the job and what was warned of. Its form
// is stable: fields are added, and none is renamed, moved or given another meaning.
// Equal texts give equal documents, byte for byte.
type Document struct {
	Job      *job.Spec     `json:"job"`
	Warnings []WarningJSON `json:"warnings"` // in the order of lines; never null
}

// WarningJSON is a Warning in a Document.
type WarningJSON struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0: no line of a file
	Option  string `json:"option"` // as written; may be empty
	Message string `json:"message"`
}

// NewDocument puts a job and its warnings together.
func NewDocument(s *job.Spec, warnings []Warning) Document {
	d := Document{Job: s, Warnings: make([]WarningJSON, len(warnings))}
	for i, w := range warnings {
		d.Warnings[i] = WarningJSON{File: w.File, Line: w.Line, Option: w.Option, Message: w.Message}
	}
	return d
}

// Write prints the document indented by two blanks, with a line end.
func (d Document) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(d)
}
