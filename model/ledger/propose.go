package ledger

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Change is one change of a batch: an allocation to hold, or a parked one that goes on.
type Change struct {
	Hold   *Allocation // Propose gives it its number; nil: none
	Resume ID          // 0: none
}

// Propose verifies a batch of changes as a whole: each one together with those before it that
// are not refused. It returns for each change why it is refused, nil where it is not. The
// ledger holds nothing more afterwards than before, since nothing is held before it is durable:
// Restore and Park apply the records of the changes. Numbers that were given are used up.
func (l *Ledger) Propose(batch []Change) []error {
	refused := make([]error, len(batch))
	for i, c := range batch {
		refused[i] = l.tryChange(c)
	}
	for i, c := range slices.Backward(batch) {
		if refused[i] == nil {
			l.takeBack(c)
		}
	}
	return refused
}

// tryChange makes one change, or refuses it.
func (l *Ledger) tryChange(c Change) error {
	if c.Hold == nil {
		if a := l.live[c.Resume]; a != nil && !a.Parked {
			return fault.New(fault.Conflict, "allocation %d is not parked", c.Resume)
		}
		return l.Park(c.Resume, false)
	}
	c.Hold.ID = l.next
	err := l.Hold(*c.Hold)
	if err != nil {
		c.Hold.ID = 0
	}
	return err
}

// takeBack undoes a change that tryChange has made. Changes are undone in the reverse order.
func (l *Ledger) takeBack(c Change) {
	var err error
	if c.Hold != nil {
		err = l.Free(c.Hold.ID, c.Hold.Attempt)
	} else {
		err = l.Park(c.Resume, true)
	}
	if err != nil {
		panic(fmt.Sprintf("ledger: take back a proposed change: %v", err)) // tryChange has just made it
	}
}
