package sbatchargs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Environment is a job's environment: of the submission's, what --export lets through, then
// what the job sets itself, then our own variables. SBATCH_ variables are left out, since they
// were read when the job was submitted here, and so is SLURM_RESTART_COUNT, which would speak of
// another job. For an --export other than ALL slurmd adds what a login sets, as under sbatch.
func Environment(j *job.Job, submitted []string, g *script.Guard) []string {
	spec := j.Spec
	base := slices.DeleteFunc(slices.Clone(submitted), func(v string) bool {
		return strings.HasPrefix(v, "SBATCH_")
	})
	out := env.Exported(base, spec.Env.Export)
	if x := spec.Env.Export; x != "" && x != "NIL" && !slices.Contains(strings.Split(x, ","), "ALL") {
		out = append(out, "SLURM_GET_USER_ENV=1")
	}
	out = slices.DeleteFunc(append(out, spec.Env.Set...), func(v string) bool {
		return strings.HasPrefix(v, "SLURM_RESTART_COUNT=") // the lock's name has it
	})
	return append(out, identityVariables(j, g)...)
}

// identityVariables are variables that say what the job is here, and which task of its array it is:
// to slurmctld it is a job of its own.
func identityVariables(j *job.Job, g *script.Guard) []string {
	out := []string{fmt.Sprintf("COX_JOB_ID=%d", j.ID), "COX_ATTEMPT=" + g.Dir + ":" + g.Ref.String()}
	if a := j.Array; a != nil {
		for _, v := range []struct {
			name  string
			value uint64
		}{{"JOB_ID", uint64(a.Job)}, {"TASK_ID", uint64(a.Index)}, {"TASK_COUNT", uint64(a.Count)}, {"TASK_MIN", uint64(a.Min)}, {"TASK_MAX", uint64(a.Max)}, {"TASK_STEP", uint64(a.Step)}} {
			out = append(out, fmt.Sprintf("SLURM_ARRAY_%s=%d", v.name, v.value))
		}
	}
	return out
}

// TaskCounts are the variables with numbers of nodes and tasks that a job of one group has, as those
// that salloc sets; srun takes its defaults from them. A job of several groups has none.
func TaskCounts(s *job.Spec, claims []fleet.Claim, nodes int) []string {
	tasks := 0
	for _, c := range claims {
		tasks += c.Tasks
	}
	if len(s.Groups) != 1 || nodes == 0 || tasks == 0 {
		return nil
	}
	out := []string{fmt.Sprintf("SLURM_NNODES=%d", nodes), fmt.Sprintf("SLURM_JOB_NUM_NODES=%d", nodes), fmt.Sprintf("SLURM_NTASKS=%d", tasks), fmt.Sprintf("SLURM_NPROCS=%d", tasks)}
	if n := s.Groups[0].CPUsPerTask; n > 0 {
		out = append(out, fmt.Sprintf("SLURM_CPUS_PER_TASK=%d", n))
	}
	switch {
	case nodes == 1:
		out = append(out, fmt.Sprintf("SLURM_TASKS_PER_NODE=%d", tasks))
	case tasks%nodes == 0:
		out = append(out, fmt.Sprintf("SLURM_TASKS_PER_NODE=%d(x%d)", tasks/nodes, nodes))
	}
	return out
}
