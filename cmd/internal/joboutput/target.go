package joboutput

import (
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Target is what 7, 7_3.5 or 7.0.5 names.
type Target struct {
	Job        string
	Step, Rank *int // nil: not named
}

// ParseTarget reads the name of a job, of a rank of its last step, or of a rank of a step.
func ParseTarget(s string) (Target, error) {
	parts := strings.Split(s, ".")
	t := Target{Job: parts[0]}
	wrong := fault.New(fault.Invalid, "%q names no job, rank or step", s).Advise("7, 7.RANK, 7.STEP.RANK; 7_3 for a task of an array")
	if t.Job == "" || len(parts) > 3 {
		return t, wrong
	}
	var numbers []*int
	for _, p := range parts[1:] {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return t, wrong
		}
		numbers = append(numbers, &n)
	}
	switch len(numbers) {
	case 1:
		t.Rank = numbers[0]
	case 2:
		t.Step, t.Rank = numbers[0], numbers[1]
	}
	return t, nil
}
