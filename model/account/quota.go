package account

import "github.com/coxswain-sched/coxswain/model/resource"

// Flavor is a kind of node that quotas tell apart: nodes with all of these features
// and, if a type is named, with such devices (Kueue's ResourceFlavor).
type Flavor struct {
	Name     string   `json:"name" yaml:"name" doc:"name, as quotas use it"`
	Features []string `json:"features,omitempty" yaml:"features,omitempty" doc:"features that its nodes have, all of them"`
	GPUType  string   `json:"gpu_type,omitempty" yaml:"gpu_type,omitempty" doc:"type of the GPUs of its nodes"`
}

// Quota is what an account may hold. It is guaranteed what is nominal and may
// borrow what its cohort does not use (Kueue's page cluster_queue, KEP-79). An account with a quota
// is Kueue's ClusterQueue, one whose children have quotas a Cohort; it may be both.
//
// The words of Kueue that each field stands for are named beside it. Their zero
// values are Kueue's defaults.
type Quota struct {
	Flavors []FlavorQuota `json:"flavors,omitempty" yaml:"flavors,omitempty" doc:"amounts of each flavour, in the order in which the scheduler tries them"`                                                                                                                                                             // in the order in which they are tried; those with the same resources are alternatives (a resourceGroup)
	Order   QueueOrder    `json:"order,omitempty" yaml:"order,omitempty" enum:"strict,best-effort" doc:"strict: no job of the account passes its first one (StrictFIFO); best-effort: later jobs pass a job that cannot start (BestEffortFIFO); left out: as the nearest account above that sets it, else best-effort"` // queueingStrategy
	Weight  *float64      `json:"weight,omitempty" yaml:"weight,omitempty" doc:"weight of its dominant share; 0: it borrows last; left out: 1"`                                                                                                                                                                         // fairSharing.weight; nil: 1; 0: borrows last and is reclaimed from first

	// Fair orders the queues of a tree by dominant share and reclaims by it. It is a
	// property of the tree and stands at its root.
	Fair       bool       `json:"fair,omitempty" yaml:"fair,omitempty" doc:"at the root of a tree: the dominant share decides who goes first and whose jobs are stopped"`
	Strategies []Strategy `json:"strategies,omitempty" yaml:"strategies,omitempty" enum:"final-share,initial-share" doc:"at the root of a tree: which share decides whether jobs may be stopped; left out: final-share, then initial-share"` // fairSharing.preemptionStrategies, at the root; empty: final-share, then initial-share

	Borrow  FallOver   `json:"when_borrow,omitempty" yaml:"when_borrow,omitempty" enum:"stop,next" doc:"if a flavour fits by borrowing: stop takes it, next tries whether the next flavour is better; left out: stop"`    // flavorFungibility.whenCanBorrow; empty: "stop"
	Preempt FallOver   `json:"when_preempt,omitempty" yaml:"when_preempt,omitempty" enum:"stop,next" doc:"if a flavour fits by preemption: stop takes it, next tries whether the next flavour is better; left out: next"` // flavorFungibility.whenCanPreempt; empty: "next"
	Full    FallOver   `json:"when_full,omitempty" yaml:"when_full,omitempty" enum:"stop,next" doc:"if a flavour has quota but no free nodes: next takes the next flavour that has both, stop waits; left out: next"`     // of this project alone
	Prefer  Preference `json:"prefer,omitempty" yaml:"prefer,omitempty" enum:"preempt" doc:"if no flavour is free: preempt prefers preemption to borrowing; left out: borrowing is preferred"`                            // flavorFungibility.preference

	Within      Victims `json:"within,omitempty" yaml:"within,omitempty" enum:"lower-priority,lower-or-newer" doc:"which jobs of this account its other jobs may stop; left out: none"`                      // preemption.withinClusterQueue: of the account itself
	Reclaim     Victims `json:"reclaim,omitempty" yaml:"reclaim,omitempty" enum:"lower-priority,any" doc:"which jobs of accounts that borrow may be stopped to get the nominal amount back; left out: none"` // preemption.reclaimWithinCohort: of others that borrow
	Borrowing   Victims `json:"borrowing,omitempty" yaml:"borrowing,omitempty" enum:"lower-priority" doc:"which jobs of other accounts may be stopped in order to borrow; left out: none"`                   // preemption.borrowWithinCohort.policy: of others, to borrow itself: never or lower-priority
	MaxPriority *int64  `json:"max_priority,omitempty" yaml:"max_priority,omitempty" doc:"while borrowing, jobs above this priority are not stopped"`                                                        // borrowWithinCohort.maxPriorityThreshold: no victims above it while borrowing
}

// QueueOrder says whether jobs of a queue may pass each other. It is a property of a tree,
// said at its root, from which accounts below may differ: Kueue lets each of them.
type QueueOrder string

// The orders.
const (
	OrderAbove QueueOrder = ""            // as the nearest account above that says; best-effort if none does
	BestEffort QueueOrder = "best-effort" // a job that cannot start is passed (BestEffortFIFO)
	Strict     QueueOrder = "strict"      // nothing of the queue passes its first job (StrictFIFO)
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
	Flavor    string          `json:"flavor" yaml:"flavor" doc:"name of the flavour"`
	Resources []ResourceQuota `json:"resources" yaml:"resources" doc:"amounts of each resource"`
}

// ResourceQuota is the amounts of one resource, by the names and in the units of
// TRES: cpu, memory, disk, gpu, node, job (1 for each job), task, or a named
// resource. Types of device are told apart by flavours, not by resources.
type ResourceQuota struct {
	Name    string           `json:"name" yaml:"name" doc:"cpu, memory, disk, gpu, node, job, task, or a resource of the site"`
	Nominal resource.Amount  `json:"nominal" yaml:"nominal" doc:"guaranteed amount"`
	Borrow  *resource.Amount `json:"borrow,omitempty" yaml:"borrow,omitempty" doc:"most that it may borrow above the nominal amount; left out: all there is"` // at most above the nominal; nil: all there is
	Lend    *resource.Amount `json:"lend,omitempty" yaml:"lend,omitempty" doc:"most that it lends to others; left out: all of it"`                            // at most to others; nil: all of it
}
