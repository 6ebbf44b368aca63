package admission

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// resolveLevels puts numbers in the place of names of levels of the topology, and refuses a
// name that the site does not have. "leaf" is the innermost one everywhere.
func (r *Rules) resolveLevels(s *job.Spec) error {
	if len(s.Levels) == 0 {
		return nil
	}
	unknown := s.ResolveLevels(func(name string) (int, bool) {
		i := slices.Index(r.Levels, name)
		return i + 1, i >= 0
	})
	switch {
	case unknown == "":
		return nil
	case len(r.Levels) == 0:
		return fault.New(fault.Invalid, "within: %s: the nodes here stand in no topology", unknown).Advise("leave it out, or write a number: %s", "1 is the outermost level")
	}
	return fault.New(fault.Invalid, "within: %s: there is no such level of the topology", unknown).
		Advise("%s", listChoices("levels here, outermost first", r.Levels))
}
