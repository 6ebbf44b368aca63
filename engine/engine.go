// Package engine is the contract between the control plane and what really runs
// work: processes of this machine, a Slurm cluster, a Kubernetes cluster.
//
// An engine knows nothing of policy. It starts what it is told to start, whole or
// not at all, says what became of it, and forgets only when told. Every call is
// idempotent by Ref, so a caller that got no answer repeats the call. An error of
// kind fault.Unavailable means "the outcome is unknown"; only fault.NotFound says
// that the engine is certain not to have the work.
//
// A launch without an answer may arrive late, when its caller has given it up and
// others have what it was to run on. So an attempt can be fenced: a Stop that does
// not find it, and Forget, make sure that it never begins afterwards. Only such a
// Stop, a Forget or a report that it is Gone proves that an attempt holds nothing;
// an Inspect that does not find it is no proof (docs/explanation/design/0005).
//
// engine/enginetest is the conformance suite that every driver passes.
package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// Ref names one attempt of one allocation. Neither number is ever used again.
type Ref struct {
	Allocation uint64 `json:"allocation"`
	Attempt    uint32 `json:"attempt"`
}

// String is "12.1".
func (r Ref) String() string { return fmt.Sprintf("%d.%d", r.Allocation, r.Attempt) }

// GangAbility says what an engine guarantees about starting coupled tasks.
type GangAbility string

// The abilities.
const (
	GangStrict      GangAbility = "strict"      // all or none, always
	GangApproximate GangAbility = "approximate" // all or none in quota, not in placement
	GangNone        GangAbility = "none"        // one by one
)

// Abilities of an engine, found out at start-up rather than at the first job.
type Abilities struct {
	Gang      GangAbility `json:"gang"`
	Placed    bool        `json:"placed"`    // obeys our choice of nodes and devices
	Delegated bool        `json:"delegated"` // chooses nodes itself
	Suspend   bool        `json:"suspend"`
	Isolates  bool        `json:"isolates"` // enforces limits of memory and CPU
	Proves    bool        `json:"proves"`   // can prove that an attempt's processes are gone even if they resist
	Elastic   bool        `json:"elastic"`  // runs what is added to a gang while that runs, and tells it; see Regrouper
}

// Info is what an engine says of itself.
type Info struct {
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Abilities Abilities `json:"abilities"`
	Notes     []string  `json:"notes,omitempty"` // what is missing here and what would help, one sentence each
}

// Launch is everything that an engine needs to start one attempt. The caller
// does not write to it after the call.
type Launch struct {
	Ref     Ref
	Job     *job.Job      // a snapshot; Spec included
	Claims  []fleet.Claim // ranks go over these in order; group by group, node by node
	Script  []byte        // contents of a batch script; nil for a Direct program
	Env     []string      // NAME=VALUE as submitted, before Slurm's variables are added
	Grace   time.Duration // between the signal to end and the kill, at the time limit
	Saved   Saved         // what earlier attempts of the job reported last
	Adds    *Joining      // to a gang that runs already; nil: it is a gang of its own
	Secrets []Secret      // of the job's owner, in the order of job.Spec.Secrets
	// Avoid are nodes of the engine's on machines that its pool does not own: where the engine's own scheduler
	// chooses (Delegator), it keeps the attempt off them. They are no part of what is launched: a repeated launch
	// may name others, and the first one counts.
	Avoid []string
	Ahead []job.ID // of jobs that wait for a limit of the engine's (Limiter), those that come before it in the queue, in its order
}

// Secret is a secret with its value. An engine writes it to no log of its own, and forgets it with the
// attempt.
type Secret struct {
	job.Secret
	Value []byte
}

// SecretTaker is an optional ability: jobs with job.Spec.Secrets. An engine without it is given none of them.
type SecretTaker interface {
	// TakesSecrets reports whether jobs may have them. Nobody is asked: its settings say it.
	TakesSecrets() bool
}

// Joining says what an attempt is added to, on an engine that is Elastic. It is a gang
// of its own in all else: its tasks start together, it is stopped and reported by itself.
type Joining struct {
	To    Ref `json:"to"`
	First int `json:"first"` // rank, in the gang that it joins
}

// Roster is who is in a gang now.
type Roster struct {
	Generation uint64   `json:"generation"` // grows with every change
	Job        job.ID   `json:"job"`
	Members    []Member `json:"members"` // those that the gang started with first
}

// Member is a part of a gang on one node, whose tasks have the ranks from Rank on.
type Member struct {
	Node    string `json:"node"`
	Address string `json:"address,omitempty"` // filled in by the engine
	Group   int    `json:"group"`
	Rank    int    `json:"rank"`
	Tasks   int    `json:"tasks"`
	Leaving bool   `json:"leaving,omitempty"` // it is being ended
}

// Regrouper is an optional ability (Abilities.Elastic). Regroup writes for the tasks of
// a running gang who is in it now: into the file that COX_GANG_FILE names, whole or not
// at all. An older roster than what stands there is no error, and changes nothing.
type Regrouper interface {
	Regroup(ctx context.Context, ref Ref, r Roster) error
}

// Phase is how far an attempt is. Phases only grow, but for Uncertain.
type Phase uint8

// The phases.
const (
	Accepted Phase = iota + 1 // the launch is taken; parts of it may exist
	Ready                     // every node of the gang is there, nothing of the program runs yet
	Running                   // the barrier was opened for all
	Ending                    // a signal to end was sent or part of it ended; processes may live
	Ended                     // it ended and nothing of it lives: Report.Gone is the proof
)

// String is the phase's name.
func (p Phase) String() string {
	names := [...]string{"unknown", "accepted", "ready", "running", "ending", "ended"}
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// Cause says why an attempt ended.
type Cause string

// The causes.
const (
	Exited       Cause = "exited"        // by itself; see Report.Exit
	Stopped      Cause = "stopped"       // by Stop
	TimedOut     Cause = "timed-out"     // its time limit
	OutOfMemory  Cause = "out-of-memory" // the kernel, at its memory limit
	NodeLost     Cause = "node-lost"     // a node or its supervisor died
	LaunchFailed Cause = "launch-failed" // it never started; what had started was undone
	Cancelled    Cause = "cancelled"     // by a person, in the engine's own scheduler
	Preempted    Cause = "preempted"     // by the engine's own scheduler, for others
	Refused      Cause = "refused"       // it never started, and never will as it is: the engine's own scheduler refuses what it asks for, or its program cannot be run
	Unready      Cause = "unready"       // the same, and not for anything in the job: the engine had no room for its records, a node did not answer
	Limited      Cause = "limited"       // the same, for a limit that others set there (a quota of Kubernetes): Message says which. It waits until there is room; see Limiter
)

// Report is the state of one attempt as its engine knows it.
type Report struct {
	Ref     Ref          `json:"ref"`
	Job     job.ID       `json:"job"`
	Version uint64       `json:"version"` // grows with every change of this attempt; older reports are to be ignored
	Phase   Phase        `json:"phase"`
	Started time.Time    `json:"started,omitzero"` // when the barrier was opened
	Ended   time.Time    `json:"ended,omitzero"`
	Cause   Cause        `json:"cause,omitempty"`
	Exit    job.ExitCode `json:"exit"`
	Message string       `json:"message,omitempty"` // for people: which rank, which node, what the system said
	Native  string       `json:"native,omitempty"`  // what the engine's own scheduler calls it: Slurm's number; empty: nothing
	Nodes   []NodeReport `json:"nodes,omitempty"`
	Tasks   []TaskReport `json:"tasks,omitempty"` // every task seen so far, by step and rank
	Files   []string     `json:"files,omitempty"` // absolute names of output files that exist

	// ExpectedStart is when the engine's own scheduler expects to start an attempt that waits for it; zero: it
	// does not say.
	ExpectedStart time.Time `json:"expected_start,omitzero"`

	// Held says that somebody holds an attempt that waits for the engine's own scheduler, there.
	Held bool `json:"held,omitempty"`

	// Gone says that nothing of the attempt lives, proved: its cgroups are empty
	// or every process of its tree was waited for. Only this frees what it holds.
	Gone bool `json:"gone,omitempty"`
	// Uncertain says that the engine cannot tell what lives.
	Uncertain bool `json:"uncertain,omitempty"`
	// Saved is what the attempt reported last by the file in its checkpoint directory; see
	// Keeper. nil: nothing.
	Saved *Saved `json:"saved,omitempty"`
	// Suspended says that every process of it is held; see Suspender.
	Suspended bool `json:"suspended,omitempty"`
	// Used is what the attempt used, once it has ended; nil: nobody measured it. See UsageSampler.
	Used *rusage.Record `json:"used,omitempty"`
	// Image is the digest of the image that the attempt runs in, as the runtime of containers
	// resolved it; empty: it runs in none, or its digest is not known.
	Image string `json:"image,omitempty"`
	// DeviceError is the line in which the node or the job's own output says that a device failed
	// beyond repair; empty: nothing says so. See kit.DeviceError.
	DeviceError string `json:"device_error,omitempty"`
	// Failure says whose fault the end was, and FailedOn on which nodes. Control fills them in when
	// it hears of the end.
	Failure  Failure  `json:"failure,omitempty"`
	FailedOn []string `json:"failed_on,omitempty"`
}

// NodeReport is an attempt's state on one node.
type NodeReport struct {
	Node    string `json:"node"`
	Phase   Phase  `json:"phase"`
	Message string `json:"message,omitempty"`
	PID     int    `json:"pid,omitempty"` // of the supervisor, local engine only

	// Stuck names the processes of the attempt that SIGKILL does not end on this node;
	// "" if there are none. The report is Uncertain then, and new work does not belong
	// on the node.
	Stuck string `json:"stuck,omitempty"`

	// Lost says that the attempt ended because this node or its supervisor was lost, or a device of
	// it failed; or, with Unready, that it did not begin because a check of the node failed.
	Lost bool `json:"lost,omitempty"`
}

// TaskReport is one task of one step; the batch script is step -1, rank 0.
type TaskReport struct {
	Step    int          `json:"step"`
	Rank    int          `json:"rank"`
	Node    string       `json:"node"`
	Running bool         `json:"running,omitempty"`
	PID     int          `json:"pid,omitempty"`
	Started time.Time    `json:"started,omitzero"`
	Ended   time.Time    `json:"ended,omitzero"`
	Exit    job.ExitCode `json:"exit"`
	Cause   Cause        `json:"cause,omitempty"`
	Log     string       `json:"log,omitempty"` // absolute name of the rank's own output copy
	// Name is the step's, as srun has it: --job-name, or the program; empty: not known.
	Name string `json:"name,omitempty"`
}

// BatchStep is TaskReport.Step of the batch script itself. ExternStep is the step under which the
// use of commands beside the tasks (Execer) is counted; it has no tasks of its own.
const (
	BatchStep  = -1
	ExternStep = -2
)

// Stop says how an attempt is to end: Signal at once (0: SIGTERM), SIGKILL after
// Grace. Grace 0 kills at once.
type Stop struct {
	Signal int
	Grace  time.Duration
	Reason string // for people
	Why    Why

	// Drain is how long the signal waits, of an attempt that serves: its endpoints are not ready from now
	// on. Another Stop without it ends the wait. 0, and where nothing runs yet: the signal is sent at once.
	Drain time.Duration
}

// Why is what an attempt is stopped for. The job's output says it, where the engine can.
type Why string

// The causes of a Stop, and of ends that an engine brings about itself.
const (
	OnRequest      Why = "" // somebody asked
	ForTimeLimit   Why = "time-limit"
	ForPreemption  Why = "preemption"
	ForRequeue     Why = "requeue"
	ForNodeFailure Why = "node-failure"
)

// Scope says who gets a signal.
type Scope string

// The scopes.
const (
	ToTasks Scope = "tasks" // tasks of steps, not the batch script
	ToBatch Scope = "batch" // the batch script alone
	ToAll   Scope = "all"
)

// Event is a change of one attempt, in the order in which the engine saw it.
type Event struct {
	Cursor string // opaque; Watch continues after it
	Report Report
}

// Engine is a driver. Implementations are safe for concurrent use; every call
// ends when its context does.
type Engine interface {
	// Info says what the engine is and can do.
	Info(ctx context.Context) (Info, error)
	// Nodes lists the nodes of the engine's pool with their present state.
	Nodes(ctx context.Context) ([]fleet.Node, error)
	// Launch takes an attempt and returns once a crash of the caller cannot undo
	// that. It does not wait for the start. The same Ref again is no error and
	// starts nothing; another Launch under a known Ref is fault.Conflict, and so is
	// one of a fenced Ref, which starts nothing either. A definite refusal is
	// fault.Invalid or fault.Unsupported, and leaves nothing.
	Launch(ctx context.Context, l *Launch) error
	// Stop begins to end an attempt and returns; the end is reported. Stopping an
	// ended attempt is no error, an unknown one is fault.NotFound and fences it: it
	// never begins, over restarts of the engine too.
	Stop(ctx context.Context, ref Ref, s Stop) error
	// Signal sends a signal and nothing more.
	Signal(ctx context.Context, ref Ref, signal int, to Scope) error
	// Inspect reports one attempt; fault.NotFound if it is certain that the
	// engine has nothing of it.
	Inspect(ctx context.Context, ref Ref) (Report, error)
	// List reports every attempt that was not forgotten.
	List(ctx context.Context) ([]Report, error)
	// Watch calls f for every event after the cursor, in order, until ctx ends or
	// f fails. An empty or no longer known cursor begins with the present report
	// of every attempt, so nothing is lost; reports may come twice.
	Watch(ctx context.Context, after string, f func(Event) error) error
	// Forget lets the engine drop what it keeps of an ended attempt, and fences it,
	// as Stop does. Forgetting an attempt that lives is fault.Conflict, an unknown one
	// no error; it is fenced too.
	Forget(ctx context.Context, ref Ref) error
	// Close stops the driver's own goroutines. What it launched goes on.
	Close() error
}

// Suspender is an optional ability (Abilities.Suspend). The time limit of a suspended
// attempt waits. Suspending what is suspended, or has ended, is no error.
//
// Both may be carried out after they have answered; reports say when. Once Suspend has
// answered, what Inspect then says, and every report of that version or a later one, is
// about this Suspend: it says Suspended only if the processes are held and no Resume from
// before is still to let them go. Reports of earlier versions prove nothing. That an attempt
// is not Suspended does not prove that it goes on. A call that may be lost is
// fault.Unavailable.
type Suspender interface {
	Suspend(ctx context.Context, ref Ref) error
	Resume(ctx context.Context, ref Ref) error
}

// Relimiter is an optional ability: the time limit of an attempt can be changed after its launch.
type Relimiter interface {
	// Relimit sets the limit, which counts from the start of the attempt as the one of its
	// launch did; 0: none. One that has passed ends the attempt at once. It is no error for an
	// attempt that has ended, and repeating it does no harm. fault.Unavailable: not sure yet.
	Relimit(ctx context.Context, ref Ref, limit time.Duration) error
}

// UsageSampler is an optional ability: what a running attempt has used so far.
type UsageSampler interface {
	// Usage measures it, or returns what was measured a few seconds ago; nil: nothing is known. Of
	// an attempt that does not run it is fault.Conflict. fault.Unsupported says why attempts of this pool are never
	// measured.
	Usage(ctx context.Context, ref Ref) (*rusage.Record, error)
}

// UsageOrigin is an optional ability of a UsageSampler: who measures. Without it, that is the agent in pods.
type UsageOrigin interface {
	// MeasuredBy names it in one word, for series of jobs.
	MeasuredBy() string
}

// PodLister is an optional ability: attempts run in pods of a Kubernetes cluster.
type PodLister interface {
	// Pods lists the pods of an attempt that runs, as far as they are known; none of another one.
	Pods(ref Ref) []PodName
}

// PodName names a pod.
type PodName struct {
	Namespace, Name string
	Node            string // empty: not known
}

// SuspendHolds is an optional ability of a Suspender: what a suspended attempt was given stays taken.
type SuspendHolds interface {
	// KeepsSuspended reports whether that is so: jobs are then not suspended to make room for
	// others.
	KeepsSuspended() bool
}

// Delegator is an optional ability (Abilities.Delegated): the engine hands work to a scheduler
// of its own, which chooses the nodes and decides when it begins.
type Delegator interface {
	// Delegates reports whether it does. Nobody is asked: its settings say it. Nodes lists
	// the real nodes all the same; the claims of a launch are then of the pool as a whole
	// (sched/aggregate), and of nodes that Nodes does not list. An attempt that waits for that
	// scheduler is Accepted, its report's Message says why as that scheduler says it, and
	// its Nodes say where it is as soon as that is known.
	Delegates() bool
}

// UploadReceiver is an optional ability: a job may bring its working directory (job.Spec.Upload).
type UploadReceiver interface {
	// Receives reports whether jobs of this pool may. Nobody is asked: its settings say it.
	Receives() bool
}

// UploadKeeper is an optional ability of an UploadReceiver: what has become of the directory of a job
// stays when the job has ended, until it is discarded.
type UploadKeeper interface {
	// KeptUploads lists the jobs of which there is one.
	KeptUploads(ctx context.Context) ([]job.ID, error)
	// DiscardUpload removes that of a job. A job that has an attempt is fault.Conflict, one without a
	// directory no error.
	DiscardUpload(ctx context.Context, id job.ID) error
	// UploadRoom is how many bytes the directories of further jobs may have; below 0: some have too much.
	UploadRoom(ctx context.Context) (int64, error)
}

// FilePacker is an optional ability: files of jobs can be fetched.
type FilePacker interface {
	// PackFiles writes an archive (package upload) of a file or directory in the directory that came with
	// a job, else in its working directory, as its owner may read it; "." is all of the former. What leads out of it is fault.Invalid,
	// what is not there fault.NotFound. An error before anything is written leaves to alone.
	PackFiles(ctx context.Context, j *job.Job, name string, to io.Writer) error
}

// Pulser is an optional ability: whether what the engine drives is there can be asked every few
// seconds, for it costs next to nothing. Who cannot be asked so is known by its other answers.
type Pulser interface {
	// Pulse waits for a sign of life. An error: there was none, until ctx ended at the latest.
	Pulse(context.Context) error
}

// CapacityNotifier is an optional ability: where the engine works there are limits that others set, as
// quotas of Kubernetes' namespaces. An attempt that has to wait for one ends as Limited, or its
// Launch is fault.Exhausted. An attempt waits too where it would take what those of Launch.Ahead
// wait for, so that nobody is passed for ever.
type CapacityNotifier interface {
	// WatchCapacity calls f each time that there is more room below a limit for which attempts were told
	// to wait, until ctx ends, with the jobs for each of which there may be enough; none: any. They
	// are launched again then, in the order of the queue; it may say so too often.
	WatchCapacity(ctx context.Context, f func(jobs ...job.ID))
}

// CheckpointStore is an optional ability: a directory for each job, which its attempts share and
// which outlives them. Its name is COX_CHECKPOINT_DIR in the job's environment; what was
// last reported as saved there, by Launch.Saved or by a file in it, is COX_RESTORE_FROM
// (docs/explanation/checkpoint.md).
type CheckpointStore interface {
	// Kept lists the jobs that have a directory with something in it.
	Kept(ctx context.Context) ([]job.ID, error)
	// Discard removes the directory of a job that no longer exists, if nothing in it was
	// written since a time. A job that has an attempt is fault.Conflict, one without a
	// directory no error.
	Discard(ctx context.Context, id job.ID, since time.Time) error
}

// Meter is an optional ability: what the processes of an attempt do.
type Meter interface {
	// Measure says what lives of a running attempt on each of its nodes. An attempt
	// that does not run is fault.Conflict or, if it is not known, fault.NotFound.
	Measure(ctx context.Context, ref Ref) ([]NodeUse, error)
}

// NodeUse is what lives of an attempt on one node.
type NodeUse struct {
	Node      string
	Processes int           // but for the engine's own
	CPU       time.Duration // used by these, and by children that they waited for; may shrink when one ends
}

// Execer is an optional ability: commands beside the tasks of a running attempt.
type Execer interface {
	// Exec runs a command on a node of a running attempt, as its owner, with the
	// environment and the devices that a process of the attempt has there, and
	// returns its exit code once it and what it started have ended. It ends with
	// the attempt, and with ctx. An attempt that does not run is fault.Conflict.
	Exec(ctx context.Context, ref Ref, r ExecRequest) (job.ExitCode, error)
}

// ExecRequest is a command for an Execer.
type ExecRequest struct {
	Command []string // the program, looked up in the job's PATH, and its arguments
	Node    string   // empty: that of the rank, or the first
	Step    *int     // the step of Rank; nil: the last one in which it runs
	Rank    *int     // in the environment of this task; nil: in the batch script's
	Env     []string // NAME=VALUE, added last
	// Submitted returns the environment of the submission, for engines that do not keep it; nil:
	// nobody knows it.
	Submitted func(context.Context) ([]string, error)

	// Stdin is read until it ends, or the command does: a Read that does not return
	// is then abandoned. nil: nothing. Stdout and Stderr may be nil; with a terminal
	// everything goes to Stdout.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	TTY    bool // give it a terminal of its own
	Window Window
	Resize <-chan Window // changes of the terminal's size; nil: none
}

// Window is the size of a terminal in characters.
type Window struct{ Rows, Cols uint16 }

// Logger is an optional ability: to read what attempts print. It works while they
// run and after they were forgotten, until Purge.
type Logger interface {
	// OpenLog opens an output file with the rights of the job's owner, at its
	// beginning. A Read at its present end returns io.EOF, and more when it is
	// called again after more was written. LogFile says which file.
	OpenLog(ctx context.Context, owner job.Owner, file string) (io.ReadCloser, error)
	// Purge removes the copies of ranks' output that the engine keeps of a forgotten
	// attempt. The owner's own files stay. An attempt that is not forgotten is
	// fault.Conflict, an unknown one no error.
	Purge(ctx context.Context, ref Ref) error
}

// LogFile names the file with the output of an attempt: of a rank of a step (of the
// last step that has the rank, if step is nil), or the job's own stream, "stdout" or
// "stderr". It is fault.NotFound if there is none yet.
func LogFile(r Report, stream string, step, rank *int) (string, error) {
	if rank != nil || step != nil {
		for _, t := range slices.Backward(r.Tasks) {
			if t.Step != BatchStep && t.Log != "" && (step == nil || t.Step == *step) && (rank == nil && t.Rank == 0 || rank != nil && t.Rank == *rank) {
				return t.Log, nil
			}
		}
		if len(r.Files) > 0 && !slices.ContainsFunc(r.Tasks, func(t TaskReport) bool { return t.Step != BatchStep && t.Log != "" }) {
			return "", fault.New(fault.NotFound, "the ranks of attempt %s have no output of their own here: what they print is in the job's", r.Ref)
		}
		return "", fault.New(fault.NotFound, "attempt %s has no output of such a task", r.Ref)
	}
	if len(r.Files) == 0 {
		return "", fault.New(fault.NotFound, "attempt %s has no output yet", r.Ref)
	}
	if stream == "stderr" {
		return r.Files[len(r.Files)-1], nil
	}
	return r.Files[0], nil
}
