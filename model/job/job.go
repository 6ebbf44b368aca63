// Package job holds the unit of queueing and accounting: what was asked for
// (Spec, immutable once accepted), how far it is (State, Flags, attempts), and
// the one table of allowed transitions.
//
// A Job is data. It has no lock and starts nothing: control owns the only
// mutable copy, everybody else reads a published one. Scripts and environments
// are not in it but named by their hash, so that a million pending jobs stay small.
package job

import (
	"fmt"
	"strconv"
	"time"
)

// ID is a job's number, unique in one control plane and never used again.
// Zero is no job.
type ID uint64

// String is the number in decimal.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// Job is one submission, or one task of an array.
type Job struct {
	ID    ID         `json:"id"`
	Array *ArrayTask `json:"array,omitempty"` // nil: not part of an array
	Spec  *Spec      `json:"spec"`            // shared and never written after submission

	State   State    `json:"state"`
	Flags   Flags    `json:"flags,omitempty"`
	Attempt uint32   `json:"attempt"` // attempts begun; 0 before the first
	Exit    ExitCode `json:"exit"`    // of the last attempt; meaningful in final states

	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"` // the gang's common start in the last attempt
	Ended     time.Time `json:"ended,omitzero"`
}

// Name is how the job is shown: "7", or "7_3" for task 3 of array 7.
func (j *Job) Name() string {
	if j.Array == nil {
		return j.ID.String()
	}
	return fmt.Sprintf("%d_%d", j.Array.Job, j.Array.Index)
}

// Set moves the job to another state if the table allows it by that cause.
func (j *Job) Set(to State, by Cause) error {
	if err := Check(j.State, to, by); err != nil {
		return fmt.Errorf("job %s: %w", j.Name(), err)
	}
	j.State = to
	return nil
}

// ArrayTask places a job in an array. Index is the task's; the others describe
// the array as it was submitted.
type ArrayTask struct {
	Job        ID     `json:"job"` // the array's number
	Index      uint32 `json:"index"`
	Count      uint32 `json:"count"`
	Min        uint32 `json:"min"`
	Max        uint32 `json:"max"`
	Step       uint32 `json:"step"`
	MaxRunning uint32 `json:"max_running,omitempty"` // 0: no limit
}

// ExitCode is how a process ended: an exit status, or a signal.
type ExitCode struct {
	Status int `json:"status"`
	Signal int `json:"signal,omitempty"`
}

// OutOfMemoryExit is the exit code of a job of which the kernel ended processes at the memory
// limit, whatever its script made of that: Slurm's 0:125.
var OutOfMemoryExit = ExitCode{Signal: 125}

// OK reports whether the process ended with exit 0.
func (e ExitCode) OK() bool { return e == ExitCode{} }

// Shell is the number that a shell reports: the status, or 128 + signal; of OutOfMemoryExit
// that of SIGKILL, by which the kernel ends processes.
func (e ExitCode) Shell() int {
	if e == OutOfMemoryExit {
		return 128 + 9
	}
	if e.Signal != 0 {
		return 128 + e.Signal
	}
	return e.Status
}

// String is "exit 1", "signal 9" or "out of memory".
func (e ExitCode) String() string {
	if e == OutOfMemoryExit {
		return "out of memory"
	}
	if e.Signal != 0 {
		return fmt.Sprintf("signal %d", e.Signal)
	}
	return fmt.Sprintf("exit %d", e.Status)
}
