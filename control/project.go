package control

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/share"
	"github.com/coxswain-sched/coxswain/store"
)

// projector writes what changed to the store's projection, apart from the loop. A
// row carries the Seq that it reflects, so rows may be newer than the projection as
// a whole says: what the journal tells again of them is passed over at a start.
type projector struct {
	control *Control
	epoch   uint64
	upTo    uint64 // what the store's projection reflects
	kick    chan struct{}
	last    time.Time // of the last write
	failing bool
	waiting int // jobs that waited when it was last looked
}

// Under load the projection waits: a job that ends soon is written once then.
const (
	busyFrom = 300              // jobs more that wait than an interval before
	busyFor  = 10 * time.Second // at most
)

// isBusy reports whether to look again later.
func (p *projector) isBusy() bool {
	n := p.control.state.unprojected()
	more := n - p.waiting
	p.waiting = n
	past := p.control.cfg.Clock.Now().Sub(p.last)
	return more >= busyFrom && past >= 0 && past < busyFor
}

// rowsAtOnce is how many rows one write has, so that the journal does not wait long for it.
const rowsAtOnce = 256

const (
	rowsLocked = 32        // rows that are made while the loop may have to wait
	docControl = "control" // the document of the projection beside the rows
)

// stateDoc is what the projection keeps beside jobs.
type stateDoc struct {
	Next       job.ID                  `json:"next"`
	Allocation uint64                  `json:"allocation"` // the next one's number
	Drains     map[fleet.NodeKey]Drain `json:"drains,omitempty"`
	Tokens     []Token                 `json:"tokens,omitempty"`
	Pools      []PoolSpec              `json:"pools,omitempty"`
	Policies   []Policy                `json:"policies,omitempty"` // without their documents
	Usage      *usage                  `json:"usage,omitempty"`
	Seen       *share.Memory           `json:"seen,omitempty"`
}

// run writes at intervals until ctx ends. What is not written then is in the journal.
func (p *projector) run(ctx context.Context) {
	c := p.control
	if c.cfg.Project < 0 {
		return
	}
	for ctx.Err() == nil {
		timer, stop := c.cfg.Clock.After(c.cfg.Project)
		select {
		case <-timer:
			if p.isBusy() {
				stop()
				continue
			}
		case <-p.kick:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			break
		}
		err := p.write(ctx)
		switch {
		case ctx.Err() != nil:
		case fault.KindOf(err) == fault.Conflict && err != nil:
			return // the loop hears of it too
		case err != nil && !p.failing:
			c.cfg.Log.Warn("the projection cannot be written, trying again", "error", err)
		case err == nil && p.failing:
			c.cfg.Log.Info("the projection is written again")
		}
		p.failing = err != nil
	}
}

// write brings the projection up to the state of now.
func (p *projector) write(ctx context.Context) error {
	s := p.control.state
	s.Lock()
	p.last, p.waiting = p.control.cfg.Clock.Now(), 0
	target, list, docs, written := s.takeUnprojected()
	s.Unlock()
	if target == p.upTo && len(list) == 0 {
		return nil
	}
	for {
		n := min(len(list), rowsAtOnce)
		rows := s.makeRows(list[:n])
		upTo, also := p.upTo, map[string][]byte(nil)
		if n == len(list) {
			upTo, also = target, docs
		}
		if err := p.control.cfg.Store.Project(ctx, p.epoch, upTo, rows, also); err != nil {
			s.markUnwritten(list)
			return err
		}
		s.markWritten(list[:n])
		if list = list[n:]; len(list) == 0 {
			p.upTo = target
			written()
			return nil
		}
	}
}

// unprojected counts the jobs whose rows in the projection are not what the jobs are.
func (s *state) unprojected() int {
	s.RLock()
	defer s.RUnlock()
	return len(s.dirty)
}

// takeUnprojected returns what the projection lacks: jobs and documents, and the record up
// to which it reflects the journal with them. written has to be called, without the lock,
// when all of it is in the store. The caller holds the lock.
func (s *state) takeUnprojected() (seq uint64, list []*jobRecord, docs map[string][]byte, written func()) {
	seq, docs = s.seq, map[string][]byte{docControl: s.encodeDoc()}
	docsWritten := s.policies.pendingDocs(docs)
	list, s.dirty = s.dirty, nil
	return seq, list, docs, func() {
		s.Lock()
		defer s.Unlock()
		s.counts.projected = seq
		docsWritten()
	}
}

// makeRows makes the rows of jobs as they are now. A job that changes after its row was
// made is dirty again.
func (s *state) makeRows(list []*jobRecord) []store.JobRow {
	out := make([]store.JobRow, 0, len(list))
	for chunk := range slices.Chunk(list, rowsLocked) {
		s.Lock()
		for _, e := range chunk {
			e.dirty, e.writing = false, true
			out = append(out, e.projectRow())
		}
		s.Unlock()
	}
	return out
}

// markWritten notes that rows can be read.
func (s *state) markWritten(list []*jobRecord) {
	s.Lock()
	defer s.Unlock()
	for _, e := range list {
		e.writing = false
	}
}

// markUnwritten takes jobs back whose rows were not written.
func (s *state) markUnwritten(list []*jobRecord) {
	s.Lock()
	defer s.Unlock()
	for _, e := range list {
		e.dirty, e.writing = true, false
	}
	seen := map[*jobRecord]bool{}
	s.dirty = slices.DeleteFunc(append(list, s.dirty...), func(e *jobRecord) bool {
		again := seen[e]
		seen[e] = true
		return again
	})
}

func (s *state) encodeDoc() []byte {
	w := stateDoc{Next: s.next, Allocation: uint64(s.ledger.NextID()), Drains: maps.Collect(s.drains.All()), Policies: s.policies.withoutDocuments(), Usage: s.usage, Seen: s.arrivals}
	for _, t := range s.tokens {
		w.Tokens = append(w.Tokens, t)
	}
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		w.Pools = append(w.Pools, s.pools[name])
	}
	slices.SortFunc(w.Tokens, func(a, b Token) int { return strings.Compare(a.ID, b.ID) })
	return mustJSON(w)
}

// rowDetail is a job as its row keeps it: everything that a start needs. It begins with
// the length of the form and the form, which is read once for all jobs that have it.
type rowDetail struct {
	Seq      uint64          `json:"seq"`
	Own      *specDelta      `json:"own"`
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
	LimitEnd int64           `json:"limit_end,omitempty"`
	Message  string          `json:"message,omitempty"`
	Moved    int64           `json:"moved,omitempty"`   // when it was last asked to move
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
	Cancel     *cancel         `json:"cancel,omitempty"`
	Requeue    *requeue        `json:"requeue,omitempty"`
	Preempted  *preempted      `json:"preempted,omitempty"`
	Asked      int64           `json:"asked,omitempty"`
	Saved      int64           `json:"saved,omitempty"`
	Expired    *expired        `json:"expired,omitempty"`
	Started    int64           `json:"started,omitempty"`
	Ended      int64           `json:"ended,omitempty"`
	Exit       job.ExitCode    `json:"exit"`
	Limit      time.Duration   `json:"limit,omitempty"`
	Parked     bool            `json:"parked,omitempty"`
	Asleep     bool            `json:"asleep,omitempty"`
	HeldFrom   int64           `json:"held_from,omitempty"`
	HeldFor    time.Duration   `json:"held_for,omitempty"`
	Added      []*jobAddition  `json:"added,omitempty"`
	Ranks      int             `json:"ranks,omitempty"`
	Settled    bool            `json:"settled,omitempty"`
}

// projectRow is the projection of a job.
func (e *jobRecord) projectRow() store.JobRow {
	v := viewOf(e)
	s := v.Job.Spec
	row := store.JobRow{
		ID: uint64(e.id), Task: -1, Name: s.Name, User: s.Owner.User, Account: s.Account, QOS: s.QOS,
		Partition: strings.Join(s.Partitions, ","), State: e.state.String(), Priority: e.priority,
		Submitted: truncateMicro(v.Job.Submitted), Started: truncateMicro(v.Job.Started), Ended: truncateMicro(v.Job.Ended),
		Exit: v.Job.Exit.Shell(), Final: e.state.Final(),
	}
	if e.array != nil {
		row.Array, row.Task = uint64(e.array.first), int64(e.index)
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

func (e *jobRecord) projectDetail(spec *job.Spec) []byte {
	_, o := splitSpec(*spec)
	o.Array = nil
	d := rowDetail{
		Seq: e.seq, Own: &o, Spec: json.RawMessage(e.shared.key), State: e.state, Flags: e.flags,
		Attempt: e.attempt, Priority: e.priority, At: e.at, Sent: e.submitted, Eligible: e.eligible,
	}
	if e.array != nil {
		d.Array, d.Index = e.array.tasksOf(), e.index
	}
	if m := e.extra; m != nil {
		d.Again, d.Failed, d.LimitEnd, d.Message, d.Moved = m.again, m.failed, m.limitEnd, m.message, m.moved
		d.Foretold = [2]int64{m.foretold, m.foretoldAt}
		d.Kept, d.KeptAs = m.kept, m.keptAs
	}
	if a := e.last; a != nil {
		d.Last = &attemptRow{
			Allocation: uint64(a.id), Epoch: a.epoch, Pool: a.pool, Claims: a.claims, Flavors: a.flavors, License: a.license, Cancel: a.cancel, Handed: a.handed,
			Requeue: a.requeue, Preempted: a.preempted, Asked: a.asked, Saved: a.saved, Expired: a.expired, Started: a.started, Ended: a.ended, Exit: a.exit, Limit: a.limit,
			Parked: a.preemptSuspended, Asleep: a.userSuspended, HeldFrom: a.suspendedAt, HeldFor: a.suspendedFor,
			Added: a.added, Ranks: a.ranks, Settled: a.settled,
		}
		if a.report != nil {
			d.Last.Report = mustJSON(a.report)
		}
	}
	return d.encodeDetail()
}
