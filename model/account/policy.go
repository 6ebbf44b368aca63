package account

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Policy is all rules of a site. It is not written after it was set. The zero value
// is first come, first served by the jobs' own priorities, without limits.
type Policy struct {
	Priority   Weights     `json:"priority,omitzero" yaml:"priority,omitempty" doc:"how much each factor counts for a job's place in the queue"`
	FairShare  FairShare   `json:"fair_share,omitzero" yaml:"fair_share,omitempty" doc:"how past usage counts"`
	Backfill   Backfill    `json:"backfill,omitzero" yaml:"backfill,omitempty" doc:"how later jobs may start before the first one in the queue"`
	Batch      Batch       `json:"batch,omitzero" yaml:"batch,omitempty" doc:"defaults of batch scripts"`
	Preemption Preemption  `json:"preemption,omitzero" yaml:"preemption,omitempty" doc:"which jobs may stop running jobs, and how"`
	Accounts   []Account   `json:"accounts,omitempty" yaml:"accounts,omitempty" doc:"the tree of accounts; each account names its parent"`
	QOS        []QOS       `json:"qos,omitempty" yaml:"qos,omitempty" doc:"named limits, priorities and rights"`
	Partitions []Partition `json:"partitions,omitempty" yaml:"partitions,omitempty" doc:"rules of partitions; cox.yaml has their nodes"`
	Pools      []PoolRules `json:"pools,omitempty" yaml:"pools,omitempty" doc:"rules of pools; cox pool list has their names"`
	Flavors    []Flavor    `json:"flavors,omitempty" yaml:"flavors,omitempty" doc:"kinds of node that have quotas of their own"`
	Compat     string      `json:"compat,omitempty" yaml:"compat,omitempty" enum:"slurm,slurm-backfill" doc:"decide as another scheduler does: slurm, as slurmctld with select/cons_tres and sched/backfill; slurm-backfill, the same with the main scheduler deferred"`
	Placement  string      `json:"placement,omitempty" yaml:"placement,omitempty" enum:"tight,learned" doc:"which node a single-node job gets: tight, the one with the least left over; learned, the one whose remainder the usual jobs can use best; left out: tight until a job asks for a part of a GPU, then learned"`
	Topology   Topology    `json:"topology,omitzero" yaml:"topology,omitempty" doc:"how long jobs may wait for nodes that are close together"`
	Licenses   []License   `json:"licenses,omitempty" yaml:"licenses,omitempty" doc:"licences of the whole site (sbatch --licenses)"`

	Handover Handover `json:"handover,omitzero" yaml:"handover,omitempty" doc:"how many machines pools have, and when a machine goes from one pool to another on demand"`

	Reservations []Reservation `json:"reservations,omitempty" yaml:"reservations,omitempty" doc:"nodes kept for some jobs, or for no job, for a time"`

	Prices  Prices   `json:"prices,omitzero" yaml:"prices,omitempty" doc:"what an hour of a device, a CPU and a GiB of memory costs, for cox report cost"`
	Budgets []Budget `json:"budgets,omitempty" yaml:"budgets,omitempty" doc:"what accounts should not spend more than; nothing is refused"`
}

// Duration is a time.Duration that front ends write as 90s, 5m, 2h30m or 30d.
type Duration time.Duration

// TRES is an amount of each of several countable things, by the names of
// TRESNames or "gpu:TYPE" and "license/NAME". A name that is missing is not
// limited, or weighs nothing. Units: cpu in thousandths of a CPU, memory and disk in
// bytes, gpu and gpu:TYPE in thousandths of a device, node, billing and licences by
// number; in minutes of these where a field says so.
type TRES map[string]resource.Amount

// Weights are the factors of the multifactor priority (Slurm's priority_multifactor.html). Each
// factor is between 0 and 1, its weight says how much that is in points.
type Weights struct {
	Age         uint32            `json:"age,omitempty" yaml:"age,omitempty" doc:"weight of the time that a job has waited"`
	Association uint32            `json:"association,omitempty" yaml:"association,omitempty" doc:"weight of the priority of the account or user"`
	FairShare   uint32            `json:"fair_share,omitempty" yaml:"fair_share,omitempty" doc:"weight of having used less than the fair share"`
	JobSize     uint32            `json:"job_size,omitempty" yaml:"job_size,omitempty" doc:"weight of the number of nodes and CPUs asked for"`
	Partition   uint32            `json:"partition,omitempty" yaml:"partition,omitempty" doc:"weight of the priority of the partition"`
	QOS         uint32            `json:"qos,omitempty" yaml:"qos,omitempty" doc:"weight of the priority of the QOS"`
	TRES        map[string]uint32 `json:"tres,omitempty" yaml:"tres,omitempty" doc:"weights of the part of the partition's cpu, memory, gpu, … asked for"`
	MaxAge      Duration          `json:"max_age,omitempty" yaml:"max_age,omitempty" doc:"a longer wait adds no more priority; 0: 7 days"`
	FavorSmall  bool              `json:"favor_small,omitempty" yaml:"favor_small,omitempty" doc:"job_size favours jobs that ask for less"`
	Flags       []string          `json:"flags,omitempty" yaml:"flags,omitempty" enum:"accrue_always,depth_oblivious,no_fair_tree,no_normal_all,no_normal_assoc,no_normal_part,no_normal_qos,no_normal_tres,small_relative_to_time" doc:"Slurm's PriorityFlags"`
}

// Zero reports whether no factor counts.
func (w *Weights) Zero() bool {
	return w.Age|w.Association|w.FairShare|w.JobSize|w.Partition|w.QOS == 0 && len(w.TRES) == 0
}

// FairShare says how usage is kept.
type FairShare struct {
	HalfLife Duration `json:"half_life,omitempty" yaml:"half_life,omitempty" words:"never=-1" doc:"time after which past usage counts half; 0: 7 days; never: usage does not decay"` // 0: 7 days; negative: usage does not decay
	Period   Duration `json:"period,omitempty" yaml:"period,omitempty" doc:"time between two recalculations; 0: 5 minutes"`                                                          // between two recalculations; 0: 5 minutes
	Reset    string   `json:"reset,omitempty" yaml:"reset,omitempty" enum:"daily,weekly,monthly,quarterly,yearly" doc:"when all usage is forgotten; left out: never"`                // "", "daily", "weekly", "monthly", "quarterly", "yearly"
	Ties     string   `json:"ties,omitempty" yaml:"ties,omitempty" enum:"slurm" doc:"order of sibling accounts with equal shares: left out, as documented; slurm, as slurmctld does it"`
}

// Backfill says how far ahead is planned.
type Backfill struct {
	Reservations int  `json:"reservations,omitempty" yaml:"reservations,omitempty" doc:"number of jobs after the first one that get a planned start too; 0: only the first job"`
	Depth        int  `json:"depth,omitempty" yaml:"depth,omitempty" doc:"number of kinds of job tried in one pass; 0: 500"`      // kinds of job tried in one pass; 0: 500
	Off          bool `json:"off,omitempty" yaml:"off,omitempty" doc:"start jobs strictly in order: no job passes the first one"` // strictly in order
}

// Topology bounds what jobs may wish for.
type Topology struct {
	SwitchWait Duration `json:"switch_wait,omitempty" yaml:"switch_wait,omitempty" words:"none=-1" doc:"the longest that a job waits for few switches (sbatch --switches), and the wait of jobs that give no time; 0: 5 minutes"`
}

// Batch has the defaults of batch scripts in sbatch's form. They are read
// when a job is submitted.
type Batch struct {
	Requeue         string        `json:"requeue,omitempty" yaml:"requeue,omitempty" enum:"on,off" doc:"whether a script runs again after a preemption or the loss of its node (sbatch --requeue, --no-requeue); left out: on, as Slurm's JobRequeue=1"`
	RequeueExit     job.ExitCodes `json:"requeue_exit,omitempty" yaml:"requeue_exit,omitempty" doc:"exit codes after which a script is requeued, as in 1-9,18, also with --no-requeue; after five such ends in a row it is held (Slurm's RequeueExit)"`
	RequeueExitHold job.ExitCodes `json:"requeue_exit_hold,omitempty" yaml:"requeue_exit_hold,omitempty" doc:"exit codes after which a script is requeued and held in state SPECIAL_EXIT; requeue_exit goes first (Slurm's RequeueExitHold)"`
	OpenMode        string        `json:"open_mode,omitempty" yaml:"open_mode,omitempty" enum:"truncate,append" doc:"what each start, also after a requeue, does with existing output files (sbatch --open-mode); left out: truncate, as Slurm's JobFileAppend=0"`
	Propagate       string        `json:"propagate,omitempty" yaml:"propagate,omitempty" doc:"which resource limits (ulimit) of the submitter scripts and commands get without --propagate: ALL, NONE or names such as STACK,CORE; left out: ALL, as Slurm's PropagateResourceLimits"`
}

// Preemption says whether waiting jobs may stop running ones.
type Preemption struct {
	By         []string `json:"by,omitempty" yaml:"by,omitempty" enum:"qos,partition,priority,quota" doc:"what gives a job the right to stop running jobs; left out: nothing"`
	Mode       string   `json:"mode,omitempty" yaml:"mode,omitempty" enum:"requeue,cancel,suspend,checkpoint" doc:"what happens to stopped jobs; left out: requeue"` // "requeue" (default), "cancel", "suspend", "checkpoint"
	Exempt     Duration `json:"exempt,omitempty" yaml:"exempt,omitempty" doc:"a job that has run for less time is not stopped"`                                      // a job that ran shorter is left alone
	Grace      Duration `json:"grace,omitempty" yaml:"grace,omitempty" doc:"time between the warning and the end"`                                                   // between the warning and the end
	MaxGrace   Duration `json:"max_grace,omitempty" yaml:"max_grace,omitempty" doc:"mode checkpoint: the longest time that a job gets if its --signal asks for more; left out: grace"`
	Signal     string   `json:"signal,omitempty" yaml:"signal,omitempty" doc:"mode checkpoint: signal that tells a job without --signal to save; left out: TERM"`
	Defrag     string   `json:"defrag,omitempty" yaml:"defrag,omitempty" enum:"off,ask,automatic" doc:"whether to move running jobs that save checkpoints so that a waiting job fits: left out or off, never; ask, propose moves (cox defrag); automatic, move them"` // "" or DefragOff, DefragAsk, DefragAutomatic
	DefragRest Duration `json:"defrag_rest,omitempty" yaml:"defrag_rest,omitempty" doc:"a moved job is not moved again for this time; left out: 1 hour"`                                                                                                              // 0: an hour
}

// Account is a node of the tree. An account with users is what Slurm calls an
// account with its user associations; one with a quota is Kueue's queue, and one
// with children that have quotas is a cohort.
type Account struct {
	Name     string   `json:"name" yaml:"name" doc:"name, as in --account"`
	Parent   string   `json:"parent,omitempty" yaml:"parent,omitempty" doc:"the account above; left out: root"`
	Note     string   `json:"note,omitempty" yaml:"note,omitempty" doc:"a note for people"`
	Shares   Shares   `json:"shares,omitempty" yaml:"shares,omitempty" words:"parent=-1,none=-2" doc:"its part of what it shares with its siblings; parent: its users share with the parent's users; none: no share; left out: 1"`
	Priority uint32   `json:"priority,omitempty" yaml:"priority,omitempty" doc:"priority of its jobs, for priority.association"` // of the association
	QOS      []string `json:"qos,omitempty" yaml:"qos,omitempty" doc:"QOS that its jobs may use; left out: the parent's, or all"`
	Default  string   `json:"default_qos,omitempty" yaml:"default_qos,omitempty" doc:"QOS of jobs that name none"`
	Limits   Limits   `json:"limits,omitzero" yaml:"limits,omitempty" doc:"limits of all jobs in the account and below it; see [limits](#limits)"`
	Quota    *Quota   `json:"quota,omitempty" yaml:"quota,omitempty" doc:"how much of each kind of node it may hold; see [quota](#quota)"`
	Routes   []string `json:"routes,omitempty" yaml:"routes,omitempty" doc:"hosts that services of the account and the accounts below it alone may have, as chat.example.org, *.team.example.org or chat.example.org/v1; left out: hosts that no account has are free for everybody"`
	Users    []User   `json:"users,omitempty" yaml:"users,omitempty" doc:"users of the account; left out in an account without accounts below it: everybody"`
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
	Name     string   `json:"name" yaml:"name" doc:"user name"`
	Default  bool     `json:"default,omitempty" yaml:"default,omitempty" doc:"this account is the default of the user's jobs"`
	Shares   Shares   `json:"shares,omitempty" yaml:"shares,omitempty" words:"parent=-1,none=-2" doc:"the user's part of what the users of the account share; parent and none as for accounts; left out: 1"`
	Priority uint32   `json:"priority,omitempty" yaml:"priority,omitempty" doc:"priority of the user's jobs, for priority.association"`
	QOS      []string `json:"qos,omitempty" yaml:"qos,omitempty" doc:"QOS that the user may use in this account; left out: the account's"`
	Limits   Limits   `json:"limits,omitzero" yaml:"limits,omitempty" doc:"limits of the user's jobs in this account"`
}

// Limits of an association or QOS; nil and a missing name: not limited here. What
// begins with Group is for all jobs of the account and the accounts below it, or of
// the QOS, together.
type Limits struct {
	Group           TRES      `json:"group,omitempty" yaml:"group,omitempty" doc:"most that all running jobs together hold (GrpTRES)"`                                                                  // GrpTRES: held by running jobs
	GroupMinutes    TRES      `json:"group_minutes,omitempty" yaml:"group_minutes,omitempty" doc:"most that all jobs together have used, with decay (GrpTRESMins)"`                                     // GrpTRESMins: used, decayed
	GroupRunMinutes TRES      `json:"group_run_minutes,omitempty" yaml:"group_run_minutes,omitempty" doc:"most that all running jobs together may still use (GrpTRESRunMins)"`                          // GrpTRESRunMins: that running jobs may still use
	GroupJobs       *int64    `json:"group_jobs,omitempty" yaml:"group_jobs,omitempty" doc:"most jobs running together (GrpJobs)"`                                                                      // running
	GroupSubmitted  *int64    `json:"group_submitted,omitempty" yaml:"group_submitted,omitempty" doc:"most jobs running and waiting together (GrpSubmitJobs)"`                                          // running and waiting
	GroupAccruing   *int64    `json:"group_accruing,omitempty" yaml:"group_accruing,omitempty" doc:"most waiting jobs that gain priority by age (GrpJobsAccrue)"`                                       // waiting and growing older
	GroupWall       *Duration `json:"group_wall,omitempty" yaml:"group_wall,omitempty" doc:"most wall time that all jobs together have used, with decay (GrpWall)"`                                     // used wall time, decayed
	Job             TRES      `json:"job,omitempty" yaml:"job,omitempty" doc:"most of one job (MaxTRESPerJob)"`                                                                                         // MaxTRESPerJob
	Node            TRES      `json:"node,omitempty" yaml:"node,omitempty" doc:"most of one job on each node (MaxTRESPerNode)"`                                                                         // MaxTRESPerNode
	JobMinutes      TRES      `json:"job_minutes,omitempty" yaml:"job_minutes,omitempty" doc:"most of one job, times its time limit (MaxTRESMinsPerJob)"`                                               // MaxTRESMinsPerJob
	Jobs            *int64    `json:"jobs,omitempty" yaml:"jobs,omitempty" doc:"most running jobs of each user in the account (MaxJobs)"`                                                               // MaxJobs: running, of one association
	Submitted       *int64    `json:"submitted,omitempty" yaml:"submitted,omitempty" doc:"most running and waiting jobs of each user in the account (MaxSubmitJobs)"`                                   // MaxSubmitJobs
	Accruing        *int64    `json:"accruing,omitempty" yaml:"accruing,omitempty" doc:"most waiting jobs of each user in the account that gain priority by age (MaxJobsAccrue)"`                       // MaxJobsAccrue
	Wall            *Duration `json:"wall,omitempty" yaml:"wall,omitempty" doc:"longest time limit of a job (MaxWall)"`                                                                                 // MaxWall of a job
	User            TRES      `json:"user,omitempty" yaml:"user,omitempty" only:"qos" doc:"QOS only: most of each user (MaxTRESPerUser)"`                                                               // QOS: MaxTRESPerUser
	Account         TRES      `json:"account,omitempty" yaml:"account,omitempty" only:"qos" doc:"QOS only: most of each account (MaxTRESPerAccount)"`                                                   // QOS: MaxTRESPerAccount
	UserRunMinutes  TRES      `json:"user_run_minutes,omitempty" yaml:"user_run_minutes,omitempty" only:"qos" doc:"QOS only: most that each user's running jobs may still use (MaxTRESRunMinsPerUser)"` // QOS
	AcctRunMinutes  TRES      `json:"account_run_minutes,omitempty" yaml:"account_run_minutes,omitempty" only:"qos" doc:"QOS only: most that each account's running jobs may still use (MaxTRESRunMinsPerAccount)"`
	UserJobs        *int64    `json:"user_jobs,omitempty" yaml:"user_jobs,omitempty" only:"qos" doc:"QOS only: most running jobs of each user (MaxJobsPerUser)"`                                                     // QOS
	AcctJobs        *int64    `json:"account_jobs,omitempty" yaml:"account_jobs,omitempty" only:"qos" doc:"QOS only: most running jobs of each account (MaxJobsPerAccount)"`                                         // QOS
	UserSubmitted   *int64    `json:"user_submitted,omitempty" yaml:"user_submitted,omitempty" only:"qos" doc:"QOS only: most running and waiting jobs of each user (MaxSubmitJobsPerUser)"`                         // QOS
	AcctSubmitted   *int64    `json:"account_submitted,omitempty" yaml:"account_submitted,omitempty" only:"qos" doc:"QOS only: most running and waiting jobs of each account (MaxSubmitJobsPerAccount)"`             // QOS
	UserAccruing    *int64    `json:"user_accruing,omitempty" yaml:"user_accruing,omitempty" only:"qos" doc:"QOS only: most waiting jobs of each user that gain priority by age (MaxJobsAccruePerUser)"`             // QOS
	AcctAccruing    *int64    `json:"account_accruing,omitempty" yaml:"account_accruing,omitempty" only:"qos" doc:"QOS only: most waiting jobs of each account that gain priority by age (MaxJobsAccruePerAccount)"` // QOS
	Least           TRES      `json:"least,omitempty" yaml:"least,omitempty" only:"qos" doc:"QOS only: least that a job must ask for (MinTRESPerJob)"`                                                               // QOS: MinTRESPerJob
	LeastPriority   *uint32   `json:"least_priority,omitempty" yaml:"least_priority,omitempty" doc:"the scheduler does not try jobs with a lower priority (MinPrioThreshold)"`                                       // MinPrioThreshold
}

// QOS is a named set of limits and rights that a job asks for.
type QOS struct {
	Name           string   `json:"name" yaml:"name" doc:"name, as in --qos"`
	Note           string   `json:"note,omitempty" yaml:"note,omitempty" doc:"a note for people"`
	Priority       uint32   `json:"priority,omitempty" yaml:"priority,omitempty" doc:"priority of its jobs, for priority.qos"`
	Preempts       []string `json:"preempts,omitempty" yaml:"preempts,omitempty" doc:"QOS whose jobs its jobs may stop"`
	PreemptMode    string   `json:"preempt_mode,omitempty" yaml:"preempt_mode,omitempty" enum:"requeue,cancel,suspend,checkpoint,off" doc:"what happens to its jobs when other jobs stop them; left out: preemption.mode"`
	Grace          Duration `json:"grace,omitempty" yaml:"grace,omitempty" doc:"time between the warning and the end of its jobs"`
	Exempt         Duration `json:"exempt,omitempty" yaml:"exempt,omitempty" doc:"its jobs are not stopped for this time after their start"`
	UsageFactor    *float64 `json:"usage_factor,omitempty" yaml:"usage_factor,omitempty" doc:"factor by which the usage of its jobs counts; left out: 1"`
	UsageThreshold *float64 `json:"usage_threshold,omitempty" yaml:"usage_threshold,omitempty" doc:"its jobs wait while their user's fair-share factor is smaller (UsageThreshold, enforced)"`
	LimitFactor    *float64 `json:"limit_factor,omitempty" yaml:"limit_factor,omitempty" doc:"factor for the group limits of associations, for its jobs"`
	Limits         Limits   `json:"limits,omitzero" yaml:"limits,omitempty" doc:"limits of all jobs that name this QOS; see [limits](#limits)"`
	Flags          []string `json:"flags,omitempty" yaml:"flags,omitempty" enum:"deny_on_limit,no_decay,no_reserve,over_part_qos,partition_max_nodes,partition_min_nodes,partition_time_limit,relative" doc:"Slurm's flags of a QOS"`
}

// FlagRelative is the flag of a QOS whose amounts are hundredths of what there is in the
// partition whose QOS it is, else in the cluster; of memory and disk a MiB each.
const FlagRelative = "relative"

// Partition is the rules of a partition; its nodes are not part of the policy.
type Partition struct {
	Name        string             `json:"name" yaml:"name" doc:"name, as in cox.yaml"`
	Tier        int32              `json:"tier,omitempty" yaml:"tier,omitempty" doc:"the scheduler considers jobs of a larger tier first, whatever their priority (PriorityTier); left out: 1"`
	Priority    uint32             `json:"priority,omitempty" yaml:"priority,omitempty" doc:"priority of its jobs, for priority.partition (PriorityJobFactor)"` // PriorityJobFactor
	QOS         string             `json:"qos,omitempty" yaml:"qos,omitempty" doc:"a QOS whose limits apply to all jobs of the partition"`                      // limits for all jobs in it
	PreemptMode string             `json:"preempt_mode,omitempty" yaml:"preempt_mode,omitempty" enum:"requeue,cancel,suspend,checkpoint,off" doc:"what happens to its jobs when other jobs stop them"`
	Grace       Duration           `json:"grace,omitempty" yaml:"grace,omitempty" doc:"time between the warning and the end of its jobs"`
	TimeSlice   Duration           `json:"time_slice,omitempty" yaml:"time_slice,omitempty" doc:"length of a turn where two of its jobs share the same CPUs and devices (like OverSubscribe=FORCE:2 with PreemptMode=GANG); left out: jobs do not share"`
	MaxTime     Duration           `json:"max_time,omitempty" yaml:"max_time,omitempty" doc:"longest time limit of a job; left out: none"`
	MaxNodes    int                `json:"max_nodes,omitempty" yaml:"max_nodes,omitempty" doc:"most nodes of a job"`
	MinNodes    int                `json:"min_nodes,omitempty" yaml:"min_nodes,omitempty" doc:"fewest nodes of a job"`
	AllowAccts  []string           `json:"allow_accounts,omitempty" yaml:"allow_accounts,omitempty" doc:"accounts that may use it; no other account may"`
	DenyAccts   []string           `json:"deny_accounts,omitempty" yaml:"deny_accounts,omitempty" doc:"accounts that may not use it"`
	AllowQOS    []string           `json:"allow_qos,omitempty" yaml:"allow_qos,omitempty" doc:"QOS that jobs may use in it; no other QOS"`
	DenyQOS     []string           `json:"deny_qos,omitempty" yaml:"deny_qos,omitempty" doc:"QOS that jobs may not use in it"`
	Billing     map[string]float64 `json:"billing,omitempty" yaml:"billing,omitempty" doc:"how much usage counts for each cpu, GiB of memory, gpu, … (TRESBillingWeights)"` // TRESBillingWeights: cpu by CPU, memory by GiB, gpu by device
	BillingRule string             `json:"billing_rule,omitempty" yaml:"billing_rule,omitempty" enum:"max,max_gres" doc:"how billing adds up: left out, the sum; max, the largest one plus licences (MAX_TRES); max_gres, the largest of cpu, memory and node, plus devices and licences (MAX_TRES_GRES)"`
}

// License is a number of things of which the site has so many.
type License struct {
	Name  string `json:"name" yaml:"name" doc:"name, as in --licenses"`
	Count int64  `json:"count" yaml:"count" doc:"number that the site has"`
}

// Words of Batch.
const (
	RequeueOff   = "off"
	OpenTruncate = "truncate"
	OpenAppend   = "append"
)

// How a job makes room for another one.
const (
	PreemptOff        = "off"        // not at all
	PreemptRequeue    = "requeue"    // it waits again; one that may not be requeued is cancelled
	PreemptCancel     = "cancel"     // it ends as PREEMPTED
	PreemptSuspend    = "suspend"    // its processes stop, and go on when those have ended that have its place
	PreemptCheckpoint = "checkpoint" // it is told to save, and waits again
)

// Where a job goes that takes a single node. "": PlaceLearned from the first job on that
// asks for a part of a device.
const (
	PlaceTight   = "tight"   // where least stays free
	PlaceLearned = "learned" // where least becomes useless for what usually arrives
)

// Whether running jobs are moved so that a waiting one fits. "" is off.
const (
	DefragOff       = "off"
	DefragAsk       = "ask"       // moves are proposed, and made when somebody approves
	DefragAutomatic = "automatic" // they are made
)
