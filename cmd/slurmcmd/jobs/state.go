package jobs

import (
	"bytes"
	"strings"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

var base = job.States()

// Base is the job's base state; job.Lost for a word that is not known.
func (r Row) Base() job.State {
	b := r.Bytes(column.State)
	for _, s := range base {
		if string(b) == s.String() {
			return s
		}
	}
	return job.Lost
}

// shownFlags are the flags that Slurm shows instead of the base state. A job that is
// being stopped is COMPLETING to Slurm.
var shownFlags = []struct{ flag, long, short string }{
	{"CONFIGURING", "CONFIGURING", "CF"},
	{"COMPLETING", "COMPLETING", "CG"},
	{"STOPPING", "COMPLETING", "CG"},
	{"SPECIAL_EXIT", "SPECIAL_EXIT", "SE"},
	{PastRequeued, "REQUEUED", "RQ"},
}

// StateWords are the long and the short word that Slurm shows for the job's state.
// LOST, which Slurm does not have, is shown as NODE_FAIL.
func (r Row) StateWords() (long, short string) {
	if f := r.Bytes(column.Flags); len(f) > 0 {
		for _, s := range shownFlags {
			if hasWord(f, s.flag) {
				return s.long, s.short
			}
		}
	}
	s := r.Base()
	if s == job.Lost {
		s = job.NodeFail
	}
	return s.String(), s.Short()
}

// Has reports whether one of the job's flags is set.
func (r Row) Has(flag string) bool { return hasWord(r.Bytes(column.Flags), flag) }

// Priority is the job's priority as Slurm shows it: 0 for a job that is held, and from 1 to
// 4294967294 for all others. It needs PriorityColumns.
func (r Row) Priority() int64 {
	if r.Has("HELD") {
		return 0
	}
	return min(max(r.Int(column.Priority), 1), 1<<32-2)
}

// PriorityColumns are what Priority needs.
var PriorityColumns = []column.Column{column.Priority, column.Flags}

func hasWord(list []byte, word string) bool {
	for len(list) > 0 {
		one, rest, _ := bytes.Cut(list, []byte{','})
		if string(one) == word {
			return true
		}
		list = rest
	}
	return false
}

// ReasonWord is the word that squeue shows for why the job waits, or how it ended.
func (r Row) ReasonWord() string {
	if code := r.Bytes(column.Reason); len(code) > 0 {
		return reason.Code(code).Slurm()
	}
	switch r.Base() {
	case job.Failed:
		switch {
		case r.Has("LAUNCH_FAILED"):
			return "JobLaunchFailure"
		case r.Int(column.ExitSignal) > 0:
			return "RaisedSignal:" + r.Text(column.ExitSignal)
		}
		return "NonZeroExitCode"
	case job.Timeout:
		return "TimeLimit"
	case job.Deadline:
		return "DeadLine"
	case job.OutOfMemory:
		return "OutOfMemory"
	case job.NodeFail, job.Lost, job.BootFail:
		return "NodeDown"
	}
	return "None"
}

// reasonCols are what ReasonWord needs.
var reasonCols = []column.Column{column.Reason, column.State, column.Flags, column.ExitSignal}

// StateNames are Slurm's names of states that -t takes, in its order.
var StateNames = []string{
	"PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL",
	"DEADLINE", "OUT_OF_MEMORY", "COMPLETING", "CONFIGURING", "RESIZING", "RESV_DEL_HOLD", "REQUEUED", "REQUEUE_FED",
	"REQUEUE_HOLD", "REVOKED", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED",
}

// Filter is a set of states as -t names them.
type Filter struct {
	All   bool
	words map[string]bool
}

// NewFilter makes a filter of long names; none: what squeue shows by default.
func NewFilter(long []string) *Filter {
	f := &Filter{words: make(map[string]bool, len(long)+5)}
	if len(long) == 0 {
		long = []string{"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING"}
	}
	for _, n := range long {
		f.words[n] = true
	}
	return f
}

// Match reports whether a job is in one of the states; a flag counts beside the base
// state that it covers.
func (f *Filter) Match(r Row) bool {
	if f.All {
		return true
	}
	if f.words[string(r.Bytes(column.State))] {
		return true
	}
	long, _ := r.StateWords()
	return f.words[long]
}

// Param is the value of the parameter states: all that the filter may take.
func (f *Filter) Param() string {
	if f.All || f.words["COMPLETING"] && !f.words["PENDING"] {
		return "all"
	}
	var list []string
	for _, n := range StateNames[:14] {
		switch {
		case !f.words[n]:
		case n == "COMPLETING": // ended, but not proved gone
			return "all"
		case n == "NODE_FAIL":
			list = append(list, n, "LOST")
		case n == "CONFIGURING":
			list = append(list, "RUNNING")
		default:
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return "all" // states that no job of ours has: Match decides
	}
	return strings.Join(list, ",")
}
