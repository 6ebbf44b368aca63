// Package advise decides where work belongs: which pool, and so which engine, and
// says by which rules.
//
// It is a pure function of facts about the work and about the pools. Today it
// knows what every engine must be able to do; the rules about runtimes and
// add-ons, and reading the facts from a file, are not built yet.
package advise

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
)

// Pool is what advise knows of a pool.
type Pool struct {
	Name   string
	Engine string
	Able   engine.Abilities
}

// Rule is one rule that spoke: its name, what it saw and what follows.
type Rule struct{ Name, Saw, Then string }

// Choice is a pool and the trace of the rules that led to it.
type Choice struct {
	Pool  Pool
	Rules []Rule
}

// Choose returns the first pool, in the given order, that can run the job. If
// none can, the error is fault.Unsupported and says why each cannot.
func Choose(spec *job.Spec, pools []Pool) (Choice, error) {
	var rules []Rule
	for _, p := range pools {
		if spec.Coupled() && p.Able.Gang != engine.GangStrict {
			rules = append(rules, Rule{"coupled-needs-gang", fmt.Sprintf("pool %s starts tasks one by one", p.Name), "not there"})
			continue
		}
		if spec.Coupled() {
			rules = append(rules, Rule{"coupled-needs-gang", fmt.Sprintf("pool %s starts a gang whole or not at all", p.Name), "possible"})
		}
		if len(pools) == 1 {
			rules = append(rules, Rule{"only-pool", "no other pool is configured", p.Engine})
		} else {
			rules = append(rules, Rule{"first-able-pool", fmt.Sprintf("%d pools are configured, in this order", len(pools)), p.Engine})
		}
		return Choice{p, rules}, nil
	}
	err := fault.New(fault.Unsupported, "no pool can run this job whole")
	for _, r := range rules {
		err = fault.New(fault.Unsupported, "%w; %s", err.Err, r.Saw)
	}
	return Choice{Rules: rules}, err
}
