package account

import "fmt"

// PoolRules is the rules of a pool.
type PoolRules struct {
	Name        string             `json:"name" yaml:"name" doc:"name, as in --pool"`
	Billing     map[string]float64 `json:"billing,omitempty" yaml:"billing,omitempty" doc:"how much usage in the pool counts for each cpu, GiB of memory, gpu, …; a partition's own billing outranks it; left out: 1 for each cpu"`
	BillingRule string             `json:"billing_rule,omitempty" yaml:"billing_rule,omitempty" enum:"max,max_gres" doc:"how billing adds up, as for partitions"`
}

// PoolOf returns the rules of a pool, or nil.
func (p *Policy) PoolOf(name string) *PoolRules {
	for i := range p.Pools {
		if p.Pools[i].Name == name {
			return &p.Pools[i]
		}
	}
	return nil
}

// checkPools finds rules of pools that say nothing.
func (c *check) checkPools() {
	for i := range c.p.Pools {
		if x := &c.p.Pools[i]; x.BillingRule != "" && len(x.Billing) == 0 {
			c.addProblem(fmt.Sprintf("pools[%d].billing_rule", i), "give billing, or leave the rule out", "pool %s has a rule for billing and no billing", x.Name)
		}
	}
}
