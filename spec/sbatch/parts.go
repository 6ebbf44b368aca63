package sbatch

import (
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// ParseDependency reads the value of --dependency. The error is a *slurmfmt.Error.
func ParseDependency(s string) (job.Dependency, error) {
	d, err := parseDependency(s)
	if err != nil {
		return job.Dependency{}, err
	}
	return d, nil
}

// ParseConstraint reads the value of --constraint. The error is a *slurmfmt.Error.
func ParseConstraint(s string) (job.Constraint, error) {
	c, at, n, err := parseConstraint(s)
	if err != nil {
		return c, &slurmfmt.Error{Text: s, Offset: at, Len: n, Reason: err.Error()}
	}
	return c, nil
}
