package api

import "time"

// Policy is one revision of the site's rules (queues.yaml).
type Policy struct {
	Revision uint64    `json:"revision" doc:"1, 2, …; 0: none was ever set"`
	At       time.Time `json:"at,omitzero"`
	By       string    `json:"by,omitempty" doc:"who set it"`
	File     string    `json:"file,omitempty" doc:"where the document came from"`
	Note     string    `json:"note,omitempty" doc:"why"`
	Back     uint64    `json:"back,omitempty" doc:"the revision whose document was put back"`
	Hash     string    `json:"hash,omitempty" doc:"SHA-256 of the text"`
	Text     string    `json:"text,omitempty" doc:"the document as it was written; not in the history"`
}

// PolicyHistory lists the revisions that are kept, the oldest first.
type PolicyHistory struct {
	Policies []Policy `json:"policies"`
}

// SetPolicy asks for a document to be put in force: all of it or, if anything in it
// is wrong, nothing.
type SetPolicy struct {
	Text   string  `json:"text,omitempty" doc:"queues.yaml"`
	Back   uint64  `json:"back,omitempty" doc:"instead of a text: the revision to put back"`
	File   string  `json:"file,omitempty" doc:"what messages call the text"`
	Note   string  `json:"note,omitempty"`
	Base   *uint64 `json:"base,omitempty" doc:"the revision that is to be replaced: if another is in force by now, nothing changes (conflict). Left out: whichever"`
	DryRun bool    `json:"dry_run,omitempty" doc:"check it and say what it would change"`
}

// PolicyDone says what was set, or would be.
type PolicyDone struct {
	Policy  Policy `json:"policy" doc:"the revision in force; of a dry run the one that stays"`
	Changed bool   `json:"changed" doc:"false: the document is in force already"`

	Changes  []PolicyChange `json:"changes,omitempty" doc:"what the document says differently"`
	Effects  []string       `json:"effects,omitempty" doc:"what that does at once to what waits and runs, in sentences"`
	Warnings []string       `json:"warnings,omitempty"`
}

// PolicyChange is what is different about one account, QOS, … or field.
type PolicyChange struct {
	Text  string   `json:"text" doc:"a sentence"`
	Lines []string `json:"lines,omitempty" doc:"single fields, - as it was before + as it is"`
}
