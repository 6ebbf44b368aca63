package engine

import "context"

// Checker is an optional ability: to say, before it is given work, whether all is there
// that the work will need.
type Checker interface {
	// Check looks at what the engine works with: versions, rights, identity, what it
	// shares with its nodes. It changes nothing that stays and may take a while; ctx
	// bounds it. What is wrong is a finding. An error says that the look itself could
	// not be ended; findings that come with it hold all the same. What Info and Nodes
	// say is asked apart and need not be repeated.
	Check(ctx context.Context) ([]Finding, error)
}

// FindingState says what a finding means for the work.
type FindingState string

// The states of a finding.
const (
	Found   FindingState = "found"   // it is there
	Warning FindingState = "warning" // work runs, but less well than it could
	Missing FindingState = "missing" // some or all work cannot run
)

// Finding is one thing that a Checker has looked at.
type Finding struct {
	What  string       `json:"what"` // in a word or two: "version", "rights", "shared directory"
	State FindingState `json:"state"`
	Text  string       `json:"text"`           // what was found, for people, in a sentence
	Mend  string       `json:"mend,omitempty"` // the command that would mend it
}
