package api

// Settings are what the configuration and the rules in force say for all jobs. Times are
// seconds. What a server does not know is left out.
type Settings struct {
	// Of the configuration.
	StateDir         string  `json:"state_dir,omitempty" doc:"state directory of the server"`
	Listen           string  `json:"listen,omitempty" doc:"address for clients with a token"`
	UID              int     `json:"uid" doc:"user as whom the server runs"`
	Memory           float64 `json:"memory" doc:"how long ended jobs stay in lists of live jobs"`
	Grace            float64 `json:"grace" doc:"between the signal to end and the kill"`
	Unkillable       float64 `json:"unkillable" doc:"after SIGKILL, until a process that still lives counts as stuck"`
	MaxArray         uint32  `json:"max_array" doc:"array indices stay below it"`
	KillOnInvalidDep bool    `json:"kill_on_invalid_dep" doc:"jobs whose dependency can never be met end, unless they say otherwise"`
	Private          bool    `json:"private" doc:"users see only their own jobs"`
	Prolog           string  `json:"prolog,omitempty" doc:"program before the first task of a job on each node"`
	Epilog           string  `json:"epilog,omitempty" doc:"program after the last task of a job on each node"`
	HookTimeout      float64 `json:"hook_timeout" doc:"of each of these programs"`
	MailDomain       string  `json:"mail_domain,omitempty" doc:"appended to user names without one"`

	// Of the rules in force.
	Accounts        bool              `json:"accounts" doc:"accounts, limits and QOS are enforced"`
	Requeue         bool              `json:"requeue" doc:"batch scripts are queued again unless they say otherwise"`
	RequeueExit     string            `json:"requeue_exit,omitempty" doc:"exit codes after which batch scripts are queued again"`
	RequeueExitHold string            `json:"requeue_exit_hold,omitempty" doc:"exit codes after which they are queued again and held"`
	AppendOutput    bool              `json:"append_output" doc:"output files are appended to unless the job says otherwise"`
	Backfill        bool              `json:"backfill" doc:"jobs may pass those before them that have to wait"`
	PreemptBy       []string          `json:"preempt_by,omitempty" doc:"what gives the right to take running jobs' place: qos, partition, priority, quota"`
	PreemptMode     string            `json:"preempt_mode" doc:"what happens to them: off, requeue, cancel, suspend, checkpoint"`
	PreemptExempt   float64           `json:"preempt_exempt" doc:"jobs that ran shorter are left alone"`
	Weights         map[string]uint32 `json:"weights,omitempty" doc:"factors of the priority: age, association, fair_share, job_size, partition, qos, tres/NAME"`
	PriorityMaxAge  float64           `json:"priority_max_age" doc:"waiting longer than that counts no more"`
	FavorSmall      bool              `json:"favor_small" doc:"job_size counts for asking for less"`
	HalfLife        float64           `json:"half_life" doc:"after which usage counts half; 0: it does not decay"`
	UsagePeriod     float64           `json:"usage_period" doc:"between two recalculations of usage"`
	UsageReset      string            `json:"usage_reset,omitempty" doc:"when all usage is forgotten: daily, weekly, monthly, quarterly, yearly; left out: never"`
}
