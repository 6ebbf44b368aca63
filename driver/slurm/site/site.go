// Package site is what the driver of a Slurm cluster needs to ask of it, however it is
// reached: by its commands, here or over SSH (driver/slurm/command), or by slurmrestd.
//
// Types are Slurm's own notions in our units, whatever the version: numbers that are not
// set are zero, times are absolute, host lists are expanded. An error says whether the
// answer is known: fault.Unavailable means that the cluster did not say, and whatever was
// asked for may have happened; every other kind is slurmctld's own refusal, and Exhausted one
// for a limit that may pass when jobs end. Nothing here
// remembers anything, but for a connection.
package site

import (
	"context"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Site is one way into a cluster. It is safe for concurrent use; every call ends when its
// context does.
type Site interface {
	// Cluster says what the cluster is. It is asked anew, each time.
	Cluster(ctx context.Context) (Cluster, error)
	// Submit hands a batch job over and returns the number that slurmctld gave it.
	Submit(ctx context.Context, s *Submission) (uint32, error)
	// Jobs says what slurmctld knows of some jobs, by number, in no order, and of all
	// components of those that are heterogeneous. Those that it does not know are left out:
	// they were purged, or lost, or never were.
	Jobs(ctx context.Context, ids []uint32) ([]Job, error)
	// Of lists a user's jobs that slurmctld knows; the search by a tag. An empty user is
	// whoever asks.
	Of(ctx context.Context, user string) ([]Job, error)
	// Past says what accounting knows of jobs, by number. What it lags behind is left
	// out. A cluster without accounting is fault.Unsupported.
	Past(ctx context.Context, ids []uint32) ([]Job, error)
	// PastOf is Past of a user's jobs that were pending or ran since a time; the search by
	// a tag among those that slurmctld has forgotten. An empty user is whoever asks.
	PastOf(ctx context.Context, user string, since time.Time) ([]Job, error)
	// End has a job end in Slurm's own way: SIGCONT and SIGTERM, SIGKILL after KillWait; one
	// that waits is cancelled. A job that has ended, or is not known, is no error.
	End(ctx context.Context, id uint32) error
	// Kill has all processes of a running job killed at once.
	Kill(ctx context.Context, id uint32) error
	// Signal sends a signal to the processes of a running job and nothing more.
	Signal(ctx context.Context, id uint32, signal int, to Scope) error
	// Suspend holds every process of a running job, or lets them go on.
	Suspend(ctx context.Context, id uint32, held bool) error
	// Update changes a job that waits.
	Update(ctx context.Context, id uint32, c Change) error
	// Nodes lists the nodes.
	Nodes(ctx context.Context) ([]Node, error)
	// Stock says what the cluster has beside its nodes: partitions, QOS, associations,
	// reservations and licences. What could not be asked is in Unknown; it is an error only
	// if the partitions could not. It costs several calls, and is for now and then.
	Stock(ctx context.Context) (*fleet.Inventory, error)
	// Everyone lists what jobs of everybody that wait or run hold. It reads them all.
	Everyone(ctx context.Context) ([]Held, error)
	// Close gives the connection back.
	Close() error
}

// Change is what Update changes.
type Change struct {
	Hold, Release bool    // keep it from beginning, and let it go on
	Comment       *string // nil: as it is
	// Partition is where it may run, names joined by commas; empty: as it is. It is changed
	// with the rights of whom the Site acts as, and nobody else's.
	Partition string
}

// Scope says who gets a signal.
type Scope uint8

// The scopes of scancel.
const (
	ToSteps Scope = iota // all steps but the batch script
	ToBatch              // the batch script alone (--batch)
	ToAll                // both (--full)
)

// Cluster is what slurmctld says of itself.
type Cluster struct {
	Name     string
	Version  string        // "22.05.8"
	Booted   time.Time     // when this slurmctld began
	MinAge   time.Duration // how long it knows jobs after their end
	MaxArray uint32
	Accounts bool // there is accounting that can be asked
	Comments bool // … which keeps jobs' comments
	Tracks   bool // it knows all processes of a job, of whatever parent (proctrack/cgroup)
	Limits   bool // it enforces limits (task/cgroup)
}

// Submission is a batch job as it is handed over.
type Submission struct {
	Script  []byte
	Args    []string // of the script
	Options []string // of sbatch, beyond those in the script: "--comment=…"; they outrank those
	// Components are the options of each further component of a heterogeneous job; Options
	// are those of the first, which has the script.
	Components [][]string
	Env        []string // NAME=VALUE, all that the job is to have
	User       string   // as whom; empty: whoever asks
	Dir        string   // working directory, if no option says
}

// Job is a job, or what accounting kept of one.
type Job struct {
	ID        uint32
	User      string
	Account   string
	Partition string
	QOS       string
	Comment   string

	State      State
	Completing bool   // it has ended, and its nodes are being cleaned
	Held       bool   // JobHeldUser or JobHeldAdmin
	Reason     string // Slurm's word for why it waits; empty: none
	Nodes      []string
	Restarts   int
	Priority   uint32

	// Het is the number of the heterogeneous job that this is a component of: that of its
	// first one, which has the script. 0: it is none.
	Het uint32
	// More are the nodes of all components but the first, where this is that; the driver
	// fills it in.
	More []string

	Submitted, Eligible, Started, Ended time.Time // zero: not (yet)
	Exit                                job.ExitCode
	CancelledBy                         string // user or uid, where it is known
}

// Held is what a job holds, or waits for. An array that waits is one of them.
type Held struct {
	User, Partition, Comment string
	Running                  bool     // or suspended
	Nodes                    []string // those that it has
	CPUs, GPUs               int
}

// State is a job's base state in Slurm's long form.
type State string

// The states.
const (
	Pending     State = "PENDING"
	Running     State = "RUNNING"
	Suspended   State = "SUSPENDED"
	Completed   State = "COMPLETED"
	Cancelled   State = "CANCELLED"
	Failed      State = "FAILED"
	TimedOut    State = "TIMEOUT"
	NodeFailed  State = "NODE_FAIL"
	Preempted   State = "PREEMPTED"
	BootFailed  State = "BOOT_FAIL"
	PastItsTime State = "DEADLINE"
	OutOfMemory State = "OUT_OF_MEMORY"
)

// Final reports whether a job in that state has ended. Slurm's other words (CONFIGURING,
// COMPLETING, REQUEUED …) are flags beside a state, and shown in its place by some
// commands: ParseState sorts them out.
func (s State) Final() bool {
	switch s {
	case Completed, Cancelled, Failed, TimedOut, NodeFailed, Preempted, BootFailed, PastItsTime, OutOfMemory:
		return true
	}
	return false
}

// Word is a state as a command shows it, taken apart.
type Word struct {
	State      State // empty: it is not known, as of COMPLETING, which has ended in some way
	Completing bool
	Held       bool // as of SPECIAL_EXIT and REQUEUE_HOLD
	By         string
}

// ParseState understands the words of squeue, sacct and slurmrestd: "RUNNING",
// "CANCELLED by 1000", "CONFIGURING", "COMPLETING", "REQUEUE_HOLD" and the like. ok is
// false for one that Slurm does not have.
func ParseState(text string) (w Word, ok bool) {
	text, by, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(text), "+"), " by ")
	w.By = by
	switch text {
	case "CONFIGURING", "POWER_UP_NODE", "SIGNALING", "RESIZING":
		w.State = Running
	case "COMPLETING", "STAGE_OUT":
		w.Completing = true
	case "STOPPED":
		w.State = Suspended
	case "REQUEUED", "REQUEUE_FED", "RESV_DEL_HOLD":
		w.State = Pending
	case "REQUEUE_HOLD", "SPECIAL_EXIT":
		w.State, w.Held = Pending, true
	case "REVOKED":
		w.State = Cancelled
	default:
		w.State = State(text)
		return w, w.State == Pending || w.State == Running || w.State == Suspended || w.State.Final()
	}
	return w, true
}

// Node is a node as slurmctld sees it.
type Node struct {
	Name      string
	Address   string
	Host      string // the machine's name, NodeHostname; as a rule the node's
	Available bool   // new work may start on it
	Drained   bool   // an administrator keeps new work off, or a failed check
	Down      bool   // it does not answer, or is powered off for good
	State     string // Slurm's words, for people: "mixed+drain"
	Reason    string // an administrator's
	CPUs      int
	Sockets   int
	Memory    int64 // bytes
	Features  []string
	Parts     []string
	Path      []string // switches or blocks from the top down; nil: not known
	GRES      string   // as configured: "gpu:h100:8(S:0-1)"
	Taken     string   // GRES in use: "gpu:h100:2(IDX:0-1)"
	UsedCPUs  int
	UsedBytes int64
	Comment   string
	Extra     string // anything, of slurmd's --extra or an administrator
	Instance  string // the cloud's name for the machine (slurmd --instance-id; from 23.11 on)
}

// Limited is an optional ability of a Site: to say what it has no call for.
type Limited interface {
	// Suspends reports whether Suspend can work, with the right to.
	Suspends() bool
}

// Teller is an optional ability of a Site: to say who people are there.
type Teller interface {
	// Me is who asks. fault.Unsupported: this way in cannot tell.
	Me(ctx context.Context) (Person, error)
	// Person is the user of a name: fault.NotFound if the cluster has none.
	Person(ctx context.Context, name string) (Person, error)
}

// Acting is an optional ability of a Site: to do something as another user.
type Acting interface {
	// As is the same way in for a user, who may do with his own jobs what others may not.
	// It is not closed.
	As(user string) Site
}

// Person is a user as the cluster has him.
type Person struct {
	Name     string
	UID, GID uint32
	Operator bool // root, Slurm's own user, or an operator or administrator in accounting: may change others' jobs, and suspend
}

// Looker is an optional ability of a Site: to say of the way in what a look at a pool wants to
// know beside the rest.
type Looker interface {
	Look(ctx context.Context) (*Look, error)
}

// Look is what a way in says of itself.
type Look struct {
	Way      string            // in words, with its version if it has one
	Settings map[string]string // of slurmctld, as in slurm.conf; nil: it does not tell
	Ahead    time.Duration     // how much slurmctld's clock is before ours, to a second
	Clock    bool              // Ahead is known
	Lacks    string            // what it has no call for; empty: nothing
	Token    *Token            // nil: it needs none
}

// Token is what gives a way in its rights.
type Token struct {
	From    string        // where it comes from, in words
	Life    time.Duration // for how long it was made; 0: it does not say
	Left    time.Duration // until it runs out
	Renewed bool          // another one can be had
}

// Trier is an optional ability of a Site: to ask whether a job would be taken, without handing
// it over. The error is Submit's.
type Trier interface {
	Try(ctx context.Context, s *Submission) error
}

// StartEstimator is an optional ability of a Site: to ask when a job would start, without handing it over.
type StartEstimator interface {
	// EstimateStart is when slurmctld would start a job that was submitted now, if all jobs use their time limits;
	// zero: it does not say. The error is Submit's; fault.Unsupported: this way in cannot ask.
	EstimateStart(ctx context.Context, s *Submission) (time.Time, error)
}

// OptionFinder is an optional ability of a Site: to say whether the site's srun has an option, as
// plugins add them.
type OptionFinder interface {
	HasSrunOption(ctx context.Context, option string) (bool, error)
}

// Fitter is an optional ability of a Site: to say before it is asked to what it would not hand
// over.
type Fitter interface {
	// Fits returns the error with which Submit would refuse a job by itself: options that it
	// has no words for, a user whom it cannot act for. fault.Unavailable: it is not known.
	Fits(ctx context.Context, s *Submission) error
}

// NodeKeeper is an optional ability of a Site: to mark a node, and to say what is on it.
type NodeKeeper interface {
	// UpdateNode changes a node of a name that Nodes has. It needs an operator (fault.Permission).
	UpdateNode(ctx context.Context, node string, c NodeChange) error
	// WorkOn lists the jobs that hold a node, and those that have ended and that the node has not yet cleaned up after,
	// with their steps where the way in can tell.
	WorkOn(ctx context.Context, node string) ([]Work, error)
}

// NodeChange is what UpdateNode changes, all at once.
type NodeChange struct {
	State  string  // "DRAIN", which needs a reason, or "UNDRAIN"; empty: as it is
	Reason string  // empty: as it is
	Extra  *string // nil: as it is
}

// Work is a job or a step on a node.
type Work struct {
	Name          string // "7", or "7.0" of a step
	Step          bool
	User, Comment string
	State         string // in Slurm's words; of a step empty
}
