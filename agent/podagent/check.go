package podagent

import (
	"path/filepath"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Check reports why a crew cannot work by a plan. What it refuses the driver must refuse
// before.
func (p *Plan) Check() error {
	refuse := func(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }
	switch {
	case p.Job == nil || p.Job.Spec == nil || len(p.Members) == 0:
		return refuse("a job and members are needed")
	case p.Job.Spec.Elastic():
		return fault.New(fault.Unsupported, "job %s is elastic: a crew neither grows nor shrinks", p.Job.ID)
	case p.Job.Spec.Program.Kind == job.Batch && len(p.Script) == 0:
		return refuse("the script of job %s is empty", p.Job.ID)
	case p.Job.Spec.Program.Kind == job.Direct && len(p.Job.Spec.Program.Args) == 0:
		return refuse("job %s has no command", p.Job.ID)
	case p.Checkpoint != "" && !filepath.IsAbs(p.Checkpoint):
		return refuse("the directory for checkpoints %q is not absolute", p.Checkpoint)
	case p.Ready <= 0:
		return refuse("ready is %s: it has to be a span of time", p.Ready)
	}
	var claimed []string
	for _, c := range p.Claims {
		if !slices.Contains(claimed, c.Node) {
			claimed = append(claimed, c.Node)
		}
	}
	if len(claimed) != len(p.Members) {
		return refuse("there are claims on %d members and %d members", len(claimed), len(p.Members))
	}
	for i, m := range p.Members {
		switch {
		case m.Name == "":
			return refuse("member %d has no name", i)
		case claimed[i] != m.Name:
			return refuse("member %d is %s, and its claim is on %s: members stand in the order of the claims", i, m.Name, claimed[i])
		case m.Host == "" && len(p.Members) > 1:
			return refuse("member %s has no host", m.Name)
		}
	}
	return nil
}
