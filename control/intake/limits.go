package intake

import (
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/rlimit"
)

// setLimits puts the submitter's resource limits that the job gets where sbatch puts them, and
// engines look for them. A script and a command get those that --propagate names, else the usual
// ones of the site's rules, else all, as under Slurm. A native text gets none: it says itself what its job needs. Nothing runs in an allocation, whose steps get the limits of the srun that starts them.
func (r *Request) setLimits(given []string, usual string) error {
	limits := make([]rlimit.Limit, len(given))
	for i, text := range given {
		l, err := rlimit.Parse(text)
		if err != nil {
			return fault.New(fault.Invalid, "limits: %w", err).Advise("write NAME=VALUE, for example NOFILE=1024")
		}
		limits[i] = l
	}
	if r.Text.Form == api.FormAllocation || r.Text.Form == api.FormNative || r.Text.Form == api.FormManifest {
		limits = nil
	}
	value, chosen := r.Spec.Source.Given["propagate"]
	if !chosen {
		value = usual
	}
	choice, err := rlimit.ParsePropagate(value)
	if err != nil {
		return fault.New(fault.Invalid, "--propagate=%s: %w", value, err).Advise("write ALL, NONE or names such as STACK,NOFILE")
	}
	r.Env = choice.Apply(r.Env, limits)
	return nil
}
