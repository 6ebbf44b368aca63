package engine

// Failure says whose fault the end of an attempt was. It is kept with the attempt; names are a
// format on disk.
type Failure string

// The failures. Ends that somebody asked for, and those that a program reached well, have none.
const (
	NoFailure     Failure = ""
	JobFailure    Failure = "job"    // its program failed, or it went beyond its time or memory, or asks for what there is not
	NodeFailure   Failure = "node"   // a node was lost, or its supervisor, or a device of it broke
	EngineFailure Failure = "engine" // the engine did not start it
)
