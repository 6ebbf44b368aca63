package attempt

import (
	"time"

	"github.com/coxswain-sched/coxswain/engine"
)

// Op is what a Command asks for.
type Op string

// The operations.
const (
	OpGo     Op = "go"     // open the barrier: Time is the common start
	OpAbort  Op = "abort"  // end without running anything
	OpStop   Op = "stop"   // Signal now (0: SIGTERM), SIGKILL after Grace; Cause, Text say why
	OpSignal Op = "signal" // Signal to Scope, nothing more
)

// Command is what the engine, or another node's supervisor of the same attempt,
// tells a supervisor: one JSON value on its control socket. There is no answer
// but the records that follow from it.
type Command struct {
	Op     Op            `json:"op"`
	Time   time.Time     `json:"time,omitzero"`
	Signal int           `json:"signal,omitempty"`
	Grace  time.Duration `json:"grace,omitempty"`
	Scope  engine.Scope  `json:"scope,omitempty"`
	Cause  engine.Cause  `json:"cause,omitempty"`
	Text   string        `json:"text,omitempty"`
}

// Identity is supervisor.json: which process a supervisor is, so that a later
// process with the same number is not taken for it.
type Identity struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // clock ticks after boot, /proc/PID/stat field 22
	BootID string `json:"boot_id"`
}
