// Package reason holds the typed reasons why a job waits, was refused or ended:
// a code, its arguments, and since when it holds. Text is made where a reason is
// shown, so that a journal, an API and a test compare codes and never sentences.
//
// The package imports nothing of the project. It decides nothing: sched, eligible
// and control say which reasons hold.
package reason

import (
	"fmt"
	"strings"
)

// Code says which gate a job did not pass. Codes are stable: they stand in
// journals and in the API. Slurm returns the word squeue would show.
type Code string

// The codes. The comment names the arguments that each uses.
const (
	None         Code = ""              // nothing holds the job
	Resources    Code = "resources"     // Resource, Need, Free, Nodes: not enough free on enough nodes now; Job, Want: of a port, who has it and on which node; Used, Most: where parts of devices by memory are missing, the bytes of one and what one device has left
	Priority     Code = "priority"      // Ahead: jobs before it, 0: not counted; Job: the first of them
	Preempting   Code = "preempting"    // Job: the first of the jobs that are being ended for it; Ahead: how many more
	Endless      Code = "endless"       // Job: a replica of a service, which has no time limit, holds what this one needs
	Reserved     Code = "reserved"      // Job: a job before it would start later if this one started now
	NodeCount    Code = "node-count"    // Need, Free: the pool has fewer nodes that qualify than asked for
	TooLarge     Code = "too-large"     // Resource, Need, Most: no node of the pool is large enough, ever; Used: as with Resources
	Constraint   Code = "constraint"    // Want: no or too few nodes have the features
	NodeList     Code = "node-list"     // Want: a named node does not exist or is down
	NodeDown     Code = "node-down"     // Want: named or needed nodes are down or drained
	Quota        Code = "quota"         // Holder: whose; Resource, Want: of which flavour; Need, Used, Most: the nominal amount, Free: what it may take now
	OtherPool    Code = "other-pool"    // Holder: the pool; Want: which machines of its nodes belong to other pools or are on their way, as a clause
	Partition    Code = "partition"     // Want: no such partition
	HeldUser     Code = "held-user"     // held by its owner
	HeldAdmin    Code = "held-admin"    // held by an administrator
	BeginTime    Code = "begin-time"    // Until: not to begin before
	Dependency   Code = "dependency"    // Want: the dependency that is not met
	DependNever  Code = "depend-never"  // Want: the dependency that can never be met any more
	Deadline     Code = "deadline"      // Until: it can no longer end by then
	MaxRequeue   Code = "max-requeue"   // Need: attempts that failed in a row; held until it is released
	Backoff      Code = "backoff"       // Until: it waits after a failed attempt; Want: what failed, if that is known; Need, Most: the retry that follows, of so many
	EngineLimit  Code = "engine-limit"  // Want: which limit of its engine's has no room, as that says it; Until: tried again at the latest
	Refused      Code = "refused"       // Want: what the ledger said to the scheduler's proposal; Until: the next try
	ArrayLimit   Code = "array-limit"   // Need: the limit of running tasks
	Cleaning     Code = "cleaning"      // an earlier attempt is not proved ended
	Uncertain    Code = "uncertain"     // Want: nodes whose state nobody can prove
	LaunchFailed Code = "launch-failed" // Want: what the engine said
	NodeFailed   Code = "node-failed"   // Want: the node
	TimeLimit    Code = "time-limit"    // Need: seconds
	Reservation  Code = "reservation"   // Want: the reservation that the job waits for or that keeps nodes from it; Until: when that changes; 0: there is none
	NoGang       Code = "no-gang"       // the pool's engine cannot start coupled tasks whole
	EngineDown   Code = "engine-down"   // Want: the engine does not answer
	Wish         Code = "wish"          // Want: what it insists on; Until: when something else will do
	SameNodes    Code = "same-nodes"    // Want: the nodes that it stays on because it asked to, and which attempt ran there
	FailedNodes  Code = "failed-nodes"  // Want: the nodes that it keeps off because it asked to, and which attempts failed there
	Licenses     Code = "licenses"      // Resource, Need, Used, Most: of a licence; Most 0: the site has none
	Threshold    Code = "threshold"     // Holder: whose fair share is Used, and must be Most, in millionths; Want: the QOS that says so
)

// The codes of limits end in the word that squeue shows for the limit. Resource may
// be "jobs", "seconds", or end in Minutes.
const (
	limited = "limit:" // Holder, Resource, Need, Used, Most: too much together with what others hold
	single  = "most:"  // Holder, Resource, Need, Most: too much for one job
	least   = "least:" // Holder, Resource, Need, Most: less than a job must ask for
)

// elsewhere begins the codes of jobs that wait in the queue of their pool's own scheduler.
// Holder: the pool; Resource: what that calls the job; Want: all that it says; Until: when it
// was handed over.
const elsewhere = "there:"

// Elsewhere is the code of a job that waits in another scheduler's queue, by the word that
// one has for the reason; empty: it has none.
func Elsewhere(word string) Code { return Code(strings.TrimSuffix(elsewhere+word, ":")) }

// There is the word of Elsewhere if the code is one of it.
func (c Code) There() (word string, ok bool) {
	if c == Elsewhere("") {
		return "", true
	}
	return strings.CutPrefix(string(c), elsewhere)
}

// PortResource begins the name of a fixed port as a counted resource: "port:8000".
const PortResource = "port:"

// Minutes ends the name of a resource of which minutes are counted; amounts are then
// in its unit times seconds, memory and disk in MiB.
const Minutes = "-minutes"

// Limited is the code of a limit of what is held together.
func Limited(word string) Code { return Code(limited + word) }

// Single is the code of a limit of one job.
func Single(word string) Code { return Code(single + word) }

// Least is the code of a limit that a job must not be below.
func Least(word string) Code { return Code(least + word) }

// Limit is squeue's word if the code is one of a limit, otherwise empty.
func (c Code) Limit() string {
	for _, prefix := range []string{limited, single, least} {
		if word, ok := strings.CutPrefix(string(c), prefix); ok {
			return word
		}
	}
	return ""
}

// Reason is one gate that a job does not pass. It is a value; copying is cheap.
// Which fields are set depends on Code; amounts are in the unit of Resource.
type Reason struct {
	Code     Code   `json:"code"`
	Resource string `json:"resource,omitempty"` // "cpu", "memory", "gpu", "gpu:h100", a named resource, "nodes"
	Need     int64  `json:"need,omitempty"`
	Free     int64  `json:"free,omitempty"`
	Most     int64  `json:"most,omitempty"`  // the largest that exists at all, or is allowed
	Used     int64  `json:"used,omitempty"`  // counts against Most already
	Nodes    int    `json:"nodes,omitempty"` // nodes that pass this gate alone
	Ahead    int    `json:"ahead,omitempty"`
	Job      uint64 `json:"job,omitempty"` // who holds or precedes
	Want     string `json:"want,omitempty"`
	Holder   string `json:"holder,omitempty"` // whose limit it is
	Until    int64  `json:"until,omitempty"`  // Unix seconds
	Since    int64  `json:"since,omitempty"`  // Unix seconds; when this reason became the first one
}

// slurm maps codes to the words of squeue's reason column.
var slurm = map[Code]string{
	None: "None", Resources: "Resources", Priority: "Priority", Reserved: "Priority", Preempting: "Resources", Endless: "Resources",
	NodeCount: "PartitionNodeLimit", TooLarge: "BadConstraints", Constraint: "BadConstraints",
	NodeList: "ReqNodeNotAvail", NodeDown: "ReqNodeNotAvail", OtherPool: "ReqNodeNotAvail", Partition: "PartitionConfig", Quota: "AssocGrpGRES",
	HeldUser: "JobHeldUser", HeldAdmin: "JobHeldAdmin", BeginTime: "BeginTime",
	DependNever: "DependencyNeverSatisfied", Deadline: "DeadLine", MaxRequeue: "JobHoldMaxRequeue",
	Backoff: "BeginTime", EngineLimit: "Resources", Refused: "SystemFailure",
	Dependency: "Dependency", ArrayLimit: "JobArrayTaskLimit", Cleaning: "Cleaning",
	Uncertain: "ReqNodeNotAvail", LaunchFailed: "JobLaunchFailure", NodeFailed: "NodeDown",
	TimeLimit: "TimeLimit", NoGang: "BadConstraints", Reservation: "Reservation", EngineDown: "SchedDefer", Licenses: "Licenses", Wish: "Resources",
	SameNodes: "Resources", FailedNodes: "Resources",
	Threshold: "QOSUsageThreshold",
}

// Codes lists every code but those of limits, sorted by first use; for generated
// tables and tests.
func Codes() []Code {
	return []Code{
		Resources, Priority, Preempting, Endless, Reserved, NodeCount, TooLarge, Constraint, NodeList, NodeDown, OtherPool, Partition, Quota,
		HeldUser, HeldAdmin, BeginTime, Dependency, DependNever, Deadline, MaxRequeue, Backoff, EngineLimit, Refused, ArrayLimit, Cleaning, Uncertain, LaunchFailed,
		NodeFailed, TimeLimit, Reservation, NoGang, EngineDown, Licenses, Wish, SameNodes, FailedNodes, Threshold,
	}
}

// Slurm returns the word that squeue prints for the code (its enum job_state_reason).
func (c Code) Slurm() string {
	if w, ok := slurm[c]; ok {
		return w
	}
	if w := c.Limit(); w != "" {
		return w
	}
	if w, ok := c.There(); ok && w != "" {
		return w
	}
	return "None"
}

// String is the reason as one English clause without a full stop.
func (r Reason) String() string {
	var b strings.Builder
	switch r.Code {
	case None:
		b.WriteString("nothing holds it")
	case Resources, TooLarge:
		if r.Used > 0 {
			b.WriteString(r.deviceMemory())
			break
		}
		if port, ok := strings.CutPrefix(r.Resource, PortResource); ok {
			b.WriteString(r.portClause(port))
			break
		}
		if r.Code == TooLarge {
			fmt.Fprintf(&b, "needs %s on one node, the largest has %s", amountText(r.Resource, r.Need), amountText(r.Resource, r.Most))
			break
		}
		fmt.Fprintf(&b, "needs %s, free now: %s", amountText(r.Resource, r.Need), amountText(r.Resource, r.Free))
	case Priority:
		switch {
		case r.Ahead > 0:
			fmt.Fprintf(&b, "%s before it, first job %d", countText(r.Ahead, "job"), r.Job)
		case r.Job > 0:
			fmt.Fprintf(&b, "others are before it, first job %d", r.Job)
		default:
			b.WriteString("others are before it")
		}
	case Preempting:
		fmt.Fprintf(&b, "takes the place of job %d", r.Job)
		if r.Ahead > 0 {
			fmt.Fprintf(&b, " and of %d more", r.Ahead)
		}
		b.WriteString(", until the last of it has ended")
	case Endless:
		fmt.Fprintf(&b, "waits for what job %d holds, which serves and has no time limit", r.Job)
	case Reserved:
		fmt.Fprintf(&b, "would delay job %d, which is before it", r.Job)
	case NodeCount:
		fmt.Fprintf(&b, "needs %s, only %d qualify", countText(int(r.Need), "node"), r.Free)
	case Constraint:
		fmt.Fprintf(&b, "constraint %s: %s", r.Want, countText(r.Nodes, "node")+" with these features")
	case NodeList:
		fmt.Fprintf(&b, "node %s is not in the pool", r.Want)
	case NodeDown:
		fmt.Fprintf(&b, "node %s is down or drained", r.Want)
	case OtherPool:
		fmt.Fprintf(&b, "pool %s lacks machines that it has nodes on: %s", r.Holder, r.Want)
	case Partition:
		fmt.Fprintf(&b, "no partition %s", r.Want)
	case Quota:
		b.WriteString(r.quotaClause())
	case HeldUser:
		b.WriteString("held by its owner (release it to let it run)")
	case HeldAdmin:
		b.WriteString("held by an administrator")
	case BeginTime:
		fmt.Fprintf(&b, "not to begin before %s", timeText(r.Until))
	case Dependency:
		fmt.Fprintf(&b, "waits for dependency %s", r.Want)
	case DependNever:
		fmt.Fprintf(&b, "its dependency %s can never be met (cancel it, or give it another dependency)", r.Want)
	case Deadline:
		fmt.Fprintf(&b, "cannot end before its deadline %s", timeText(r.Until))
	case MaxRequeue:
		fmt.Fprintf(&b, "held after %s in a row (release it to try again)", countText(int(r.Need), "failed attempt"))
	case Backoff:
		if r.Most > 0 {
			fmt.Fprintf(&b, "retry %d of %d begins at %s, after %s", r.Need, r.Most, timeText(r.Until), r.Want)
			break
		}
		fmt.Fprintf(&b, "tried again at %s after a failed attempt", timeText(r.Until))
		if r.Want != "" {
			fmt.Fprintf(&b, ": %s", r.Want)
		}
	case EngineLimit:
		fmt.Fprintf(&b, "%s; tried again when that changes, at %s at the latest", r.Want, timeText(r.Until))
	case Refused:
		fmt.Fprintf(&b, "the ledger refused its start, which is a defect: %s; tried again at %s", r.Want, timeText(r.Until))
	case ArrayLimit:
		fmt.Fprintf(&b, "the array runs at most %s at a time", countText(int(r.Need), "task"))
	case Cleaning:
		b.WriteString("its earlier attempt is not proved ended")
	case Uncertain:
		fmt.Fprintf(&b, "nobody can prove what runs on %s", r.Want)
	case LaunchFailed:
		fmt.Fprintf(&b, "could not be started: %s", r.Want)
	case NodeFailed:
		fmt.Fprintf(&b, "node %s failed", r.Want)
	case TimeLimit:
		fmt.Fprintf(&b, "reached its time limit of %d s", r.Need)
	case Reservation:
		if r.Until == 0 {
			fmt.Fprintf(&b, "there is no reservation %s for it (any longer)", r.Want)
			break
		}
		fmt.Fprintf(&b, "reservation %s, until %s", r.Want, timeText(r.Until))
	case NoGang:
		b.WriteString("the engine of this pool cannot start coupled tasks whole")
	case EngineDown:
		fmt.Fprintf(&b, "the engine does not answer: %s", r.Want)
	case Wish:
		fmt.Fprintf(&b, "waits for %s until %s, then something else will do", r.Want, timeText(r.Until))
	case SameNodes:
		fmt.Fprintf(&b, "stays on %s: it asks for the same nodes", r.Want)
	case FailedNodes:
		fmt.Fprintf(&b, "keeps off %s", r.Want)
	case Licenses:
		if r.Most == 0 {
			fmt.Fprintf(&b, "this site has no licence %s", r.Resource)
			break
		}
		fmt.Fprintf(&b, "needs %s of %s, %d of %d are in use", countText(int(r.Need), "licence"), r.Resource, r.Used, r.Most)
	case Threshold:
		fmt.Fprintf(&b, "the fair share of %s is %g, QOS %s asks for %g: it rises as what was used decays", r.Holder, float64(r.Used)/1e6, r.Want, float64(r.Most)/1e6)
	default:
		if _, there := r.Code.There(); there {
			b.WriteString(r.schedulerClause())
			break
		}
		b.WriteString(r.limitClause())
	}
	return b.String()
}

// schedulerClause is the clause of a job that waits in another scheduler's queue.
func (r Reason) schedulerClause() string {
	if r.Resource == "" && strings.HasPrefix(r.Want, "not handed over") {
		return "on its way to the scheduler of pool " + r.Holder + ": " + r.Want
	}
	text := "handed over to pool " + r.Holder
	if r.Until > 0 {
		text += " at " + timeText(r.Until)
	}
	if r.Resource != "" {
		text += " as its job " + r.Resource
	}
	if r.Want == "" {
		return text + ", and has not begun"
	}
	return text + ", where it waits: " + r.Want
}
