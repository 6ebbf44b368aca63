package state

import (
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// TestHeldDevices: devices count alike whether claims name them or are on a pool as a whole, in the sizes of jobs
// and in the work that is lost.
//
// Seen to fail with: devices of claims alone, which those on a pool do not have.
func TestHeldDevices(t *testing.T) {
	half := fleet.DeviceClaim{Share: resource.WholeDevice / 2}
	pool := fleet.Claim{Node: aggregate.NodeName("p"), Take: resource.Vector{}.With(aggregate.Device("gpu"), 16).With(aggregate.Device("gpu:h100"), 16)}
	for _, c := range []struct {
		claims []fleet.Claim
		size   string
		lost   float64 // device-seconds in ten seconds
	}{
		{[]fleet.Claim{{Node: "a", Devices: []fleet.DeviceClaim{half, half}}, {Node: "b", Devices: []fleet.DeviceClaim{{Share: resource.WholeDevice}}}}, "2-8", 20},
		{[]fleet.Claim{pool, pool}, "9-64", 320},
		{[]fleet.Claim{{Node: aggregate.NodeName("p"), Take: resource.Vector{CPU: resource.CPUs(2)}}}, "0", 0},
	} {
		s := &State{Counts: newCounts()}
		e := &JobRecord{Eligible: 1, Last: &Attempt{Claims: c.claims, started: 2, Preempted: &Preempted{}}}
		s.Counts.countBegin(e)
		s.countLostWork(e, 2+10e9)
		if s.Counts.Begin[slices.Index(SizeClasses[:], c.size)].Count != 1 || s.Counts.LostTime != c.lost || s.Counts.PreemptedTime != c.lost {
			t.Errorf("%s: %v, lost %g of %g", c.size, s.Counts.Begin, s.Counts.LostTime, s.Counts.PreemptedTime)
		}
	}
}
