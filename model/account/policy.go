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
	Backfill   Backfill    `json:"backfill,omitzero" yaml:"backfill,omitempty" doc:"how jobs behind the head are let past it"`
	Batch      Batch       `json:"batch,omitzero" yaml:"batch,omitempty" doc:"defaults of batch scripts"`
	Preemption Preemption  `json:"preemption,omitzero" yaml:"preemption,omitempty" doc:"who may take running jobs' place, and how"`
	Accounts   []Account   `json:"accounts,omitempty" yaml:"accounts,omitempty" doc:"the tree of accounts; each names its parent"`
	QOS        []QOS       `json:"qos,omitempty" yaml:"qos,omitempty" doc:"named limits, priorities and rights"`
	Partitions []Partition `json:"partitions,omitempty" yaml:"partitions,omitempty" doc:"rules of partitions; their nodes stand in the server's configuration"`
	Flavors    []Flavor    `json:"flavors,omitempty" yaml:"flavors,omitempty" doc:"kinds of node that quotas tell apart"`
	Compat     string      `json:"compat,omitempty" yaml:"compat,omitempty" enum:"slurm,slurm-backfill" doc:"decide as another scheduler would: slurm, as slurmctld with select/cons_tres and sched/backfill; slurm-backfill, the same with the main scheduler deferred"`
	Placement  string      `json:"placement,omitempty" yaml:"placement,omitempty" enum:"tight,learned" doc:"where a job goes that takes a single node: tight, where least stays free; learned, where least becomes useless for the jobs that usually arrive; left out: learned from the first job on that asks for a part of a GPU, tight until then"`
	Topology   Topology    `json:"topology,omitzero" yaml:"topology,omitempty" doc:"how long jobs may wait to be placed closely"`
	Licenses   []License   `json:"licenses,omitempty" yaml:"licenses,omitempty" doc:"what is counted for the whole site (sbatch --licenses)"`

	Reservations []Reservation `json:"reservations,omitempty" yaml:"reservations,omitempty" doc:"nodes that are kept for some jobs, or for none, for a time"`
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
	Age         uint32            `json:"age,omitempty" yaml:"age,omitempty" doc:"for having waited"`
	Association uint32            `json:"association,omitempty" yaml:"association,omitempty" doc:"for the priority of the account or user"`
	FairShare   uint32            `json:"fair_share,omitempty" yaml:"fair_share,omitempty" doc:"for having used less than one's share"`
	JobSize     uint32            `json:"job_size,omitempty" yaml:"job_size,omitempty" doc:"for asking for more nodes and CPUs"`
	Partition   uint32            `json:"partition,omitempty" yaml:"partition,omitempty" doc:"for the priority of the partition"`
	QOS         uint32            `json:"qos,omitempty" yaml:"qos,omitempty" doc:"for the priority of the QOS"`
	TRES        map[string]uint32 `json:"tres,omitempty" yaml:"tres,omitempty" doc:"for the part of the partition's cpu, memory, gpu, … that is asked for"`
	MaxAge      Duration          `json:"max_age,omitempty" yaml:"max_age,omitempty" doc:"waiting longer than that counts no more; 0: 7 days"`
	FavorSmall  bool              `json:"favor_small,omitempty" yaml:"favor_small,omitempty" doc:"job_size counts for asking for less"`
	Flags       []string          `json:"flags,omitempty" yaml:"flags,omitempty" enum:"accrue_always,depth_oblivious,no_fair_tree,no_normal_all,no_normal_assoc,no_normal_part,no_normal_qos,no_normal_tres,small_relative_to_time" doc:"Slurm's PriorityFlags"`
}

// Zero reports whether no factor counts.
func (w *Weights) Zero() bool {
	return w.Age|w.Association|w.FairShare|w.JobSize|w.Partition|w.QOS == 0 && len(w.TRES) == 0
}

// FairShare says how usage is kept.
type FairShare struct {
	HalfLife Duration `json:"half_life,omitempty" yaml:"half_life,omitempty" words:"never=-1" doc:"after which usage counts half; 0: 7 days; never: it does not decay"` // 0: 7 days; negative: usage does not decay
	Period   Duration `json:"period,omitempty" yaml:"period,omitempty" doc:"between two recalculations; 0: 5 minutes"`                                                  // between two recalculations; 0: 5 minutes
	Reset    string   `json:"reset,omitempty" yaml:"reset,omitempty" enum:"daily,weekly,monthly,quarterly,yearly" doc:"when all usage is forgotten; left out: never"`   // "", "daily", "weekly", "monthly", "quarterly", "yearly"
	Ties     string   `json:"ties,omitempty" yaml:"ties,omitempty" enum:"slurm" doc:"of sibling accounts with equal shares: left out, as documented; slurm: as slurmctld does"`
}

// Backfill says how far ahead is planned.
type Backfill struct {
	Reservations int  `json:"reservations,omitempty" yaml:"reservations,omitempty" doc:"the head and so many more jobs are promised a start; 0: the head alone"`
	Depth        int  `json:"depth,omitempty" yaml:"depth,omitempty" doc:"kinds of job tried in one pass; 0: 500"` // kinds of job tried in one pass; 0: 500
	Off          bool `json:"off,omitempty" yaml:"off,omitempty" doc:"strictly in order: nothing passes the head"` // strictly in order
}

// Topology bounds what jobs may wish for.
type Topology struct {
	SwitchWait Duration `json:"switch_wait,omitempty" yaml:"switch_wait,omitempty" words:"none=-1" doc:"the longest that a job waits for few switches (sbatch --switches), and how long without a time of its own; 0: 5 minutes"`
}

// Batch has the defaults of batch scripts in sbatch's form. They are read
// when a job is submitted.
type Batch struct {
	Requeue         string        `json:"requeue,omitempty" yaml:"requeue,omitempty" enum:"on,off" doc:"whether a script runs again after a preemption or the loss of its node (sbatch --requeue, --no-requeue); left out: on, as Slurm's JobRequeue=1"`
	RequeueExit     job.ExitCodes `json:"requeue_exit,omitempty" yaml:"requeue_exit,omitempty" doc:"exit codes after which a script is requeued, as in 1-9,18, also with --no-requeue; after five such ends in a row it is held (Slurm's RequeueExit)"`
	RequeueExitHold job.ExitCodes `json:"requeue_exit_hold,omitempty" yaml:"requeue_exit_hold,omitempty" doc:"exit codes after which a script is requeued and held in state SPECIAL_EXIT; requeue_exit goes first (Slurm's RequeueExitHold)"`
	OpenMode        string        `json:"open_mode,omitempty" yaml:"open_mode,omitempty" enum:"truncate,append" doc:"what each start, also after a requeue, does with existing output files (sbatch --open-mode); left out: truncate, as Slurm's JobFileAppend=0"`
}

// Preemption says whether waiting jobs may stop running ones.
type Preemption struct {
	By         []string `json:"by,omitempty" yaml:"by,omitempty" enum:"qos,partition,priority,quota" doc:"what gives the right to take running jobs' place; left out: nothing does"`
	Mode       string   `json:"mode,omitempty" yaml:"mode,omitempty" enum:"requeue,cancel,suspend,checkpoint" doc:"what happens to them; left out: requeue"` // "requeue" (default), "cancel", "suspend", "checkpoint"
	Exempt     Duration `json:"exempt,omitempty" yaml:"exempt,omitempty" doc:"a job that ran shorter is left alone"`                                         // a job that ran shorter is left alone
	Grace      Duration `json:"grace,omitempty" yaml:"grace,omitempty" doc:"between the warning and the end"`                                                // between the warning and the end
	MaxGrace   Duration `json:"max_grace,omitempty" yaml:"max_grace,omitempty" doc:"mode checkpoint: what a job may have instead, if its --signal asks for it; left out: grace"`
	Signal     string   `json:"signal,omitempty" yaml:"signal,omitempty" doc:"mode checkpoint: by which a job is told to save that has no --signal; left out: TERM"`
	Defrag     string   `json:"defrag,omitempty" yaml:"defrag,omitempty" enum:"off,ask,automatic" doc:"whether running jobs that save checkpoints are moved so that a waiting one fits: left out or off, never; ask, moves are proposed (cox defrag)"` // "" or DefragOff, DefragAsk, DefragAutomatic
	DefragRest Duration `json:"defrag_rest,omitempty" yaml:"defrag_rest,omitempty" doc:"a job that was moved is not moved again for so long; left out: 1 hour"`                                                                                        // 0: an hour
}

// Account is a node of the tree. An account with users is what Slurm calls an
// account with its user associations; one with a quota is Kueue's queue, and one
// with children that have quotas is a cohort.
type Account struct {
	Name     string   `json:"name" yaml:"name" doc:"as in --account"`
	Parent   string   `json:"parent,omitempty" yaml:"parent,omitempty" doc:"the account above; left out: root"`
	Note     string   `json:"note,omitempty" yaml:"note,omitempty" doc:"for people"`
	Shares   Shares   `json:"shares,omitempty" yaml:"shares,omitempty" words:"parent=-1,none=-2" doc:"of what its siblings share; parent: its users share with the parent's; none: it has none; left out: 1"`
	Priority uint32   `json:"priority,omitempty" yaml:"priority,omitempty" doc:"of its jobs, for priority.association"` // of the association
	QOS      []string `json:"qos,omitempty" yaml:"qos,omitempty" doc:"that may be used; left out: the parent's, or all"`
	Default  string   `json:"default_qos,omitempty" yaml:"default_qos,omitempty" doc:"of jobs that name none"`
	Limits   Limits   `json:"limits,omitzero" yaml:"limits,omitempty" doc:"of all jobs in it and below it; see [limits](#limits)"`
	Quota    *Quota   `json:"quota,omitempty" yaml:"quota,omitempty" doc:"what it may hold of which kind of node; see [quota](#quota)"`
	Users    []User   `json:"users,omitempty" yaml:"users,omitempty" doc:"who may use it; left out in an account without accounts below it: everybody"`
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
	Default  bool     `json:"default,omitempty" yaml:"default,omitempty" doc:"this is the account of jobs of this user that name none"`
	Shares   Shares   `json:"shares,omitempty" yaml:"shares,omitempty" words:"parent=-1,none=-2" doc:"of what the users of the account share; parent, none as above; left out: 1"`
	Priority uint32   `json:"priority,omitempty" yaml:"priority,omitempty" doc:"for priority.association"`
	QOS      []string `json:"qos,omitempty" yaml:"qos,omitempty" doc:"that this user may use here; left out: the account's"`
	Limits   Limits   `json:"limits,omitzero" yaml:"limits,omitempty" doc:"of this user's jobs in this account"`
}

// Limits of an association or QOS; nil and a missing name: not limited here. What
// begins with Group is for all jobs of the account and the accounts below it, or of
// the QOS, together.
type Limits struct {
	Group           TRES      `json:"group,omitempty" yaml:"group,omitempty" doc:"all together hold at most (GrpTRES)"`                                                                             // GrpTRES: held by running jobs
	GroupMinutes    TRES      `json:"group_minutes,omitempty" yaml:"group_minutes,omitempty" doc:"all together used at most, as it decays (GrpTRESMins)"`                                           // GrpTRESMins: used, decayed
	GroupRunMinutes TRES      `json:"group_run_minutes,omitempty" yaml:"group_run_minutes,omitempty" doc:"what all running ones together may still use (GrpTRESRunMins)"`                           // GrpTRESRunMins: that running jobs may still use
	GroupJobs       *int64    `json:"group_jobs,omitempty" yaml:"group_jobs,omitempty" doc:"all together running (GrpJobs)"`                                                                        // running
	GroupSubmitted  *int64    `json:"group_submitted,omitempty" yaml:"group_submitted,omitempty" doc:"all together running and waiting (GrpSubmitJobs)"`                                            // running and waiting
	GroupAccruing   *int64    `json:"group_accruing,omitempty" yaml:"group_accruing,omitempty" doc:"all together waiting and growing older (GrpJobsAccrue)"`                                        // waiting and growing older
	GroupWall       *Duration `json:"group_wall,omitempty" yaml:"group_wall,omitempty" doc:"wall time that all together used, as it decays (GrpWall)"`                                              // used wall time, decayed
	Job             TRES      `json:"job,omitempty" yaml:"job,omitempty" doc:"of one job (MaxTRESPerJob)"`                                                                                          // MaxTRESPerJob
	Node            TRES      `json:"node,omitempty" yaml:"node,omitempty" doc:"of one job on each node (MaxTRESPerNode)"`                                                                          // MaxTRESPerNode
	JobMinutes      TRES      `json:"job_minutes,omitempty" yaml:"job_minutes,omitempty" doc:"of one job times its time limit (MaxTRESMinsPerJob)"`                                                 // MaxTRESMinsPerJob
	Jobs            *int64    `json:"jobs,omitempty" yaml:"jobs,omitempty" doc:"running, of each user in the account (MaxJobs)"`                                                                    // MaxJobs: running, of one association
	Submitted       *int64    `json:"submitted,omitempty" yaml:"submitted,omitempty" doc:"running and waiting, of each user in the account (MaxSubmitJobs)"`                                        // MaxSubmitJobs
	Accruing        *int64    `json:"accruing,omitempty" yaml:"accruing,omitempty" doc:"waiting and growing older, of each user in the account (MaxJobsAccrue)"`                                    // MaxJobsAccrue
	Wall            *Duration `json:"wall,omitempty" yaml:"wall,omitempty" doc:"longest time limit of a job (MaxWall)"`                                                                             // MaxWall of a job
	User            TRES      `json:"user,omitempty" yaml:"user,omitempty" only:"qos" doc:"QOS alone: of each user (MaxTRESPerUser)"`                                                               // QOS: MaxTRESPerUser
	Account         TRES      `json:"account,omitempty" yaml:"account,omitempty" only:"qos" doc:"QOS alone: of each account (MaxTRESPerAccount)"`                                                   // QOS: MaxTRESPerAccount
	UserRunMinutes  TRES      `json:"user_run_minutes,omitempty" yaml:"user_run_minutes,omitempty" only:"qos" doc:"QOS alone: what each user's running jobs may still use (MaxTRESRunMinsPerUser)"` // QOS
	AcctRunMinutes  TRES      `json:"account_run_minutes,omitempty" yaml:"account_run_minutes,omitempty" only:"qos" doc:"QOS alone: what each account's running jobs may still use (MaxTRESRunMinsPerAccount)"`
	UserJobs        *int64    `json:"user_jobs,omitempty" yaml:"user_jobs,omitempty" only:"qos" doc:"QOS alone: running, of each user (MaxJobsPerUser)"`                                             // QOS
	AcctJobs        *int64    `json:"account_jobs,omitempty" yaml:"account_jobs,omitempty" only:"qos" doc:"QOS alone: running, of each account (MaxJobsPerAccount)"`                                 // QOS
	UserSubmitted   *int64    `json:"user_submitted,omitempty" yaml:"user_submitted,omitempty" only:"qos" doc:"QOS alone: running and waiting, of each user (MaxSubmitJobsPerUser)"`                 // QOS
	AcctSubmitted   *int64    `json:"account_submitted,omitempty" yaml:"account_submitted,omitempty" only:"qos" doc:"QOS alone: running and waiting, of each account (MaxSubmitJobsPerAccount)"`     // QOS
	UserAccruing    *int64    `json:"user_accruing,omitempty" yaml:"user_accruing,omitempty" only:"qos" doc:"QOS alone: waiting and growing older, of each user (MaxJobsAccruePerUser)"`             // QOS
	AcctAccruing    *int64    `json:"account_accruing,omitempty" yaml:"account_accruing,omitempty" only:"qos" doc:"QOS alone: waiting and growing older, of each account (MaxJobsAccruePerAccount)"` // QOS
	Least           TRES      `json:"least,omitempty" yaml:"least,omitempty" only:"qos" doc:"QOS alone: what a job has to ask for (MinTRESPerJob)"`                                                  // QOS: MinTRESPerJob
	LeastPriority   *uint32   `json:"least_priority,omitempty" yaml:"least_priority,omitempty" doc:"a job with less priority is not looked at for its resources (MinPrioThreshold)"`                 // MinPrioThreshold
}

// QOS is a named set of limits and rights that a job asks for.
type QOS struct {
	Name           string   `json:"name" yaml:"name" doc:"as in --qos"`
	Note           string   `json:"note,omitempty" yaml:"note,omitempty" doc:"for people"`
	Priority       uint32   `json:"priority,omitempty" yaml:"priority,omitempty" doc:"of its jobs, for priority.qos"`
	Preempts       []string `json:"preempts,omitempty" yaml:"preempts,omitempty" doc:"QOS whose jobs may be stopped for its jobs"`
	PreemptMode    string   `json:"preempt_mode,omitempty" yaml:"preempt_mode,omitempty" enum:"requeue,cancel,suspend,checkpoint,off" doc:"what happens to its jobs when they are stopped for others; left out: preemption.mode"`
	Grace          Duration `json:"grace,omitempty" yaml:"grace,omitempty" doc:"between the warning and the end of its jobs"`
	Exempt         Duration `json:"exempt,omitempty" yaml:"exempt,omitempty" doc:"its jobs are left alone so long after their start"`
	UsageFactor    *float64 `json:"usage_factor,omitempty" yaml:"usage_factor,omitempty" doc:"its jobs' usage counts so many times; left out: 1"`
	UsageThreshold *float64 `json:"usage_threshold,omitempty" yaml:"usage_threshold,omitempty" doc:"its jobs wait while the fair-share factor of their user is smaller (UsageThreshold, enforced)"`
	LimitFactor    *float64 `json:"limit_factor,omitempty" yaml:"limit_factor,omitempty" doc:"group limits of associations are multiplied by it for its jobs"`
	Limits         Limits   `json:"limits,omitzero" yaml:"limits,omitempty" doc:"of all jobs that name it; see [limits](#limits)"`
	Flags          []string `json:"flags,omitempty" yaml:"flags,omitempty" enum:"deny_on_limit,no_decay,no_reserve,over_part_qos,partition_max_nodes,partition_min_nodes,partition_time_limit,relative" doc:"Slurm's flags of a QOS"`
}

// FlagRelative is the flag of a QOS whose amounts are hundredths of what there is in the
// partition whose QOS it is, else in the cluster; of memory and disk a MiB each.
const FlagRelative = "relative"

// Partition is the rules of a partition; its nodes are not part of the policy.
type Partition struct {
	Name        string             `json:"name" yaml:"name" doc:"as in cox.yaml"`
	Tier        int32              `json:"tier,omitempty" yaml:"tier,omitempty" doc:"jobs of a larger tier are considered first, whatever their priority (PriorityTier); left out: 1"`
	Priority    uint32             `json:"priority,omitempty" yaml:"priority,omitempty" doc:"for priority.partition (PriorityJobFactor)"` // PriorityJobFactor
	QOS         string             `json:"qos,omitempty" yaml:"qos,omitempty" doc:"a QOS whose limits hold for all jobs in it"`           // limits for all jobs in it
	PreemptMode string             `json:"preempt_mode,omitempty" yaml:"preempt_mode,omitempty" enum:"requeue,cancel,suspend,checkpoint,off" doc:"what happens to its jobs when they are stopped for others"`
	Grace       Duration           `json:"grace,omitempty" yaml:"grace,omitempty" doc:"between the warning and the end of its jobs"`
	TimeSlice   Duration           `json:"time_slice,omitempty" yaml:"time_slice,omitempty" doc:"two of its jobs may have the same CPUs and devices, in turns of so long (near OverSubscribe=FORCE:2 with PreemptMode=GANG); left out: never"`
	MaxTime     Duration           `json:"max_time,omitempty" yaml:"max_time,omitempty" doc:"longest time limit of a job; left out: none"`
	MaxNodes    int                `json:"max_nodes,omitempty" yaml:"max_nodes,omitempty" doc:"of a job"`
	MinNodes    int                `json:"min_nodes,omitempty" yaml:"min_nodes,omitempty" doc:"of a job"`
	AllowAccts  []string           `json:"allow_accounts,omitempty" yaml:"allow_accounts,omitempty" doc:"nobody else may use it"`
	DenyAccts   []string           `json:"deny_accounts,omitempty" yaml:"deny_accounts,omitempty" doc:"may not use it"`
	AllowQOS    []string           `json:"allow_qos,omitempty" yaml:"allow_qos,omitempty" doc:"no other QOS may be used in it"`
	DenyQOS     []string           `json:"deny_qos,omitempty" yaml:"deny_qos,omitempty" doc:"may not be used in it"`
	Billing     map[string]float64 `json:"billing,omitempty" yaml:"billing,omitempty" doc:"what usage counts: so much for each cpu, GiB of memory, gpu, … (TRESBillingWeights)"` // TRESBillingWeights: cpu by CPU, memory by GiB, gpu by device
	BillingRule string             `json:"billing_rule,omitempty" yaml:"billing_rule,omitempty" enum:"max,max_gres" doc:"how these add up: left out, their sum; max: the largest (MAX_TRES); max_gres: that of devices and licences"`
}

// License is a number of things of which the site has so many.
type License struct {
	Name  string `json:"name" yaml:"name" doc:"as in --licenses"`
	Count int64  `json:"count" yaml:"count" doc:"how many the site has"`
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
