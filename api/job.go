package api

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// The forms in which work is submitted.
const (
	FormSbatch  = "sbatch"  // Text is an sbatch script, Args are sbatch's options
	FormNative  = "native"  // Text is native YAML or JSON
	FormCommand = "command" // Command runs in every task; Args are sbatch's options for its shape

	FormManifest = "manifest" // Text is a manifest for Kubernetes, in YAML or JSON; Args are options of sbatch that do not say what its pods ask for

	FormAllocation = "allocation" // nothing runs: the job keeps nodes for steps; Args are sbatch's options for its shape
)

// Submit asks for a job. The server reads the text; the owner is whoever is
// authenticated, never what the request says.
type Submit struct {
	Form       string          `json:"form" enum:"sbatch,native,command,allocation,manifest"`
	File       string          `json:"file,omitempty" doc:"name of the file for messages; - is standard input"`
	Text       string          `json:"text,omitempty" doc:"the script or specification, as it is"`
	Work       string          `json:"work,omitempty" doc:"of a manifest in which several things run: KIND/NAME of the one that is meant"`
	Args       []string        `json:"args,omitempty" doc:"options of sbatch, which outrank the environment and the text"`
	ScriptArgs []string        `json:"script_args,omitempty" doc:"arguments of the script"`
	Command    []string        `json:"command,omitempty"`
	Env        []string        `json:"env,omitempty" doc:"NAME=VALUE that the job sees besides its environment; they outrank it and the text"`
	Image      string          `json:"image,omitempty" doc:"container image of the job; it outranks the text. Pools without containers refuse it"`
	Notify     *job.Notify     `json:"notify,omitempty" doc:"webhook of the job; it outranks the text"`
	Rerun      string          `json:"rerun,omitempty" enum:"same-nodes,exclude-failed" doc:"on which nodes it runs again after a failure or a requeue; it outranks the text. Empty: as the text says, else on any"`
	Step       []string        `json:"step,omitempty" doc:"of a command: options of srun for the step that runs it"`
	Client     string          `json:"client,omitempty" doc:"of a command or an allocation: the unix socket of the client on the server's machine that runs the steps of the job itself; engines elsewhere run the command"`
	Lease      int64           `json:"lease,omitempty" minimum:"0" doc:"of an allocation: seconds after which it ends unless its client renews it (POST /v1/jobs/{job}/lease); 0: it lives to its time limit"`
	KillBad    *bool           `json:"kill_on_bad_exit,omitempty" doc:"of a command: whether a task that fails ends the others; left out: it does"`
	Environ    []string        `json:"environ,omitempty" doc:"NAME=VALUE of the submitter"`
	Dir        string          `json:"dir" doc:"working directory of the submitter, absolute"`
	Host       string          `json:"host,omitempty"`
	Umask      *uint32         `json:"umask,omitempty"`
	Limits     []string        `json:"limits,omitempty" doc:"NAME=VALUE of the submitter's soft resource limits, as NOFILE=1024; --propagate chooses which of them the job gets. A native text and an allocation have none of them"`
	Strict     bool            `json:"strict,omitempty" doc:"refuse what would only be warned of"`
	TestOnly   bool            `json:"test_only,omitempty" doc:"check and estimate, keep nothing"`
	Preview    bool            `json:"preview,omitempty" doc:"as test_only, and say what the engine of its pool would hand over"`
	Pool       string          `json:"pool,omitempty" doc:"that runs it; it outranks the text. Empty: what the text says, else the first pool"`
	Pods       string          `json:"pods,omitempty" enum:"node,task" doc:"of what it has a pod each, in pools of Kubernetes; it outranks the text. Empty: what the text says, else node"`
	Provenance *job.Provenance `json:"provenance,omitempty" doc:"what the client recorded of files and working copy"`

	Schedule *ScheduleTimes `json:"schedule,omitempty" doc:"run it at these times, which outrank the text's; left out: as the text says, else once"`
	Once     bool           `json:"once,omitempty" doc:"run it once, now, even if the text has a schedule"`

	Upload *job.Upload `json:"upload,omitempty" doc:"the directory that comes with the job; its archive was sent before (PUT /v1/uploads/{digest})"`

	// Files are the contents of files that options name (--nodefile, --export-file),
	// by name as written. The server reads no file of a user.
	Files map[string]string `json:"files,omitempty" doc:"contents of files that options name (--nodefile, --export-file), by name as written"`
}

// Uploads is what the server takes of directories that come with jobs, in bytes.
type Uploads struct {
	Most  int64 `json:"most" doc:"that one archive may have"`
	Room  int64 `json:"room" doc:"that all of the caller may have"`
	Used  int64 `json:"used" doc:"that his have now, each counted as 64 KiB at least; what no job needs makes way for others"`
	There bool  `json:"there,omitempty" doc:"the archive that was asked for is there"`
}

// Submitted is the answer to Submit. With TestOnly there is no ID.
type Submitted struct {
	ID       job.ID    `json:"id,omitempty"`
	Tasks    int       `json:"tasks,omitempty" doc:"of an array"`
	Name     string    `json:"name,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
	Estimate *Estimate `json:"estimate,omitempty"` // TestOnly
	Preview  *Preview  `json:"preview,omitempty"`

	Service  *SubmittedService  `json:"service,omitempty" doc:"of a text that describes a service: there is no ID then"`
	Schedule *SubmittedSchedule `json:"schedule,omitempty" doc:"of work that runs at times: there is no ID then"`

	Pool   string      `json:"pool,omitempty" doc:"of a job that names none, where there are several"`
	Chosen *job.Choice `json:"chosen,omitempty" doc:"why that one"`

	// What options of sbatch in the text or in the environment ask of the command.
	TestOnly bool `json:"test_only,omitempty" doc:"nothing was kept: asked for here or by --test-only"`
	Wait     bool `json:"wait,omitempty" doc:"--wait: stay until the job has ended"`
	Parsable bool `json:"parsable,omitempty" doc:"--parsable: print the number alone"`
	Quiet    bool `json:"quiet,omitempty" doc:"--quiet: print errors alone"`
}

// Estimate is when and where a job would start.
type Estimate struct {
	Start   time.Time       `json:"start,omitzero"`
	Nodes   []string        `json:"nodes,omitempty"`
	Part    string          `json:"partition,omitempty" doc:"of these nodes"`
	CPUs    float64         `json:"cpus,omitempty"`
	Reasons []reason.Reason `json:"reasons,omitempty"`
}

// Preview is a job as it would be handed over to the scheduler of its pool. Numbers that there
// are not yet stand as 0.
type Preview struct {
	Pool    string     `json:"pool"`
	Script  string     `json:"script" doc:"with what is added to it"`
	Args    []string   `json:"args,omitempty" doc:"of the script"`
	Options [][]string `json:"options" doc:"of sbatch, which outrank the script, of each component of the job"`
	Notes   []string   `json:"notes,omitempty" doc:"what is changed and why, and what is not known yet"`
}

// Warning is something in the request that will not have the effect that its
// writer may expect.
type Warning struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Col     int    `json:"col,omitempty"`
	Option  string `json:"option,omitempty"`
	Message string `json:"message"`
}

// Job is a job as it is shown whole.
type Job struct {
	ID      job.ID         `json:"id"`
	Name    string         `json:"name" doc:"how it is shown: 7, or 7_3 for a task of an array"`
	Array   *job.ArrayTask `json:"array,omitempty"`
	State   string         `json:"state" doc:"PENDING, RUNNING, … (docs/reference/states.md)"`
	Flags   []string       `json:"flags,omitempty" doc:"CONFIGURING, COMPLETING, REQUEUED, HELD, STOPPING, UNCERTAIN, LAUNCH_FAILED, SPECIAL_EXIT"`
	Attempt uint32         `json:"attempt"`
	Exit    job.ExitCode   `json:"exit"`
	Asks    *Asks          `json:"asks,omitempty" doc:"what it asks for in all, with units; prefer it to the same in spec"`
	Spec    *job.Spec      `json:"spec" doc:"what was asked for, as the journal has it: durations in nanoseconds, CPUs in thousandths"`

	Submitted time.Time `json:"submitted"`
	Eligible  time.Time `json:"eligible,omitzero"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Priority  int64     `json:"priority"`

	Why      *reason.Reason `json:"why,omitempty" doc:"the first reason why it waits"`
	Pool     string         `json:"pool,omitempty"`
	Claims   []Claim        `json:"claims,omitempty" doc:"what it holds or last held, rank order"`
	Tasks    []Task         `json:"tasks,omitempty"`
	Files    []string       `json:"files,omitempty" doc:"output files that exist"`
	Message  string         `json:"message,omitempty" doc:"how the attempt went wrong"`
	Failure  string         `json:"failure,omitempty" doc:"of a job that has ended: whose failure the end was: job, node or engine"`
	FailedOn []string       `json:"failed_on,omitempty" doc:"with failure: the nodes on which it failed, if that is known"`
	Saved    time.Time      `json:"saved,omitzero" doc:"when it last reported a checkpoint"`
	SavedAs  string         `json:"saved_as,omitempty" doc:"and what: a name in its checkpoint directory or an absolute one"`
	StartsBy time.Time      `json:"starts_by,omitzero" doc:"promised by the scheduler to a job that waits"`
	Idle     []Idle         `json:"idle,omitempty" doc:"nodes on which it holds devices and does nothing"`
	Retried  int            `json:"retried,omitempty" doc:"retries that began or that it waits for, of spec.retries.count"`
	Past     []PastAttempt  `json:"past,omitempty" doc:"attempts before the last one, oldest first; the last 20 of them"`
	Moved    *PoolMoves     `json:"moved,omitempty" doc:"how it moved between pools while it waited; left out: it did not"`
	Used     *rusage.Record `json:"used,omitempty" doc:"what the last attempt used, once it has ended; left out: nobody measured it"`
}

// PoolMoves is how a job moved between pools while it waited.
type PoolMoves struct {
	Count int       `json:"count" doc:"moves so far"`
	Left  int       `json:"left" doc:"moves that it may still make; 0 of one that does not wait"`
	Next  time.Time `json:"next,omitzero" doc:"it does not move again before"`
	Last  *PoolMove `json:"last,omitempty"`
	Under *PoolMove `json:"under,omitempty" doc:"a move that is made once the scheduler of its pool has given it back"`
}

// PoolMove is one of them.
type PoolMove struct {
	From string    `json:"from,omitempty" doc:"left out: not known"`
	To   string    `json:"to,omitempty" doc:"left out: not known"`
	At   time.Time `json:"at,omitzero"`
	Why  string    `json:"why,omitempty"`
}

// Asks is what a job asks for in all, over all of its nodes. Each number has its unit in its name.
type Asks struct {
	Nodes     int     `json:"nodes" doc:"at least so many"`
	MostNodes int     `json:"nodes_max,omitempty" doc:"at most so many, where it asks for a range"`
	Tasks     int     `json:"tasks"`
	CPUs      float64 `json:"cpus" doc:"in all"`
	Memory    int64   `json:"memory_bytes,omitempty" doc:"in all; 0: it does not say"`
	GPUs      int     `json:"gpus,omitempty" doc:"in all"`
	GPUType   string  `json:"gpu_type,omitempty"`
	TimeLimit float64 `json:"time_limit_seconds,omitempty" doc:"0: none"`
	TimeMin   float64 `json:"time_min_seconds,omitempty" doc:"the limit may be lowered to this; 0: it may not"`
}

// PastAttempt is an attempt of a job after which the job waited to run again.
type PastAttempt struct {
	Attempt uint32       `json:"attempt"`
	Started time.Time    `json:"started,omitzero"`
	Ended   time.Time    `json:"ended"`
	Cause   string       `json:"cause" doc:"exited, out-of-memory, node-lost, …"`
	Exit    job.ExitCode `json:"exit"`
	Nodes   string       `json:"nodes,omitempty" doc:"host list"`
	Message string       `json:"message,omitempty" doc:"how it went wrong"`
	Retry   int          `json:"retry,omitempty" doc:"number of the retry that followed; 0: it was requeued for another reason"`

	Failure  string `json:"failure,omitempty" doc:"whose failure the end was: job, node or engine; left out: nobody's"`
	FailedOn string `json:"failed_on,omitempty" doc:"host list of the nodes on which it failed; left out: not known"`
}

// Idle is a node on which a running job holds devices and does nothing.
type Idle struct {
	Node      string    `json:"node"`
	Devices   int       `json:"devices" doc:"that it holds there"`
	Processes int       `json:"processes" doc:"of the job that live there"`
	Since     time.Time `json:"since" doc:"its processes have used no CPU time, or there are none; to the length of a look, and no longer than the server runs"`
}

// Claim is what a task group of a job takes from one node.
type Claim struct {
	Node    string  `json:"node"`
	Group   int     `json:"group,omitempty"`
	Tasks   int     `json:"tasks"`
	CPUs    float64 `json:"cpus"`
	Memory  int64   `json:"memory" doc:"bytes"`
	Devices []int   `json:"devices,omitempty"`
	Unnamed int     `json:"unnamed,omitempty" doc:"devices of which nobody said which they are: the pool's own scheduler chose them"`
	Whole   bool    `json:"whole,omitempty"`
}

// Task is one task of one step of a job; the batch script is step -1.
type Task struct {
	Step    int          `json:"step"`
	Rank    int          `json:"rank"`
	Node    string       `json:"node"`
	Running bool         `json:"running,omitempty"`
	Started time.Time    `json:"started,omitzero"`
	Ended   time.Time    `json:"ended,omitzero"`
	Exit    job.ExitCode `json:"exit"`
	Cause   string       `json:"cause,omitempty"`
	Log     bool         `json:"log,omitempty" doc:"there is a log of its own"`
	Name    string       `json:"name,omitempty" doc:"of the step"`
}

// Jobs is a page of jobs.
type Jobs struct {
	Jobs   []Job  `json:"jobs"`
	Next   string `json:"next,omitempty" doc:"cursor of the next page; empty at the end"`
	Total  int    `json:"total,omitempty" doc:"of a sorted list: rows on all pages"`
	Change uint64 `json:"change" doc:"the last event that the list reflects, for watch"`
}

// JobCounts counts jobs that match a selection. Of each kind it has the 100 names with the most jobs.
type JobCounts struct {
	Total      int            `json:"total"`
	States     map[string]int `json:"states" doc:"of those that match, whatever their state"`
	Reasons    map[string]int `json:"reasons" doc:"of those that wait, by the code of the first reason"`
	Pools      map[string]int `json:"pools"`
	Partitions map[string]int `json:"partitions"`
	Users      map[string]int `json:"users"`
	Accounts   map[string]int `json:"accounts"`
	Change     uint64         `json:"change" doc:"the last event that the counts reflect, for watch"`
}

// Select names jobs: those of IDs (7, 7_3, 7_[1-4,9], each alone), or, without
// IDs, all live ones that match everything else that is set. An empty selection
// is an error, never everything.
type Select struct {
	IDs        []string `json:"ids,omitempty"`
	Users      []string `json:"users,omitempty"`
	Accounts   []string `json:"accounts,omitempty"`
	Partitions []string `json:"partitions,omitempty"`
	QOS        []string `json:"qos,omitempty"`
	Names      []string `json:"names,omitempty"`
	States     []string `json:"states,omitempty"`
	Nodes      []string `json:"nodes,omitempty"`
	Pools      []string `json:"pools,omitempty" doc:"pools that run the jobs, or in which they wait"`
	All        bool     `json:"all,omitempty" doc:"every live job that the caller may change"`
}

// Verbs that change jobs.
const (
	VerbCancel  = "cancel"
	VerbHold    = "hold"
	VerbRelease = "release"
	VerbRequeue = "requeue"
	VerbSignal  = "signal"
	VerbSuspend = "suspend"
	VerbResume  = "resume"
	VerbUpdate  = "update"
	VerbTop     = "top"
	VerbSaved   = "checkpoint-done"
)

// Change asks for the same change of all jobs of a selection, in one durable step.
type Change struct {
	Select    Select   `json:"select"`
	Verb      string   `json:"verb" enum:"cancel,hold,release,requeue,signal,suspend,resume,update,top,checkpoint-done"`
	Signal    string   `json:"signal,omitempty" doc:"name or number: of signal, or first signal of cancel"`
	BatchOnly bool     `json:"batch_only,omitempty" doc:"signal the batch script alone"`
	Full      bool     `json:"full,omitempty" doc:"signal the batch script and all tasks"`
	Grace     *float64 `json:"grace,omitempty" doc:"seconds between the signal to end and the kill; 0 kills at once"`
	Hold      bool     `json:"hold,omitempty" doc:"requeue: and hold it"`
	Special   bool     `json:"special,omitempty" doc:"requeue, with hold: in Slurm's state SPECIAL_EXIT"`
	Firm      *bool    `json:"firm,omitempty" doc:"hold: only an administrator may release it; left out: yes if an administrator holds somebody else's job"`
	Reason    string   `json:"reason,omitempty"`
	Saved     string   `json:"saved,omitempty" doc:"checkpoint-done: what was saved, a name in the job's checkpoint directory or an absolute one; left out: the directory"`
	Update    *Update  `json:"update,omitempty"`
}

// Update are the fields of a job that may change after submission; nil leaves a
// field. Most may change only while the job waits; the time limit may always be
// lowered by the owner and raised by an administrator.
type Update struct {
	Name       *string    `json:"name,omitempty"`
	Comment    *string    `json:"comment,omitempty"`
	Account    *string    `json:"account,omitempty"`
	Partitions []string   `json:"partitions,omitempty"`
	QOS        *string    `json:"qos,omitempty"`
	TimeLimit  *float64   `json:"time_limit,omitempty" doc:"seconds; 0 for none"`
	TimeMin    *float64   `json:"time_min,omitempty"`
	Begin      *time.Time `json:"begin,omitempty"`
	Deadline   *time.Time `json:"deadline,omitempty"`
	Depends    *string    `json:"depends,omitempty" doc:"as sbatch --dependency; empty for none"`
	Priority   *int64     `json:"priority,omitempty"`
	Nice       *int64     `json:"nice,omitempty"`
	Requeue    *bool      `json:"requeue,omitempty"`
	MaxRunning *uint32    `json:"max_running,omitempty" doc:"of an array"`
	Nodes      *job.Range `json:"nodes,omitempty"`
	NodeList   *[]string  `json:"node_list,omitempty"`
	Exclude    *[]string  `json:"exclude,omitempty"`
	Features   *string    `json:"features,omitempty"`
}

// Changed says what became of each job of a Change.
type Changed struct {
	Matched int           `json:"matched"`
	Changed int           `json:"changed"`
	Errors  []ChangeError `json:"errors,omitempty" doc:"jobs that were not changed, and why"`
	Names   []string      `json:"names,omitempty" doc:"the changed jobs, at most 1000"`
	// Unchanged are among Matched, and neither among Changed nor among Errors.
	Unchanged []Unchanged `json:"unchanged,omitempty" doc:"jobs that were as asked before, at most 1000"`
}

// Unchanged is one job that a change would leave as it is.
type Unchanged struct {
	Name string `json:"name"`
	Why  string `json:"why" doc:"a sentence: job 7 had ended already (COMPLETED)"`
}

// ChangeError is one job that could not be changed.
type ChangeError struct {
	Name  string `json:"name"`
	Error Error  `json:"error"`
}

// Error is the body of every response with an error status (application/problem+json).
type Error struct {
	Status int       `json:"status"`
	Title  string    `json:"title" doc:"the kind of fault: invalid request, not found, conflict, permission, unavailable, unsupported, exhausted, internal"`
	Detail string    `json:"detail"`
	Remedy string    `json:"remedy,omitempty"`
	Errors []Located `json:"errors,omitempty" doc:"places in the submitted text"`

	Reasons []reason.Reason `json:"reasons,omitempty" doc:"of a job that could not run here even if nothing else did: why"`
}

// Located is an error with its place in a submitted text.
type Located struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Col     int    `json:"col,omitempty"`
	Len     int    `json:"len,omitempty"`
	Text    string `json:"text,omitempty" doc:"the line as written"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Why is everything that keeps a job waiting.
type Why struct {
	Job      job.ID          `json:"job"`
	Name     string          `json:"name"`
	State    string          `json:"state"`
	Since    time.Time       `json:"since,omitzero"`
	Reasons  []reason.Reason `json:"reasons"`
	Lines    []string        `json:"lines" doc:"the reasons as text, one line each"`
	StartsBy time.Time       `json:"starts_by,omitzero" doc:"promised, if every running job uses its whole limit"`
	Expected *Expected       `json:"expected,omitempty"`
	Holders  []Holder        `json:"holders,omitempty" doc:"running jobs that have what it needs, those that end first first; at most 8"`
	Changes  []Smaller       `json:"changes,omitempty" doc:"with each of these, alone, it would start now"`

	Here      *PoolStart  `json:"here,omitempty" doc:"of a job that waits for its pool's own scheduler: when that starts it"`
	Elsewhere []PoolStart `json:"elsewhere,omitempty" doc:"the other pools to which it may move, with when they would start it now"`
}

// PoolStart is when a pool would start a job.
type PoolStart struct {
	Pool  string    `json:"pool"`
	Start time.Time `json:"start,omitzero" doc:"left out: nobody knows"`
	By    string    `json:"by,omitempty" enum:"plan,engine,pace" doc:"whose estimate it is: what runs and waits in the pool, the pool's own scheduler, how long the last jobs waited for that"`
	Why   string    `json:"why,omitempty" doc:"nobody knows"`
	Lacks string    `json:"lacks,omitempty" doc:"why the pool's own scheduler did not say it, and the estimate is another one"`
}

// Expected is when a waiting job is expected to start.
type Expected struct {
	Start time.Time `json:"start"`
	From  time.Time `json:"from,omitzero" doc:"it starts between from and to in 80 % of cases"`
	To    time.Time `json:"to,omitzero"`
	Late  float64   `json:"late_seconds,omitempty" doc:"by how much estimates of the past week were late in the median; negative: early"`
	Known int       `json:"known,omitempty" doc:"estimates that from, to and late_seconds are known from"`
}

// Holder is a running job that has what another one needs.
type Holder struct {
	Job   string    `json:"job,omitempty" doc:"not there if the caller may not see it"`
	User  string    `json:"user,omitempty"`
	Until time.Time `json:"until,omitzero" doc:"when its time limit ends it"`
	Nodes []string  `json:"nodes"`
}

// Smaller is a change of a request.
type Smaller struct {
	Option string `json:"option" doc:"of sbatch, without dashes"`
	Value  string `json:"value,omitempty" doc:"to give it; empty: leave the option out"`
	Of     string `json:"of,omitempty" doc:"what it is now"`
}

// LogEnd is the trailer of a log (GET /v1/jobs/{job}/logs): "end", "job-ended", or the error that cut it off.
const LogEnd = "Cox-Log-End"

// LogFrom is the header of a log that says with which byte of the output it begins.
const LogFrom = "Cox-Log-From"

// FilesEnd is the trailer of fetched files (GET /v1/jobs/{job}/files): "end" where all of them came.
const FilesEnd = "Cox-Files-End"
