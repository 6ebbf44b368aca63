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
				p.fail(d, fmt.Errorf("of component %d contradicts %s: all components start together", i+1, old.show()),
					"say it once, before the first #SBATCH hetjob")
			default:
				p.warn(d, fmt.Sprintf("of component %d holds for the whole job: all components start together", i+1))
				whole.put(d)
			}
		}
		if d, ok := set.get("kill-on-invalid-dep"); ok && !whole.has("kill-on-invalid-dep") {
			whole.put(d)
		}
	}
	return whole
}

// compare warns where a later component of a heterogeneous job says something
// that holds for the job as a whole.
func (p *parser) compare(i int, first, set settings) {
	for d := range set.all() {
		if d.Plugin || d.opt.Status > OnSome || d.opt.Command || slices.Contains(ofComponent, d.Option) ||
			slices.Contains(lifted, d.Option) || d.Option == "time" || d.Option == "array" || d.Option == "kill-on-invalid-dep" {
			continue
		}
		old, ok := first.at(d.Option)
		switch {
		case ok && old.Option == d.Option && old.Value == d.Value:
		case ok:
			p.warn(d, fmt.Sprintf("of component %d is not used: the first component's holds for the whole job", i))
		default:
			p.warn(d, fmt.Sprintf("of component %d is not used: it is one per job, say it before the first #SBATCH hetjob", i))
		}
	}
}

// later settles what all components decide together.
func (p *parser) later(s *job.Spec, all []settings) {
	for i, set := range all[1:] {
		d, ok := set.get("time")
		if !ok {
			continue
		}
		t, err := slurmfmt.ParseTimeLimit(d.Value)
		if p.check(d, err) && longer(t, s.TimeLimit) && s.TimeLimit > 0 {
			p.warn(d, fmt.Sprintf("of component %d holds for the whole job: it is the longest", i+1))
			s.TimeLimit = t
		}
	}
	for _, set := range all {
		if d, ok := set.get("array"); ok && len(all) > 1 {
			p.fail(d, fmt.Errorf("cannot be combined with components (#SBATCH hetjob)"), "submit one heterogeneous job for each index")
		}
	}
}

// longer compares time limits; 0 is none.
func longer(a, b time.Duration) bool { return b != 0 && (a == 0 || a > b) }
