package supervise

import (
	"github.com/coxswain-sched/coxswain/agent/ownlimit"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rlimit"
)

// programLimits are the submitter's limits that a program has to be given. The srun of a direct
// program passes them on to its tasks. On the node itself a limit that the program has anyway is
// left out, and so nearly every job starts without one more program; in a container the runtime's
// limits are not known here.
func (s *supervisor) programLimits(p *program) []barrier.Rlimit {
	spec := &s.launch.Job.Spec.Program
	if spec.Kind == job.BareAllocation || spec.Client != "" {
		return nil
	}
	limits := rlimit.OfEnvironment(p.base)
	if p.image == "" {
		limits = ownlimit.Bind(limits)
	}
	return barrier.Rlimits(limits)
}
