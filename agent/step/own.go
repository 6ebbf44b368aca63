package step

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Stdio is what a command reads and writes. Its standard input is a file so that
// srun can tell whether it may be read.
type Stdio struct {
	In       *os.File
	Out, Err io.Writer
}

// LoadOwn finds the allocation that this process runs in. job is what --jobid
// says, or "".
func LoadOwn(job string) (*Alloc, error) {
	file := os.Getenv(AllocVariable)
	if file == "" {
		return nil, errors.New("not inside a job: this process has no variable " + AllocVariable)
	}
	a, err := Load(file)
	if err != nil {
		return nil, err
	}
	if job != "" && !a.isNamed(job) {
		return nil, fmt.Errorf("Unable to confirm allocation for job %s: this process is in job %s; srun of cox-slurm runs steps in another job", job, a.Job)
	}
	return a, nil
}

// IsOwn reports whether a process with this environment is in a job, and a name, as --jobid takes
// it, is that job's or empty.
func IsOwn(job string, getenv func(string) string) bool {
	if getenv(AllocVariable) == "" {
		return false
	}
	own, array, task := getenv("SLURM_JOB_ID"), getenv("SLURM_ARRAY_JOB_ID"), getenv("SLURM_ARRAY_TASK_ID")
	return job == "" || job == own || array != "" && job == array+"_"+task
}

// isNamed reports whether a name is that of the job.
func (a *Alloc) isNamed(job string) bool {
	return job == a.Job.String() || a.Array != nil && job == fmt.Sprintf("%d_%d", a.Array.Job, a.Array.Index)
}
