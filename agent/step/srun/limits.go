package srun

import (
	"slices"

	"github.com/coxswain-sched/coxswain/agent/ownlimit"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/model/rlimit"
)

// setPropagate reads --propagate.
func setPropagate(o *options, value string) (err error) {
	o.limits, err = rlimit.ParsePropagate(value)
	return err
}

// ownLimits reads the soft limits of this process that tasks get.
func ownLimits(choice rlimit.Choice) []barrier.Rlimit {
	limits := slices.DeleteFunc(ownlimit.Read(), func(l rlimit.Limit) bool { return !choice.Has(l.Kind) })
	return barrier.Rlimits(limits)
}
