package attempt

import (
	"encoding/json"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
)

// Op is what a Command asks for.
type Op string

// The operations.
const (
	OpTake    Op = "take"    // sit down: Launch, as its node number Index; make ready and wait
	OpGo      Op = "go"      // open the barrier: Time is the common start, Alloc what processes may know, Peers the others' sockets
	OpAbort   Op = "abort"   // end without running anything
	OpStop    Op = "stop"    // Signal now (0: SIGTERM), SIGKILL after Grace; Cause, Text say why
	OpSignal  Op = "signal"  // Signal to Scope, nothing more
	OpSuspend Op = "suspend" // hold every process
	OpResume  Op = "resume"  // let them go on
	OpLimit   Op = "limit"   // the time limit is Limit from now on, counted from the start
	OpPing    Op = "ping"    // answer with the state
	OpUsage   Op = "usage"   // answer with a record of KindUsage, on this connection alone
)

// Command is what the engine, or another node's supervisor of the same attempt,
// tells a supervisor: one JSON value on its control socket. There is no answer
// but the records that follow from it. A command for another attempt than the one
// that sits is ignored.
type Command struct {
	Op     Op            `json:"op"`
	Ref    engine.Ref    `json:"ref"`
	Time   time.Time     `json:"time,omitzero"`
	Signal int           `json:"signal,omitempty"`
	Grace  time.Duration `json:"grace,omitempty"`
	Drain  time.Duration `json:"drain,omitempty"` // of OpStop: until Signal, unless another OpStop comes without it
	Limit  time.Duration `json:"limit,omitempty"` // of OpLimit; 0: none
	Scope  engine.Scope  `json:"scope,omitempty"`
	Cause  engine.Cause  `json:"cause,omitempty"`
	Text   string        `json:"text,omitempty"`
	Why    engine.Why    `json:"why,omitempty"` // of OpStop with the cause Stopped
	Launch *Launch       `json:"launch,omitempty"`
	Index  int           `json:"index,omitempty"`
	Turn   uint64        `json:"turn,omitempty"` // of OpSuspend and OpResume: the largest is in force
	Seat   *Slot         `json:"seat,omitempty"`
	Peers  []string      `json:"peers,omitempty"` // control sockets of all nodes, in order

	// Alloc is a step.Alloc, as it will stand in the file that tells processes of it.
	Alloc json.RawMessage `json:"alloc,omitempty"`
}

// TakeLine is the line of an OpTake command; launch is an encoded Launch.
func TakeLine(ref engine.Ref, index int, seat Slot, launch []byte) []byte {
	b, err := appendLine(nil, Command{Op: OpTake, Ref: ref, Index: index, Seat: &seat})
	if err != nil {
		panic("command: " + err.Error()) // plain data
	}
	return withLaunch(b, launch)
}

// withLaunch puts an encoded Launch into the line of an object: encoding it once for
// the log and every supervisor is a good part of what a short job costs.
func withLaunch(line, launch []byte) []byte {
	line = append(line[:len(line)-len("}\n")], `,"launch":`...)
	return append(append(line, launch...), "}\n"...)
}
