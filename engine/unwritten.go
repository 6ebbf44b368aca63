package engine

import (
	"cmp"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Unwritten is the error of a Launch that could not be written down, so that nothing is left of it. A
// full disk is fault.Exhausted: the job gives its nodes back and waits. What else the disk says may
// pass, and is no failure of the job's either: fault.Unavailable, and the launch is repeated.
func Unwritten(ref Ref, err error) error {
	kind, remedy := fault.Unavailable, cmp.Or(fault.Remedy(err), "look at the disk of the state directory")
	if fault.KindOf(err) == fault.Exhausted {
		kind, remedy = fault.Exhausted, "make room in the state directory"
	}
	return fault.New(kind, "launch of attempt %s: %w", ref, err).Advise("%s", remedy)
}
