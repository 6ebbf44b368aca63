package api

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// Usage is what a job used in its last attempt (docs/reference/efficiency.md).
type Usage struct {
	Job     job.ID         `json:"job"`
	Name    string         `json:"name"`
	State   string         `json:"state"`
	Running bool           `json:"running,omitempty" doc:"it runs, and the numbers are of this moment or a few seconds ago; GPUs are not among them yet"`
	Used    *rusage.Record `json:"used,omitempty" doc:"left out: nobody measured it"`
	Steps   []Step         `json:"steps" doc:"the batch script first; of very many the first and the last"`
}

// Step is one step of a job.
type Step struct {
	ID      string       `json:"id" doc:"batch, extern, or its number"`
	Name    string       `json:"name,omitempty" doc:"as srun was told, or its program"`
	State   string       `json:"state" doc:"RUNNING, COMPLETED, FAILED, CANCELLED, TIMEOUT, OUT_OF_MEMORY, NODE_FAIL"`
	Exit    job.ExitCode `json:"exit" doc:"the highest of its tasks"`
	Started time.Time    `json:"started,omitzero"`
	Ended   time.Time    `json:"ended,omitzero"`
	Nodes   string       `json:"nodes,omitempty" doc:"host list"`
	Count   int          `json:"node_count,omitempty"`
	Tasks   int          `json:"tasks" doc:"that were seen"`
	CPUs    int          `json:"cpus,omitempty" doc:"that it had, as far as that is known from the request"`
	Used    *rusage.Step `json:"used,omitempty" doc:"left out: not known"`
}
