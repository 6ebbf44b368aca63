package sbatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// ofComponent are the options that each component of a heterogeneous job has for
// itself. All others are one per job.
var ofComponent = []string{
	"constraint", "contiguous", "cpus-per-gpu", "cpus-per-task", "distribution", "exclude", "exclusive", "gpus", "gpus-per-node",
	"gpus-per-socket", "gpus-per-task", "gres", "mem", "mem-per-cpu", "mem-per-gpu", "mincpus", "nodefile", "nodelist", "nodes", "ntasks",
	"ntasks-per-gpu", "ntasks-per-node", "ntasks-per-tres", "overcommit", "segment", "sockets-per-node", "spread-job", "switches", "tmp", "tres-per-task",
	"use-min-nodes",
}

// lifted are the options that hold for the whole job in whichever component they
// stand, because all components start together.
var lifted = []string{"begin", "deadline", "dependency", "hold"}

// wholeJob returns the options of the job as a whole: those of the first component
// and what other components say that nobody may miss.
func (p *parser) wholeJob(all []settings) settings {
	if len(all) == 1 {
		return all[0]
	}
	whole := slices.Clone(all[0])
	for i, set := range all[1:] {
		for _, name := range lifted {
			d, ok := set.get(name)
			old, had := whole.get(name)
			switch {
			case !ok || had && old.Value == d.Value:
			case had:
				p.failOption(d, fmt.Errorf("of component %d contradicts %s: all components start together", i+1, old.showOption()),
					"say it once, before the first #SBATCH hetjob")
			default:
				p.addWarning(d, fmt.Sprintf("of component %d holds for the whole job: all components start together", i+1))
				whole.setOption(d)
			}
		}
		if d, ok := set.get("kill-on-invalid-dep"); ok && !whole.hasOption("kill-on-invalid-dep") {
			whole.setOption(d)
		}
	}
	return whole
}

// compareComponent warns where a later component of a heterogeneous job says something
// that holds for the job as a whole.
func (p *parser) compareComponent(i int, first, set settings) {
	for d := range set.allOptions() {
		if d.Plugin || d.opt.Status > OnSome || d.opt.Command || slices.Contains(ofComponent, d.Option) ||
			slices.Contains(lifted, d.Option) || d.Option == "time" || d.Option == "array" || d.Option == "kill-on-invalid-dep" {
			continue
		}
		old, ok := first.slotValue(d.Option)
		switch {
		case ok && old.Option == d.Option && old.Value == d.Value:
		case ok:
			p.addWarning(d, fmt.Sprintf("of component %d is not used: the first component's holds for the whole job", i))
		default:
			p.addWarning(d, fmt.Sprintf("of component %d is not used: it is one per job, say it before the first #SBATCH hetjob", i))
		}
	}
}

// settleComponents settles what all components decide together.
func (p *parser) settleComponents(s *job.Spec, all []settings) {
	for i, set := range all[1:] {
		d, ok := set.get("time")
		if !ok {
			continue
		}
		t, err := slurmfmt.ParseTimeLimit(d.Value)
		if p.checkValue(d, err) && isLonger(t, s.TimeLimit) && s.TimeLimit > 0 {
			p.addWarning(d, fmt.Sprintf("of component %d holds for the whole job: it is the longest", i+1))
			s.TimeLimit = t
		}
	}
	for _, set := range all {
		if d, ok := set.get("array"); ok && len(all) > 1 {
			p.failOption(d, fmt.Errorf("cannot be combined with components (#SBATCH hetjob)"), "submit one heterogeneous job for each index")
		}
	}
}

// isLonger compares time limits; 0 is none.
func isLonger(a, b time.Duration) bool { return b != 0 && (a == 0 || a > b) }
