package account

import "github.com/coxswain-sched/coxswain/resource"

// Flavor is a kind of node that quotas tell apart: nodes with all of these features
// and, if a type is named, with such devices (Kueue's ResourceFlavor).
type Flavor struct {
	Name     string   `json:"name" yaml:"name"`
	Features []string `json:"features,omitempty" yaml:"features,omitempty"`
	GPUType  string   `json:"gpu_type,omitempty" yaml:"gpu_type,omitempty"`
}

// Quota is what an account may hold. It is guaranteed what is nominal and may
// borrow what its cohort does not use (scheduling.md 1.11).
type Quota struct {
	Flavors   []FlavorQuota `json:"flavors,omitempty" yaml:"flavors,omitempty"`     // in the order in which they are tried
	Order     string        `json:"order,omitempty" yaml:"order,omitempty"`         // "" best effort, "strict": nothing passes its head
	Weight    *float64      `json:"weight,omitempty" yaml:"weight,omitempty"`       // for the dominant share; nil: 1
	FallOver  string        `json:"fall_over,omitempty" yaml:"fall_over,omitempty"` // "" borrow before the next flavour, "next-flavor": try the next before borrowing
	Reclaim   string        `json:"reclaim,omitempty" yaml:"reclaim,omitempty"`     // "" never, "lower-priority", "any"
	Within    string        `json:"within,omitempty" yaml:"within,omitempty"`       // preemption inside of the account: "" never, "lower-priority", "lower-or-newer"
	Borrowing string        `json:"borrowing,omitempty" yaml:"borrowing,omitempty"` // preemption while borrowing: "" never, "lower-priority"
}

// FlavorQuota is the amounts of one flavour.
type FlavorQuota struct {
	Flavor    string          `json:"flavor" yaml:"flavor"`
	Resources []ResourceQuota `json:"resources" yaml:"resources"`
}

// ResourceQuota is the amounts of one resource, in the units of TRES.
type ResourceQuota struct {
	Name    string           `json:"name" yaml:"name"`
	Nominal resource.Amount  `json:"nominal" yaml:"nominal"`
	Borrow  *resource.Amount `json:"borrow,omitempty" yaml:"borrow,omitempty"` // at most above the nominal; nil: all there is
	Lend    *resource.Amount `json:"lend,omitempty" yaml:"lend,omitempty"`     // at most to others; nil: all of it
}
