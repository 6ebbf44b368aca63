package state

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/share"
	"github.com/coxswain-sched/coxswain/store"
)

const (
	rowsLocked = 32        // rows that are made while the loop may have to wait
	docControl = "control" // the document of the projection beside the rows
)

// stateDoc is what the projection keeps beside jobs.
type stateDoc struct {
	Next        job.ID                  `json:"next"`
	Allocation  uint64                  `json:"allocation"` // the next one's number
	Drains      map[fleet.NodeKey]Drain `json:"drains,omitempty"`
	Health      []NodeHealth            `json:"health,omitempty"`
	Tokens      []Token                 `json:"tokens,omitempty"`
	Pools       []PoolSpec              `json:"pools,omitempty"`
	Policies    []Policy                `json:"policies,omitempty"`    // without their documents
	Controllers []string                `json:"controllers,omitempty"` // names; each has a document of its own
	Machines    []string                `json:"machines,omitempty"`    // documents with the owners of machines
	Usage       *Usage                  `json:"usage,omitempty"`
	Seen        *share.Memory           `json:"seen,omitempty"`
}

// Unprojected counts the jobs whose rows in the projection are not what the jobs are.
func (s *State) Unprojected() int {
	s.RLock()
	defer s.RUnlock()
	return len(s.dirty)
}

// TakeUnprojected returns what the projection lacks: jobs and documents, and the record up
// to which it reflects the journal with them. written has to be called, without the lock,
// when all of it is in the store. The caller holds the lock.
func (s *State) TakeUnprojected() (seq uint64, list []*JobRecord, docs map[string][]byte, written func()) {
	seq, docs = s.Seq, map[string][]byte{docControl: s.EncodeDoc()}
	docsWritten, controllersWritten, ownersWritten := s.Policies.pendingDocs(docs), s.Controllers.pendingDocs(docs), s.Owners.pendingDocs(docs)
	list, s.dirty = s.dirty, nil
	return seq, list, docs, func() {
		s.Lock()
		defer s.Unlock()
		s.Counts.Projected = seq
		docsWritten()
		controllersWritten()
		ownersWritten()
	}
}

// MakeRows makes the rows of jobs as they are now. A job that changes after its row was
// made is dirty again.
func (s *State) MakeRows(list []*JobRecord) []store.JobRow {
	out := make([]store.JobRow, 0, len(list))
	for chunk := range slices.Chunk(list, rowsLocked) {
		s.Lock()
		for _, e := range chunk {
			e.Dirty, e.writing = false, true
			out = append(out, e.ProjectRow())
		}
		s.Unlock()
	}
	return out
}

// MarkWritten notes that the store has the rows of jobs.
func (s *State) MarkWritten(list []*JobRecord) {
	s.Lock()
	defer s.Unlock()
	for _, e := range list {
		e.writing = false
	}
}

// MarkUnwritten notes that the rows of jobs were not written, so they are written again.
func (s *State) MarkUnwritten(list []*JobRecord) {
	s.Lock()
	defer s.Unlock()
	for _, e := range list {
		e.Dirty, e.writing = true, false
	}
	seen := map[*JobRecord]bool{}
	s.dirty = slices.DeleteFunc(append(list, s.dirty...), func(e *JobRecord) bool {
		again := seen[e]
		seen[e] = true
		return again
	})
}

// EncodeDoc makes the document of the projection: all of the state except jobs and policies.
func (s *State) EncodeDoc() []byte {
	w := stateDoc{Next: s.Next, Allocation: uint64(s.Ledger.NextID()), Drains: maps.Collect(s.Drains.All()), Health: s.encodeHealth(), Policies: s.Policies.WithoutDocuments(), Controllers: s.Controllers.Names(""), Machines: s.Owners.documents(), Usage: s.Usage, Seen: s.Arrivals}
	for _, t := range s.Tokens {
		w.Tokens = append(w.Tokens, t)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Pools)) {
		w.Pools = append(w.Pools, s.Pools[name])
	}
	slices.SortFunc(w.Tokens, func(a, b Token) int { return strings.Compare(a.ID, b.ID) })
	return MustJSON(w)
}

// RowDetail is a job as its row in the projection has it: everything that a start needs. It
// begins with the length of the shared specification and that specification, which is read once
// for all jobs that share it.
type RowDetail struct {
	Seq      uint64          `json:"seq"`
	Own      *SpecDelta      `json:"own"`
	Spec     json.RawMessage `json:"-"`
	Array    *arrayRow       `json:"array,omitempty"`
	Index    uint32          `json:"index,omitempty"`
	State    job.State       `json:"state"`
	Flags    job.Flags       `json:"flags,omitempty"`
	Attempt  uint32          `json:"attempt,omitempty"`
	Priority int64           `json:"priority,omitempty"`
	At       int64           `json:"at"`
	Sent     int64           `json:"sent"`
	Eligible int64           `json:"eligible,omitempty"`
	Again    int64           `json:"again,omitempty"`
	Failed   int             `json:"failed,omitempty"`
	Retried  int             `json:"retried,omitempty"`
	Past     []PastAttempt   `json:"past,omitempty"`
	FailedOn []FailedNodes   `json:"failed_on,omitempty"`
	LimitEnd int64           `json:"limit_end,omitempty"`
	Message  string          `json:"message,omitempty"`
	By       *uint32         `json:"cancelled_by,omitempty"`
	Moved    int64           `json:"moved,omitempty"`   // when it was last asked to move
	Pools    PoolMoves       `json:"pools,omitzero"`    // moves between them
	Foretold [2]int64        `json:"foretold,omitzero"` // the first estimate of the start, and when it was made
	Kept     int64           `json:"kept,omitempty"`    // when an attempt last reported a checkpoint
	KeptAs   string          `json:"kept_as,omitempty"`
	Last     *attemptRow     `json:"last,omitempty"`
}

// attemptRow is the present or last attempt of a detail.
type attemptRow struct {
	Allocation uint64          `json:"allocation,omitempty"`
	Epoch      uint64          `json:"epoch,omitempty"`
	Pool       string          `json:"pool,omitempty"`
	Claims     []fleet.Claim   `json:"claims,omitempty"`
	Flavors    []string        `json:"flavors,omitempty"`
	License    string          `json:"license,omitempty"`
	Handed     int64           `json:"handed,omitempty"`
	Report     json.RawMessage `json:"report,omitempty"`
	Cancel     *Cancel         `json:"cancel,omitempty"`
	Requeue    *Requeue        `json:"requeue,omitempty"`
	Preempted  *Preempted      `json:"preempted,omitempty"`
	Asked      int64           `json:"asked,omitempty"`
	Saved      int64           `json:"saved,omitempty"`
	Expired    *Expired        `json:"expired,omitempty"`
	Started    int64           `json:"started,omitempty"`
	Ended      int64           `json:"ended,omitempty"`
	Exit       job.ExitCode    `json:"exit"`
	Limit      time.Duration   `json:"limit,omitempty"`
	Parked     bool            `json:"parked,omitempty"`
	Asleep     bool            `json:"asleep,omitempty"`
	HeldFrom   int64           `json:"held_from,omitempty"`
	HeldFor    time.Duration   `json:"held_for,omitempty"`
	HeldLast   [2]int64        `json:"held_last,omitzero"`
	Added      []*JobAddition  `json:"added,omitempty"`
	Ranks      int             `json:"ranks,omitempty"`
	Settled    bool            `json:"settled,omitempty"`
}

// ProjectRow makes the row of a job in the projection.
func (e *JobRecord) ProjectRow() store.JobRow {
	v := ViewOf(e)
	s := v.Job.Spec
	row := store.JobRow{
		ID: uint64(e.ID), Task: -1, Name: s.Name, User: s.Owner.User, Account: s.Account, QOS: s.QOS,
		Partition: strings.Join(s.Partitions, ","), State: e.State.String(), Priority: e.Priority,
		Submitted: truncateMicro(v.Job.Submitted), Started: truncateMicro(v.Job.Started), Ended: truncateMicro(v.Job.Ended),
		Exit: v.Job.Exit.Shell(), Final: e.State.Final(),
	}
	if e.Array != nil {
		row.Array, row.Task = uint64(e.Array.first), int64(e.Index)
	}
	var nodes []string
	for _, c := range v.Claims {
		if !slices.Contains(nodes, c.Node) {
			nodes = append(nodes, c.Node)
		}
		row.CPUs += int64(c.Take.CPU) / 1000
		row.GPUs += int64(len(c.Devices))
	}
	if len(nodes) > 0 {
		row.Nodes = hostlist.Compress(nodes)
	}
	row.Detail = e.projectDetail(s)
	return row
}

func truncateMicro(t time.Time) time.Time { return t.Truncate(time.Microsecond) }

func (e *JobRecord) projectDetail(spec *job.Spec) []byte {
	_, o := SplitSpec(*spec)
	o.Array = nil
	d := RowDetail{
		Seq: e.Seq, Own: &o, Spec: json.RawMessage(e.Shared.Key), State: e.State, Flags: e.Flags,
		Attempt: e.Attempt, Priority: e.Priority, At: e.QueuedAt, Sent: e.Submitted, Eligible: e.Eligible,
	}
	if e.Array != nil {
		d.Array, d.Index = e.Array.tasksOf(), e.Index
	}
	if m := e.Extra; m != nil {
		d.Again, d.Failed, d.LimitEnd, d.Message, d.Moved = m.Again, m.Failed, m.LimitEnd, m.message, m.Moved
		d.Retried, d.Past, d.FailedOn, d.Pools = m.Retried, m.Past, m.failed, m.PoolMoves
		d.Foretold = [2]int64{m.Foretold, m.ForetoldAt}
		d.Kept, d.KeptAs = m.kept, m.keptAs
		d.By = m.cancelledBy
	}
	if a := e.Last; a != nil {
		d.Last = &attemptRow{
			Allocation: uint64(a.AllocationID), Epoch: a.epoch, Pool: a.Pool, Claims: a.Claims, Flavors: a.Flavors, License: a.License, Cancel: a.Cancel, Handed: a.Handed,
			Requeue: a.Requeue, Preempted: a.Preempted, Asked: a.asked, Saved: a.Saved, Expired: a.Expired, Started: a.started, Ended: a.ended, Exit: a.exit, Limit: a.limit,
			Parked: a.PreemptSuspended, Asleep: a.UserSuspended, HeldFrom: a.SuspendedAt, HeldFor: a.suspendedFor, HeldLast: a.lastSuspended,
			Added: a.Added, Ranks: a.Ranks, Settled: a.settled,
		}
		if a.Report != nil {
			d.Last.Report = MustJSON(a.Report)
		}
	}
	return d.EncodeDetail()
}
