package fleet

import (
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

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
	// sets it when it admits the new pool, and an administrator may. Open says that an administrator has taken
	// that back: fences of this epoch and before are removed there.
	Fenced bool `json:"fenced,omitempty"`
	Open   bool `json:"open,omitempty"`
	// Nodes are the nodes that the old pool had on the machine when it was drained, as a host list: each of them is
	// fenced and proved empty, also one that the pool does not report any more.
	Nodes  string    `json:"nodes,omitempty"`
	By     string    `json:"by,omitempty"`     // who asked
	Reason string    `json:"reason,omitempty"` // why
	At     time.Time `json:"at,omitzero"`      // of the last change
}

// Moving reports whether a hand-over is under way.
func (o *MachineOwner) Moving() bool { return o.Next != "" }

// MayPlace reports whether a pool may start work on the machine now.
func (o *MachineOwner) MayPlace(pool string) bool { return o.Pool == pool && !o.Moving() }

// handoverSteps has the steps in their order.
var handoverSteps = []HandoverStep{StepAsked, StepDrain, StepFence, StepProve, StepAdmit, StepCheck, StepRelease}

// Next is the step that follows; empty: none does, or it is no step.
func (s HandoverStep) Next() HandoverStep {
	if i := slices.Index(handoverSteps, s); i >= 0 && i+1 < len(handoverSteps) {
		return handoverSteps[i+1]
	}
	return ""
}

// Reached reports whether a step is done once step s is.
func (s HandoverStep) Reached(step HandoverStep) bool {
	return slices.Index(handoverSteps, s) >= slices.Index(handoverSteps, step)
}

// Check refuses a record that cannot be: fault.Invalid.
func (o *MachineOwner) Check() error {
	switch {
	case o.Machine == "" || o.Pool == "":
		return o.refuse(fault.Invalid, "a record needs a machine and its pool")
	case o.Epoch == 0:
		return o.refuse(fault.Invalid, "epoch 0: they begin with 1")
	case o.Step != "" && !slices.Contains(handoverSteps, o.Step):
		return o.refuse(fault.Invalid, "%.20q is no step of a hand-over", o.Step)
	case o.Moving() && (o.Step == "" || o.Step == StepRelease):
		return o.refuse(fault.Invalid, "a hand-over to pool %s without a step", o.Next)
	case !o.Moving() && (o.Step != "" && o.Step != StepRelease || o.Back):
		return o.refuse(fault.Invalid, "step %s of no hand-over", o.Step)
	case o.Moving() && o.Step.Reached(StepAdmit) != (o.Next == o.Pool):
		return o.refuse(fault.Invalid, "at step %s it is pool %s's, on its way to pool %s", o.Step, o.Pool, o.Next)
	case o.Fenced && o.Open:
		return o.refuse(fault.Invalid, "its other nodes are both closed and opened")
	case o.Back && o.Step.Reached(StepAdmit):
		return o.refuse(fault.Invalid, "it cannot be walked back after step %s", StepAdmit)
	}
	return nil
}

// CheckNext refuses a record that does not follow this one: fault.Conflict. What follows is the same step
// with other words (evidence, waits, deadline), the next step, or a walk back, which ends with
// StepRelease and the old pool. Only a record without a hand-over is followed by StepAsked, or by
// a record that names the owner anew: another pool, because the one before is gone, or the same with an epoch
// after a fence that nobody knew of. The epoch is one more then, without a hand-over at least one. A
// hand-over that has reached StepAdmit, too, is followed by one to another pool, or by a record that gives the
// machine to another pool without one (TakenBy): nothing else takes the machine back.
func (o *MachineOwner) CheckNext(next *MachineOwner) error {
	if err := next.Check(); err != nil {
		return err
	}
	again := o.Moving() && o.Step.Reached(StepAdmit) && (next.Step == StepAsked || next.Step == "" && next.Pool != o.Pool)
	if !o.Moving() || again {
		switch {
		case next.Epoch <= o.Epoch, next.Moving() && next.Epoch != o.Epoch+1:
			return o.refuse(fault.Conflict, "epoch %d does not follow epoch %d", next.Epoch, o.Epoch)
		case next.Moving() && (next.Step != StepAsked || next.Pool != o.Pool || next.Back):
			return o.refuse(fault.Conflict, "it belongs to pool %s, and no hand-over to pool %s has begun that could be at step %s", o.Pool, next.Next, next.Step)
		}
		return nil
	}
	ends := next.Step == StepRelease && !next.Moving()
	switch {
	case next.Epoch != o.Epoch:
		return o.refuse(fault.Conflict, "the hand-over under way has epoch %d, not %d", o.Epoch, next.Epoch)
	case next.Moving() && next.Next != o.Next:
		return o.refuse(fault.Conflict, "it is on its way to pool %s, not to pool %s", o.Next, next.Next)
	case o.Back && ends && next.Pool == o.Pool, o.Back && next.Back && next.Step == o.Step:
		return nil
	case o.Back:
		return o.refuse(fault.Conflict, "its hand-over to pool %s is walked back", o.Next)
	case next.Back && next.Step == o.Step && next.Pool == o.Pool, !next.Back && next.Step == o.Step && next.Pool == o.Pool:
		return nil
	case !next.Back && next.Step == o.Step.Next() && (next.Pool == o.Pool || next.Step == StepAdmit):
		return nil
	}
	return o.refuse(fault.Conflict, "step %s does not follow step %s", next.Step, o.Step)
}

func (o *MachineOwner) refuse(kind fault.Kind, format string, args ...any) error {
	return fault.New(kind, "machine %.70s: %w", o.Machine, fault.New(kind, format, args...))
}

// WhyNot says why a pool may start nothing on the machine; empty: it may.
func (o *MachineOwner) WhyNot(pool string) string {
	switch {
	case o.MayPlace(pool):
		return ""
	case o.Moving() && o.Back:
		return "machine " + o.Machine + " stays with pool " + o.Pool + ": its hand-over to pool " + o.Next + " is being taken back" + o.waiting()
	case o.Moving() && o.Step.Reached(StepAdmit):
		return "machine " + o.Machine + " has come from pool " + o.Last + " to pool " + o.Pool + " and is being checked" + o.waiting()
	case o.Moving():
		return "machine " + o.Machine + " is on its way from pool " + o.Pool + " to pool " + o.Next + ", step " + string(o.Step) + o.waiting()
	}
	return "machine " + o.Machine + " belongs to pool " + o.Pool
}

// waiting leaves out what is waited for: it may be a job of somebody, and everybody sees why a node is closed.
func (o *MachineOwner) waiting() string {
	if o.Waits == "" {
		return ""
	}
	return "; cox machines shows what it waits for"
}

// whileWaiting is between why a hand-over was walked back and what it waited for then.
const whileWaiting = " while it waited for "

// WaitedFor is what the hand-over waits for, as the end of a sentence about the past; empty: for nothing.
func (o *MachineOwner) WaitedFor() string {
	if o.Waits == "" {
		return ""
	}
	return whileWaiting + o.Waits
}

// WithoutWork is the record for those who may not see the jobs of others: it says that a hand-over waits, and does
// not name the work that it waits for.
func (o *MachineOwner) WithoutWork() MachineOwner {
	out := *o
	if out.Waits != "" {
		out.Waits = "what is on its nodes, or for an engine; administrators are told more"
	}
	out.Evidence, _, _ = strings.Cut(out.Evidence, whileWaiting)
	return out
}

// String says whose the machine is, or how far its hand-over is.
func (o *MachineOwner) String() string {
	switch {
	case !o.Moving():
		return "pool " + o.Pool
	case o.Back:
		return "back to pool " + o.Pool + ", step " + string(o.Step)
	case o.Step.Reached(StepAdmit):
		return "from pool " + o.Last + " to pool " + o.Pool + ", step " + string(o.Step)
	}
	return "from pool " + o.Pool + " to pool " + o.Next + ", step " + string(o.Step)
}

// WithMarks is the record by which an administrator has our fence kept on nodes of other pools, or removed there.
func (o *MachineOwner) WithMarks(fenced bool, by, reason string) MachineOwner {
	next := *o
	next.Epoch, next.Fenced, next.Open, next.By, next.Reason = o.Epoch+1, fenced, !fenced, by, reason
	next.Evidence = "nodes of other pools are opened, as " + by + " asked"
	if fenced {
		next.Evidence = "nodes of other pools are closed, as " + by + " asked"
	}
	return next
}

// TakenBy is the record by which another pool has the machine without a proof, since the pool before reports no node
// there and an administrator says that nothing of it runs there.
func (o *MachineOwner) TakenBy(pool, by, reason string) MachineOwner {
	return MachineOwner{
		Machine: o.Machine, Pool: pool, Last: o.Pool, Epoch: o.Epoch + 1, Fenced: true, By: by, Reason: reason,
		Evidence: "taken without a proof, as " + by + " asked: pool " + o.Pool + " reports no node on the machine",
	}
}

// After is the record by which another pool has the machine, because the one before is gone. Nothing of that may be
// held there. The fences of third pools stay.
func (o *MachineOwner) After(pool string) MachineOwner {
	return MachineOwner{Machine: o.Machine, Pool: pool, Last: o.Pool, Epoch: o.Epoch + 1, Fenced: o.Fenced, Reason: "pool " + o.Pool + " is gone"}
}
