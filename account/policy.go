package account

import (
	"time"

	"github.com/coxswain-sched/coxswain/resource"
)

// Policy is all rules of a site. It is not written after it was set. The zero value
// is first come, first served by the jobs' own priorities, without limits.
type Policy struct {
	Priority   Weights     `json:"priority,omitzero" yaml:"priority,omitempty" doc:"how much each factor counts for a job's place in the queue"`
	FairShare  FairShare   `json:"fair_share,omitzero" yaml:"fair_share,omitempty" doc:"how past usage counts"`
	Backfill   Backfill    `json:"backfill,omitzero" yaml:"backfill,omitempty" doc:"how jobs behind the head are let past it"`
	Preemption Preemption  `json:"preemption,omitzero" yaml:"preemption,omitempty" doc:"who may take running jobs' place, and how"`
	Accounts   []Account   `json:"accounts,omitempty" yaml:"accounts,omitempty" doc:"the tree of accounts; each names its parent"`
	QOS        []QOS       `json:"qos,omitempty" yaml:"qos,omitempty" doc:"named limits, priorities and rights"`
	Partitions []Partition `json:"partitions,omitempty" yaml:"partitions,omitempty" doc:"rules of partitions; their nodes stand in the server's configuration"`
	Flavors    []Flavor    `json:"flavors,omitempty" yaml:"flavors,omitempty" doc:"kinds of node that quotas tell apart"`
	Licenses   []License   `json:"licenses,omitempty" yaml:"licenses,omitempty" doc:"what is counted for the whole site (sbatch --licenses)"`
}

// Duration is a time.Duration that front ends write as 90s, 5m, 2h30m or 30d.
type Duration time.Duration

// TRES is an amount of each of several countable things, by the names of
// TRESNames or "gpu:TYPE" and "license/NAME". A name that is missing is not
// limited, or weighs nothing. Units: cpu in thousandths of a CPU, memory and disk in
// bytes, gpu and gpu:TYPE in thousandths of a device, node, billing and licences by
// number; in minutes of these where a field says so.
type TRES map[string]resource.Amount

// Weights are the factors of the multifactor priority (scheduling.md 1.1). Each
// factor is between 0 and 1, its weight says how much that is in points.
type Weights struct {
	Age         uint32            `json:"age,omitempty" yaml:"age,omitempty"`
	Association uint32            `json:"association,omitempty" yaml:"association,omitempty"`
	FairShare   uint32            `json:"fair_share,omitempty" yaml:"fair_share,omitempty"`
	JobSize     uint32            `json:"job_size,omitempty" yaml:"job_size,omitempty"`
	Partition   uint32            `json:"partition,omitempty" yaml:"partition,omitempty"`
	QOS         uint32            `json:"qos,omitempty" yaml:"qos,omitempty"`
	TRES        map[string]uint32 `json:"tres,omitempty" yaml:"tres,omitempty"`
	MaxAge      Duration          `json:"max_age,omitempty" yaml:"max_age,omitempty"` // 0: 7 days
	FavorSmall  bool              `json:"favor_small,omitempty" yaml:"favor_small,omitempty"`
	Flags       []string          `json:"flags,omitempty" yaml:"flags,omitempty"` // Slurm's PriorityFlags, lower case: accrue_always, small_relative_to_time, no_normal_assoc, …
}

// Zero reports whether no factor counts.
func (w *Weights) Zero() bool {
	return w.Age|w.Association|w.FairShare|w.JobSize|w.Partition|w.QOS == 0 && len(w.TRES) == 0
}

// FairShare says how usage is kept.
type FairShare struct {
	HalfLife Duration `json:"half_life,omitempty" yaml:"half_life,omitempty"` // 0: 7 days; negative: usage does not decay
	Period   Duration `json:"period,omitempty" yaml:"period,omitempty"`       // between two recalculations; 0: 5 minutes
	Reset    string   `json:"reset,omitempty" yaml:"reset,omitempty"`         // "", "daily", "weekly", "monthly", "quarterly", "yearly"
	Ties     string   `json:"ties,omitempty" yaml:"ties,omitempty"`           // of sibling accounts: "" as documented, "slurm" as slurmctld does
}

// Backfill says how far ahead is planned.
type Backfill struct {
	Reservations int  `json:"reservations,omitempty" yaml:"reservations,omitempty"` // the head and so many more get a start; 0: the head alone
	Depth        int  `json:"depth,omitempty" yaml:"depth,omitempty"`               // kinds of job tried in one pass; 0: 500
	Off          bool `json:"off,omitempty" yaml:"off,omitempty"`                   // strictly in order
}

// Preemption says whether waiting jobs may stop running ones.
type Preemption struct {
	By     []string `json:"by,omitempty" yaml:"by,omitempty"`         // "qos", "partition", "priority", "quota"; empty: nobody
	Mode   string   `json:"mode,omitempty" yaml:"mode,omitempty"`     // "requeue" (default), "cancel", "suspend", "checkpoint"
	Exempt Duration `json:"exempt,omitempty" yaml:"exempt,omitempty"` // a job that ran shorter is left alone
	Grace  Duration `json:"grace,omitempty" yaml:"grace,omitempty"`   // between the warning and the end
	Defrag string   `json:"defrag,omitempty" yaml:"defrag,omitempty"` // "" off, "ask", "automatic"
}

// Account is a node of the tree. An account with users is what Slurm calls an
// account with its user associations; one with a quota is Kueue's queue, and one
// with children that have quotas is a cohort.
type Account struct {
	Name     string   `json:"name" yaml:"name"`
	Parent   string   `json:"parent,omitempty" yaml:"parent,omitempty"` // empty: the root
	Note     string   `json:"note,omitempty" yaml:"note,omitempty"`
	Shares   Shares   `json:"shares,omitempty" yaml:"shares,omitempty"`
	Priority uint32   `json:"priority,omitempty" yaml:"priority,omitempty"` // of the association
	QOS      []string `json:"qos,omitempty" yaml:"qos,omitempty"`           // that may be used; empty: the parent's, or all
	Default  string   `json:"default_qos,omitempty" yaml:"default_qos,omitempty"`
	Limits   Limits   `json:"limits,omitzero" yaml:"limits,omitempty"`
	Quota    *Quota   `json:"quota,omitempty" yaml:"quota,omitempty"`
	Users    []User   `json:"users,omitempty" yaml:"users,omitempty"` // empty in an account without children: everybody
}

// Shares is a part of what the siblings share. 0: 1 share; ParentShares: none of
// its own (Slurm's fairshare=parent); NoShares: none at all.
type Shares int64

// Shares with a meaning of their own.
const (
	ParentShares Shares = -1
	NoShares     Shares = -2
)

// User is somebody's association with an account. Its limits are for his jobs
// there.
type User struct {
	Name     string   `json:"name" yaml:"name"`
	Default  bool     `json:"default,omitempty" yaml:"default,omitempty"` // his account if he names none
	Shares   Shares   `json:"shares,omitempty" yaml:"shares,omitempty"`
	Priority uint32   `json:"priority,omitempty" yaml:"priority,omitempty"`
	QOS      []string `json:"qos,omitempty" yaml:"qos,omitempty"`
	Limits   Limits   `json:"limits,omitzero" yaml:"limits,omitempty"`
}

// Limits of an association or QOS; nil and a missing name: not limited here. What
// begins with Group is for all jobs of the account and the accounts below it, or of
// the QOS, together.
type Limits struct {
	Group           TRES      `json:"group,omitempty" yaml:"group,omitempty"`                             // GrpTRES: held by running jobs
	GroupMinutes    TRES      `json:"group_minutes,omitempty" yaml:"group_minutes,omitempty"`             // GrpTRESMins: used, decayed
	GroupRunMinutes TRES      `json:"group_run_minutes,omitempty" yaml:"group_run_minutes,omitempty"`     // GrpTRESRunMins: that running jobs may still use
	GroupJobs       *int64    `json:"group_jobs,omitempty" yaml:"group_jobs,omitempty"`                   // running
	GroupSubmitted  *int64    `json:"group_submitted,omitempty" yaml:"group_submitted,omitempty"`         // running and waiting
	GroupAccruing   *int64    `json:"group_accruing,omitempty" yaml:"group_accruing,omitempty"`           // waiting and growing older
	GroupWall       *Duration `json:"group_wall,omitempty" yaml:"group_wall,omitempty"`                   // used wall time, decayed
	Job             TRES      `json:"job,omitempty" yaml:"job,omitempty"`                                 // MaxTRESPerJob
	Node            TRES      `json:"node,omitempty" yaml:"node,omitempty"`                               // MaxTRESPerNode
	JobMinutes      TRES      `json:"job_minutes,omitempty" yaml:"job_minutes,omitempty"`                 // MaxTRESMinsPerJob
	Jobs            *int64    `json:"jobs,omitempty" yaml:"jobs,omitempty"`                               // MaxJobs: running, of one association
	Submitted       *int64    `json:"submitted,omitempty" yaml:"submitted,omitempty"`                     // MaxSubmitJobs
	Accruing        *int64    `json:"accruing,omitempty" yaml:"accruing,omitempty"`                       // MaxJobsAccrue
	Wall            *Duration `json:"wall,omitempty" yaml:"wall,omitempty"`                               // MaxWall of a job
	User            TRES      `json:"user,omitempty" yaml:"user,omitempty"`                               // QOS: MaxTRESPerUser
	Account         TRES      `json:"account,omitempty" yaml:"account,omitempty"`                         // QOS: MaxTRESPerAccount
	UserRunMinutes  TRES      `json:"user_run_minutes,omitempty" yaml:"user_run_minutes,omitempty"`       // QOS
	AcctRunMinutes  TRES      `json:"account_run_minutes,omitempty" yaml:"account_run_minutes,omitempty"` // QOS
	UserJobs        *int64    `json:"user_jobs,omitempty" yaml:"user_jobs,omitempty"`                     // QOS
	AcctJobs        *int64    `json:"account_jobs,omitempty" yaml:"account_jobs,omitempty"`               // QOS
	UserSubmitted   *int64    `json:"user_submitted,omitempty" yaml:"user_submitted,omitempty"`           // QOS
	AcctSubmitted   *int64    `json:"account_submitted,omitempty" yaml:"account_submitted,omitempty"`     // QOS
	UserAccruing    *int64    `json:"user_accruing,omitempty" yaml:"user_accruing,omitempty"`             // QOS
	AcctAccruing    *int64    `json:"account_accruing,omitempty" yaml:"account_accruing,omitempty"`       // QOS
	Least           TRES      `json:"least,omitempty" yaml:"least,omitempty"`                             // QOS: MinTRESPerJob
	LeastPriority   *uint32   `json:"least_priority,omitempty" yaml:"least_priority,omitempty"`           // MinPrioThreshold
}

// QOS is a named set of limits and rights that a job asks for.
type QOS struct {
	Name           string   `json:"name" yaml:"name"`
	Note           string   `json:"note,omitempty" yaml:"note,omitempty"`
	Priority       uint32   `json:"priority,omitempty" yaml:"priority,omitempty"`
	Preempts       []string `json:"preempts,omitempty" yaml:"preempts,omitempty"` // QOS whose jobs may be stopped for its jobs
	PreemptMode    string   `json:"preempt_mode,omitempty" yaml:"preempt_mode,omitempty"`
	Grace          Duration `json:"grace,omitempty" yaml:"grace,omitempty"`
	Exempt         Duration `json:"exempt,omitempty" yaml:"exempt,omitempty"`
	UsageFactor    *float64 `json:"usage_factor,omitempty" yaml:"usage_factor,omitempty"` // nil: 1
	UsageThreshold *float64 `json:"usage_threshold,omitempty" yaml:"usage_threshold,omitempty"`
	LimitFactor    *float64 `json:"limit_factor,omitempty" yaml:"limit_factor,omitempty"`
	Limits         Limits   `json:"limits,omitzero" yaml:"limits,omitempty"`
	Flags          []string `json:"flags,omitempty" yaml:"flags,omitempty"` // deny_on_limit, no_decay, no_reserve, over_part_qos, partition_time_limit, …
}

// Partition is the rules of a partition; its nodes are not part of the policy.
type Partition struct {
	Name        string             `json:"name" yaml:"name"`
	Tier        int32              `json:"tier,omitempty" yaml:"tier,omitempty"`         // larger is considered first (Slurm's PriorityTier; 0: 1)
	Priority    uint32             `json:"priority,omitempty" yaml:"priority,omitempty"` // PriorityJobFactor
	QOS         string             `json:"qos,omitempty" yaml:"qos,omitempty"`           // limits for all jobs in it
	PreemptMode string             `json:"preempt_mode,omitempty" yaml:"preempt_mode,omitempty"`
	Grace       Duration           `json:"grace,omitempty" yaml:"grace,omitempty"`
	MaxTime     Duration           `json:"max_time,omitempty" yaml:"max_time,omitempty"` // 0: none
	MaxNodes    int                `json:"max_nodes,omitempty" yaml:"max_nodes,omitempty"`
	MinNodes    int                `json:"min_nodes,omitempty" yaml:"min_nodes,omitempty"`
	AllowAccts  []string           `json:"allow_accounts,omitempty" yaml:"allow_accounts,omitempty"`
	DenyAccts   []string           `json:"deny_accounts,omitempty" yaml:"deny_accounts,omitempty"`
	AllowQOS    []string           `json:"allow_qos,omitempty" yaml:"allow_qos,omitempty"`
	DenyQOS     []string           `json:"deny_qos,omitempty" yaml:"deny_qos,omitempty"`
	Billing     map[string]float64 `json:"billing,omitempty" yaml:"billing,omitempty"`           // TRESBillingWeights: cpu by CPU, memory by GiB, gpu by device
	BillingRule string             `json:"billing_rule,omitempty" yaml:"billing_rule,omitempty"` // "" sum, "max" (MAX_TRES), "max_gres"
}

// License is a number of things of which the site has so many.
type License struct {
	Name  string `json:"name" yaml:"name"`
	Count int64  `json:"count" yaml:"count"`
}
