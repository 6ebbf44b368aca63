package fleet

import "time"

// HandoverStep is how far a hand-over of a machine is: the last step that is done. Steps before
// StepAdmit can be walked back.
type HandoverStep string

// The steps, in their order.
const (
	StepAsked   HandoverStep = "asked"   // somebody wants it; nothing is done
	StepDrain   HandoverStep = "drain"   // nothing of ours is left in the old pool, and nothing new is placed there
	StepFence   HandoverStep = "fence"   // the old engine starts nothing there any more
	StepProve   HandoverStep = "prove"   // asked after the fence, it saw nothing there
	StepAdmit   HandoverStep = "admit"   // the new pool is the owner
	StepCheck   HandoverStep = "check"   // the new engine has the node, and it is well
	StepRelease HandoverStep = "release" // the hand-over has ended; Next is empty
)

// MachineOwner says which pool may start work on a machine. At any instant that is Pool alone. Names
// are a format on disk.
type MachineOwner struct {
	Machine string `json:"machine"`
	Pool    string `json:"pool"`
	// Next is the pool that a hand-over under way gives the machine to; from StepAdmit on it is Pool
	// itself, and Last the pool before. Empty: none is under way.
	Next string       `json:"to,omitempty"`
	Last string       `json:"last,omitempty"`
	Step HandoverStep `json:"step,omitempty"`
	// Back says that the hand-over is walked back: the fence of the old pool is being removed.
	Back bool `json:"back,omitempty"`
	// Epoch grows by one with each hand-over. Calls to engines name it, so that one that arrives late
	// changes nothing of a later hand-over.
	Epoch    uint64    `json:"epoch"`
	Evidence string    `json:"evidence,omitempty"` // what was seen that the last step is done
	Waits    string    `json:"waits,omitempty"`    // what the next step waits for
	Deadline time.Time `json:"deadline,omitzero"`  // when the hand-over is walked back, if it is not at StepAdmit
	// Requeue says that what runs in the old pool and may be requeued is, instead of waited for.
	Requeue bool `json:"requeue,omitempty"`
	// Fenced says that our fence is kept on the nodes that other pools have on the machine. Every hand-over
	// sets it when it admits the new pool.
	Fenced bool      `json:"fenced,omitempty"`
	By     string    `json:"by,omitempty"`     // who asked
	Reason string    `json:"reason,omitempty"` // why
	At     time.Time `json:"at,omitzero"`      // of the last change
}

// Moving reports whether a hand-over is under way.
func (o *MachineOwner) Moving() bool { return o.Next != "" }

// MayPlace reports whether a pool may start work on the machine now.
func (o *MachineOwner) MayPlace(pool string) bool { return o.Pool == pool && !o.Moving() }
