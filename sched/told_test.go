package sched_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// TestAJobIsToldHowManyNodesItNeeds: of one group while there are none, of all of them once each
// would fit by itself. How many are missing is no new reason.
//
// Seen to fail with: same taking every number of nodes for one gate.
func TestAJobIsToldHowManyNodesItNeeds(t *testing.T) {
	spec := gang(1, 1, 8, time.Hour)
	spec.Groups = append(spec.Groups, gang(2, 1, 8, time.Hour).Groups[0])
	c := sched.New(sched.Config{})
	told := func(out []sched.Decision) (last reason.Reason, times int) {
		for _, d := range out {
			if w, ok := d.(sched.Wait); ok && w.Job == 1 {
				last, times = w.Why, times+1
			}
		}
		return last, times
	}
	if why, n := told(c.Step(1, sched.Submitted{Job: 1, Spec: spec})); n != 1 || why.Code != reason.NodeCount || why.Need != 1 || why.Free != 0 {
		t.Errorf("without nodes it is told %d times, %s", n, why)
	}
	if why, n := told(c.Step(2, sched.NodeSet{Node: node("a", 8)}, sched.NodeSet{Node: node("b", 8)})); n != 1 || why.String() != "needs 3 nodes, only 2 qualify" {
		t.Errorf("with two nodes it is told %d times, %s", n, why)
	}
	if why, n := told(c.Step(3, sched.NodeSet{Node: node("c", 4)})); n != 0 {
		t.Errorf("with one more that is too small it is told %d times, %s", n, why)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
