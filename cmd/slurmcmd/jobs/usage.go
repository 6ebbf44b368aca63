package jobs

import (
	"encoding/json"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// Steps are the steps of the job. It needs column.Steps.
func (r Row) Steps() (steps []api.Step) {
	if b := r.Raw(column.Steps); len(b) > 0 && json.Unmarshal(b, &steps) != nil {
		return nil // of a server that has another form
	}
	return steps
}

// Used is what the job used, without nodes and steps. It needs column.Used.
func (r Row) Used() (used rusage.Record) {
	if b := r.Raw(column.Used); len(b) > 0 && json.Unmarshal(b, &used) != nil {
		return rusage.Record{}
	}
	return used
}

// DerivedExit is the highest exit code of a job's steps, without the batch script.
func DerivedExit(steps []api.Step) (worst job.ExitCode) {
	for i := range steps {
		if s := &steps[i]; s.ID != "batch" && s.Exit.Shell() > worst.Shell() {
			worst = s.Exit
		}
	}
	return worst
}
