package step

import (
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// EndNotice is the line, in Slurm's words, that the output of a job or of one of its steps gets
// when it is ended from outside: people and programs look for it. step is engine.BatchStep for
// the job as a whole.
func EndNotice(id job.ID, step int, node string, at time.Time, why engine.Why) string {
	entity := fmt.Sprintf("JOB %d", id)
	if step != engine.BatchStep {
		entity = fmt.Sprintf("STEP %d.%d", id, step)
	}
	due := map[engine.Why]string{
		engine.ForTimeLimit: " DUE TO TIME LIMIT", engine.ForPreemption: " DUE TO PREEMPTION", engine.ForRequeue: " DUE TO JOB REQUEUE",
		engine.ForNodeFailure: " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
	}[why]
	return fmt.Sprintf("slurmstepd: error: *** %s ON %s CANCELLED AT %s%s ***\n", entity, node, at.Format("2006-01-02T15:04:05"), due)
}

// OOMNotice is the line, in Slurm's words, of kills at the memory limit.
func OOMNotice(id job.ID, step int, kills int) string {
	name := "batch"
	if step != engine.BatchStep {
		name = fmt.Sprint(step)
	}
	plural := "s"
	if kills == 1 {
		plural = ""
	}
	return fmt.Sprintf("slurmstepd: error: Detected %d oom_kill event%s in StepId=%d.%s. Some of the step tasks have been OOM Killed.\n", kills, plural, id, name)
}
