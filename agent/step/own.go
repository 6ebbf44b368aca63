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
		return nil, errors.New("not inside a job: steps run in the allocation of a script started by cox run or cox submit (not built yet: an allocation made by srun itself)")
	}
	a, err := Load(file)
	if err != nil {
		return nil, err
	}
	if job != "" && job != a.Job.String() {
		return nil, fmt.Errorf("Unable to confirm allocation for job %s: only the own job %s can be used (not built yet: steps in another job)", job, a.Job)
	}
	return a, nil
}
