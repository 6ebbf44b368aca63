package slurmfmt

import (
	"strconv"
	"strings"
)

// JobIDForms lists the forms of a job id, for messages.
const JobIDForms = "123, 123_4, 123_[1-9%3], 123+1, 123.0, 123.batch"

// JobID names a job, some tasks of an array, a component of a heterogeneous job,
// or a step of any of them.
type JobID struct {
	Job   uint64
	Tasks string // array indices as written inside the brackets; empty: the job itself
	Het   int    // component, -1 if none is named
	Step  string // "0", "batch", "extern"; empty: no step
}

// Task returns the array index if exactly one is named.
func (id JobID) Task() (uint32, bool) {
	n, err := strconv.ParseUint(id.Tasks, 10, 32)
	return uint32(n), err == nil
}

// String prints the id in the form that ParseJobID reads.
func (id JobID) String() string {
	s := strconv.FormatUint(id.Job, 10)
	if _, one := id.Task(); one {
		s += "_" + id.Tasks
	} else if id.Tasks != "" {
		s += "_[" + id.Tasks + "]"
	}
	if id.Het >= 0 {
		s += "+" + strconv.Itoa(id.Het)
	}
	if id.Step != "" {
		s += "." + id.Step
	}
	return s
}

// ParseJobID reads one job id. The indices of "123_[…]" must be an array set.
func ParseJobID(s string) (JobID, error) {
	id := JobID{Het: -1}
	bad := textError(s, "is not a job id (forms: %s)", JobIDForms)
	rest, step, hasStep := strings.Cut(s, ".")
	if hasStep {
		if _, ok := parseDigits(step); !ok && step != "batch" && step != "extern" && step != "interactive" {
			return id, bad
		}
		id.Step = step
	}
	rest, het, hasHet := strings.Cut(rest, "+")
	if hasHet {
		n, ok := parseDigits(het)
		if !ok || n > 1<<20 {
			return id, bad
		}
		id.Het = int(n)
	}
	job, tasks, hasTasks := strings.Cut(rest, "_")
	n, ok := parseDigits(job)
	if !ok || n == 0 {
		return id, bad
	}
	id.Job = uint64(n)
	if !hasTasks {
		return id, nil
	}
	inner, open := strings.CutPrefix(tasks, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if open != closed {
		return id, bad
	}
	a, err := ParseArray(inner, MaxArraySize)
	if err != nil {
		return id, bad
	}
	if !open && (len(a.Ranges) != 1 || !allDigits(inner)) {
		return id, bad
	}
	id.Tasks = inner
	return id, nil
}
