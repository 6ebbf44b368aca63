package jobs

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// TestUntoldSteps: steps of which an engine reports no tasks while they run are shown as long as
// something of them runs, whatever number of tasks they claim to have; those of a job that has ended,
// and commands beside the tasks, are not.
func TestUntoldSteps(t *testing.T) {
	v := state.View{
		Job:    job.Job{State: job.Running, Spec: &job.Spec{Groups: []job.TaskGroup{{CPUsPerTask: 2}}}},
		Claims: []fleet.Claim{{Node: "n1"}, {Node: "n2"}},
	}
	v.Report.Tasks = []engine.TaskReport{{Step: engine.BatchStep, Running: true, Node: "n1"}}
	used := &rusage.Record{Steps: []rusage.Step{
		{Step: engine.ExternStep, Tasks: 1, Running: 1}, {Step: engine.BatchStep, Tasks: 1, Running: 1}, {Step: 0, Tasks: 4}, {Step: 1, Tasks: 1 << 40, Running: 2},
	}}
	got := untoldSteps(&v, used)
	if len(got) != 1 || got[0].ID != "1" || got[0].State != "RUNNING" || got[0].Tasks != 1<<40 || got[0].Nodes != "n[1-2]" || got[0].Used != &used.Steps[3] {
		t.Errorf("%+v", got)
	}
	v.Job.State = job.Completed
	if got := untoldSteps(&v, used); got != nil {
		t.Errorf("of a job that has ended: %+v", got)
	}
}
