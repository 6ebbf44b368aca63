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
// borrow what its cohort does not use (scheduling.md 1.11). An account with a quota
// is Kueue's ClusterQueue, one whose children have quotas a Cohort; it may be both.
//
// The words of Kueue that each field stands for are named beside it. Their zero
// values are Kueue's defaults.
type Quota struct {
	Flavors []FlavorQuota `json:"flavors,omitempty" yaml:"flavors,omitempty"` // in the order in which they are tried; those with the same resources are alternatives (a resourceGroup)
	Order   QueueOrder    `json:"order,omitempty" yaml:"order,omitempty"`     // queueingStrategy
	Weight  *float64      `json:"weight,omitempty" yaml:"weight,omitempty"`   // fairSharing.weight; nil: 1; 0: borrows last and is reclaimed from first

	// Fair orders the queues of a tree by dominant share and reclaims by it. It is a
	// property of the tree and stands at its root.
	Fair       bool       `json:"fair,omitempty" yaml:"fair,omitempty"`
	Strategies []Strategy `json:"strategies,omitempty" yaml:"strategies,omitempty"` // fairSharing.preemptionStrategies, at the root; empty: final-share, then initial-share

	Borrow  FallOver   `json:"when_borrow,omitempty" yaml:"when_borrow,omitempty"`   // flavorFungibility.whenCanBorrow; empty: "stop"
	Preempt FallOver   `json:"when_preempt,omitempty" yaml:"when_preempt,omitempty"` // flavorFungibility.whenCanPreempt; empty: "next"
	Prefer  Preference `json:"prefer,omitempty" yaml:"prefer,omitempty"`             // flavorFungibility.preference

	Within      Victims `json:"within,omitempty" yaml:"within,omitempty"`             // preemption.withinClusterQueue: of the account itself
	Reclaim     Victims `json:"reclaim,omitempty" yaml:"reclaim,omitempty"`           // preemption.reclaimWithinCohort: of others that borrow
	Borrowing   Victims `json:"borrowing,omitempty" yaml:"borrowing,omitempty"`       // preemption.borrowWithinCohort.policy: of others, to borrow itself: never or lower-priority
	MaxPriority *int64  `json:"max_priority,omitempty" yaml:"max_priority,omitempty"` // borrowWithinCohort.maxPriorityThreshold: no victims above it while borrowing
}

// QueueOrder says whether jobs of a queue may pass each other.
type QueueOrder string

// The orders.
const (
	BestEffort QueueOrder = ""       // a job that cannot start is passed (BestEffortFIFO)
	Strict     QueueOrder = "strict" // nothing of the queue passes its first job (StrictFIFO)
)

// FallOver says what happens where a flavour would do, but not for free.
type FallOver string

// What may happen.
const (
	StopHere   FallOver = "stop" // take it (MayStopSearch)
	NextFlavor FallOver = "next" // look whether the next one is better (TryNextFlavor)
)

// Preference orders flavours of which none is free.
type Preference string

// The preferences.
const (
	BorrowFirst  Preference = ""        // rather borrow than preempt (BorrowingOverPreemption)
	PreemptFirst Preference = "preempt" // rather preempt than borrow (PreemptionOverBorrowing)
)

// Victims says whose jobs may be stopped for a job of this account.
type Victims string

// Whose.
const (
	NoVictims     Victims = ""               // Never
	LowerPriority Victims = "lower-priority" // LowerPriority
	LowerOrNewer  Victims = "lower-or-newer" // LowerOrNewerEqualPriority; within the account alone
	AnyVictims    Victims = "any"            // Any; of others alone
)

// Strategy says when a share is too large to be left alone.
type Strategy string

// The strategies of fair sharing.
const (
	FinalShare   Strategy = "final-share"   // LessThanOrEqualToFinalShare: the victim's queue keeps at least the share that this one gets
	InitialShare Strategy = "initial-share" // LessThanInitialShare: the victim's queue has more than this one gets
)

// FlavorQuota is the amounts of one flavour.
type FlavorQuota struct {
	Flavor    string          `json:"flavor" yaml:"flavor"`
	Resources []ResourceQuota `json:"resources" yaml:"resources"`
}

// ResourceQuota is the amounts of one resource, by the names and in the units of
// TRES: cpu, memory, disk, gpu, node, job (1 for each job), task, or a named
// resource. Types of device are told apart by flavours, not by resources.
type ResourceQuota struct {
	Name    string           `json:"name" yaml:"name"`
	Nominal resource.Amount  `json:"nominal" yaml:"nominal"`
	Borrow  *resource.Amount `json:"borrow,omitempty" yaml:"borrow,omitempty"` // at most above the nominal; nil: all there is
	Lend    *resource.Amount `json:"lend,omitempty" yaml:"lend,omitempty"`     // at most to others; nil: all of it
}
