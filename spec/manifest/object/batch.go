package object

// Job is a Job of batch/v1.
type Job struct {
	Head
	Spec JobSpec `json:"spec"`
}

// JobSpec are the pods of a Job and what their ends mean.
type JobSpec struct {
	At
	Template                PodTemplate    `json:"template"`
	Parallelism             *int32         `json:"parallelism"` // nil: 1
	Completions             *int32         `json:"completions"` // nil with Parallelism: a work queue
	CompletionMode          string         `json:"completionMode"`
	BackoffLimit            *int32         `json:"backoffLimit"` // nil: 6
	ActiveDeadlineSeconds   *int64         `json:"activeDeadlineSeconds"`
	TTLSecondsAfterFinished *int32         `json:"ttlSecondsAfterFinished"`
	Suspend                 bool           `json:"suspend"`
	PodFailurePolicy        *FailurePolicy `json:"podFailurePolicy"`
	SuccessPolicy           *SuccessPolicy `json:"successPolicy"`
}

// FailurePolicy says what failures of pods mean. The first rule that fits counts.
type FailurePolicy struct {
	At
	Rules []FailureRule `json:"rules"`
}

// FailureRule is one rule of a FailurePolicy.
type FailureRule struct {
	At
	Action          string         `json:"action"` // FailJob, FailIndex, Ignore, Count
	OnExitCodes     *ExitCodes     `json:"onExitCodes"`
	OnPodConditions []PodCondition `json:"onPodConditions"`
}

// ExitCodes are codes with which a container ended.
type ExitCodes struct {
	At
	ContainerName string  `json:"containerName"`
	Operator      string  `json:"operator"` // In, NotIn
	Values        []int32 `json:"values"`
}

// PodCondition is a condition of a pod, such as DisruptionTarget.
type PodCondition struct {
	At
	Type   string `json:"type"`
	Status string `json:"status"`
}

// SuccessPolicy says which indices make a Job a success.
type SuccessPolicy struct {
	At
	Rules []SuccessRule `json:"rules"`
}

// SuccessRule is one rule of a SuccessPolicy.
type SuccessRule struct {
	At
	SucceededIndexes string `json:"succeededIndexes"` // 0,2-4
	SucceededCount   *int32 `json:"succeededCount"`
}

// CronJob is a CronJob of batch/v1.
type CronJob struct {
	Head
	Spec CronJobSpec `json:"spec"`
}

// CronJobSpec is the schedule and the job of each run.
type CronJobSpec struct {
	At
	Schedule                   string      `json:"schedule"`
	TimeZone                   string      `json:"timeZone"`
	StartingDeadlineSeconds    *int64      `json:"startingDeadlineSeconds"`
	ConcurrencyPolicy          string      `json:"concurrencyPolicy"` // Allow, Forbid, Replace; empty: Allow
	Suspend                    bool        `json:"suspend"`
	JobTemplate                JobTemplate `json:"jobTemplate"`
	SuccessfulJobsHistoryLimit *int32      `json:"successfulJobsHistoryLimit"` // nil: 3
	FailedJobsHistoryLimit     *int32      `json:"failedJobsHistoryLimit"`     // nil: 1
}

// JobTemplate is the template of a Job.
type JobTemplate struct {
	At
	Metadata Meta    `json:"metadata"`
	Spec     JobSpec `json:"spec"`
}

// JobSet is a JobSet of jobset.x-k8s.io/v1alpha2.
type JobSet struct {
	Head
	Spec JobSetSpec `json:"spec"`
}

// JobSetSpec are the jobs of a JobSet, which are one gang.
type JobSetSpec struct {
	At
	ReplicatedJobs          []ReplicatedJob    `json:"replicatedJobs"`
	Network                 *JobSetNetwork     `json:"network"`
	SuccessPolicy           *JobSetSuccess     `json:"successPolicy"`
	FailurePolicy           *JobSetFailure     `json:"failurePolicy"`
	StartupPolicy           *JobSetStartup     `json:"startupPolicy"`
	Suspend                 bool               `json:"suspend"`
	Coordinator             *JobSetCoordinator `json:"coordinator"`
	TTLSecondsAfterFinished *int32             `json:"ttlSecondsAfterFinished"`
}

// ReplicatedJob is a Job and how often it is in a JobSet.
type ReplicatedJob struct {
	At
	Name      string             `json:"name"`
	GroupName string             `json:"groupName"`
	Replicas  *int32             `json:"replicas"` // nil: 1
	Template  JobTemplate        `json:"template"`
	DependsOn []JobSetDependency `json:"dependsOn"`
}

// JobSetDependency is a job that has to be ready or complete first.
type JobSetDependency struct {
	At
	Name   string `json:"name"`
	Status string `json:"status"` // Ready, Complete
}

// JobSetNetwork are the names of the pods of a JobSet.
type JobSetNetwork struct {
	At
	EnableDNSHostnames       *bool  `json:"enableDNSHostnames"`
	Subdomain                string `json:"subdomain"`
	PublishNotReadyAddresses *bool  `json:"publishNotReadyAddresses"`
}

// JobSetSuccess says which jobs have to succeed; no targets: all jobs.
type JobSetSuccess struct {
	At
	Operator             string   `json:"operator"` // All, Any
	TargetReplicatedJobs []string `json:"targetReplicatedJobs"`
}

// JobSetFailure says how often the whole JobSet starts again.
type JobSetFailure struct {
	At
	MaxRestarts int32               `json:"maxRestarts"`
	Rules       []JobSetFailureRule `json:"rules"`
}

// JobSetFailureRule is one rule of a JobSetFailure.
type JobSetFailureRule struct {
	At
	Name                        string   `json:"name"`
	Action                      string   `json:"action"`
	OnJobFailureReasons         []string `json:"onJobFailureReasons"`
	OnJobFailureMessagePatterns []string `json:"onJobFailureMessagePatterns"`
	TargetReplicatedJobs        []string `json:"targetReplicatedJobs"`
}

// JobSetStartup says in which order jobs start.
type JobSetStartup struct {
	At
	StartupPolicyOrder string `json:"startupPolicyOrder"` // AnyOrder, InOrder
}

// JobSetCoordinator is the pod that the others find.
type JobSetCoordinator struct {
	At
	ReplicatedJob string `json:"replicatedJob"`
	JobIndex      int32  `json:"jobIndex"`
	PodIndex      int32  `json:"podIndex"`
}

// LeaderWorkerSet is a LeaderWorkerSet of leaderworkerset.x-k8s.io/v1.
type LeaderWorkerSet struct {
	Head
	Spec LeaderWorkerSetSpec `json:"spec"`
}

// LeaderWorkerSetSpec are groups of a leader and its workers.
type LeaderWorkerSetSpec struct {
	At
	Replicas             *int32               `json:"replicas"` // nil: 1
	LeaderWorkerTemplate LeaderWorkerTemplate `json:"leaderWorkerTemplate"`
	NetworkConfig        *LeaderWorkerNetwork `json:"networkConfig"`
}

// LeaderWorkerTemplate is one group.
type LeaderWorkerTemplate struct {
	At
	LeaderTemplate *PodTemplate `json:"leaderTemplate"` // nil: the WorkerTemplate
	WorkerTemplate PodTemplate  `json:"workerTemplate"`
	Size           *int32       `json:"size"` // pods with the leader; nil: 1
	RestartPolicy  string       `json:"restartPolicy"`
}

// LeaderWorkerNetwork are the names of the pods of a LeaderWorkerSet.
type LeaderWorkerNetwork struct {
	At
	SubdomainPolicy string `json:"subdomainPolicy"` // Shared, UniquePerReplica
}
