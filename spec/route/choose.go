package route

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Pool is what advise knows of a pool.
type Pool struct {
	Name   string
	Engine string
	Able   engine.Abilities
}

// Word is what one rule said of a pool: its name, what it saw and what follows.
type Word struct{ Rule, Saw, Then string }

// Choice is a pool and the trace of the rules that led to it.
type Choice struct {
	Pool  Pool
	Rules []Word
}

// Choose returns the first pool, in the given order, that can run the job. If
// none can, the error is fault.Unsupported and says why each cannot.
func Choose(spec *job.Spec, pools []Pool) (Choice, error) {
	var rules []Word
	for _, p := range pools {
		if spec.Coupled() && p.Able.Gang != engine.GangStrict {
			rules = append(rules, Word{"coupled-needs-gang", fmt.Sprintf("pool %s starts tasks one by one", p.Name), "not there"})
			continue
		}
		if spec.Coupled() {
			rules = append(rules, Word{"coupled-needs-gang", fmt.Sprintf("pool %s starts a gang whole or not at all", p.Name), "possible"})
		}
		if len(pools) == 1 {
			rules = append(rules, Word{"only-pool", "no other pool is configured", p.Engine})
		} else {
			rules = append(rules, Word{"first-able-pool", fmt.Sprintf("%d pools are configured, in this order", len(pools)), p.Engine})
		}
		return Choice{p, rules}, nil
	}
	err := fault.New(fault.Unsupported, "no pool can run this job whole")
	for _, r := range rules {
		err = fault.New(fault.Unsupported, "%w; %s", err.Err, r.Saw)
	}
	return Choice{Rules: rules}, err
}
