package state

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/store"
)

// The kinds of journal record. Names and payloads are a format on disk: fields are
// added, never renamed.
const (
	KindSubmitted = "submitted"
	KindHeld      = "allocation-held"
	KindStarted   = "attempt-started"
	KindEnded     = "attempt-ended"
	KindUncertain = "allocation-uncertain"
	KindCancel    = "cancel-asked"
	KindHold      = "hold-set"
	KindRequeue   = "requeue-asked"
	KindExpired   = "time-over"
	KindSuspend   = "suspend-set"
	KindUpdate    = "job-updated"
	KindTop       = "queue-moved"
	KindPoolMove  = "job-moved"
	KindNodes     = "nodes-set"
	KindHealth    = "node-health"
	KindToken     = "token-made"
	KindRevoked   = "token-revoked"
	KindPreempted = "preempt-asked"
	KindSaved     = "checkpoint-saved"
	KindPool      = "pool-added"
	KindPoolGone  = "pool-removed"
	KindPolicy    = "policy-set"
	KindUsage     = "usage-kept"
	KindLearned   = "placement-learned"
	KindAdded     = "allocation-added"
	KindJoined    = "addition-started"
	KindAsked     = "addition-asked-back"
	KindDropped   = "addition-ended"

	KindController     = "controller-set"
	KindControllerGone = "controller-gone"
	KindOwner          = "machine-owner"
)

// submitted accepts a job, or all tasks of an array: task i has number First+i. Spec
// is the form; journals of the first version have the whole specification there and
// no own part.
type submitted struct {
	First job.ID          `json:"first"`
	Own   *SpecDelta      `json:"own,omitempty"`
	Spec  json.RawMessage `json:"spec"`
}

// Held grants an allocation and begins an attempt.
type Held struct {
	Allocation ledger.Allocation `json:"allocation"`
	Limit      time.Duration     `json:"limit,omitempty"` // of this attempt, where it is shorter than the job's
}

// Started says that the barrier of an attempt was opened: its tasks run.
type Started struct {
	Ref     engine.Ref `json:"ref"`
	Started time.Time  `json:"started"`
	Nodes   []string   `json:"nodes,omitempty"` // where it was seen, if its claims are on a pool as a whole

	// Of one that began on a pool as a whole before the usage was reckoned that is kept, at At
	// in Unix seconds: what it used up to then.
	At   int64        `json:"at,omitempty"`
	Used []fair.Entry `json:"used,omitempty"`
}

// Ended says how an attempt ended and that its allocation is free: the report is
// the proof.
type Ended struct {
	Ref    engine.Ref    `json:"ref"`
	State  job.State     `json:"state"` // the job's next state; Pending for a requeue
	By     job.Cause     `json:"by"`
	Flags  job.Flags     `json:"flags,omitempty"`
	Report engine.Report `json:"report"`
	Again  time.Time     `json:"again,omitzero"`   // of a requeue: not before
	Failed int           `json:"failed,omitempty"` // attempts that failed in a row, this one with them
	// Retried is the number of the retry that follows, by the job's own Retries. 0: none does.
	Retried int `json:"retried,omitempty"`
	// KeepOff is for how long the job is kept off the nodes that failed it (Report.FailedOn). 0: it is
	// not.
	KeepOff time.Duration `json:"keep_off,omitempty"`
	Used    []fair.Entry  `json:"used,omitempty"` // what it is charged for and the last KindUsage has not
}

// Uncertain marks an allocation whose work cannot be proved running or gone, or takes that back.
type Uncertain struct {
	Ref       engine.Ref `json:"ref"`
	Uncertain bool       `json:"uncertain"`
	Message   string     `json:"message,omitempty"`
}

// Cancel asks for the end of a job; a pending one has ended with it. State, here and
// below, is the job's state after the record; journals of the first version lack it,
// and have the name of who asked in By instead of in the record.
type Cancel struct {
	By      string        `json:"by,omitempty"`
	Signal  int           `json:"signal,omitempty"`
	Grace   time.Duration `json:"grace"`
	Message string        `json:"message,omitempty"`
	State   *job.State    `json:"state,omitempty"`
}

// Hold sets or clears a job's hold.
type Hold struct {
	By    string     `json:"by,omitempty"`
	Held  bool       `json:"held"`
	Admin bool       `json:"admin,omitempty"`
	State *job.State `json:"state,omitempty"`
}

// Requeue asks for a new attempt; a job that has ended waits again with it.
type Requeue struct {
	By   string `json:"by,omitempty"`
	Hold bool   `json:"hold,omitempty"`
	// Special says that it is held in Slurm's state SPECIAL_EXIT.
	Special bool       `json:"special,omitempty"`
	State   *job.State `json:"state,omitempty"`
}

// Expired ends a job whose time is over: State DEADLINE, or TIMEOUT for a limit that
// was lowered while it ran. A pending job has ended with it, a running one is being
// stopped: After is its state until then.
type Expired struct {
	State job.State     `json:"state"`
	Grace time.Duration `json:"grace"`
	After *job.State    `json:"after,omitempty"`
}

// Stop is how the engine is asked to end the attempt.
func (v *Expired) Stop() engine.Stop {
	return engine.Stop{Grace: v.Grace, Reason: "its time is over", Why: engine.ForTimeLimit}
}

// Suspend stops the processes of a job, or continues them. Parked says that the scheduler
// does, to make room: the engine has proved that they are stopped, or all that the job
// holds is free for it again.
type Suspend struct {
	On     bool       `json:"on"`
	Parked bool       `json:"parked,omitempty"`
	State  *job.State `json:"state,omitempty"`
}

// Update replaces the specification of a job.
type Update struct {
	Own        *SpecDelta      `json:"own"`
	Spec       json.RawMessage `json:"spec"`
	Fields     []string        `json:"fields"` // what was changed, for people
	MaxRunning *uint32         `json:"max_running,omitempty"`
	Queue      *QueuePlace     `json:"queue,omitempty"` // the job's new place in the queue; nil: as before
	State      *job.State      `json:"state,omitempty"`
}

// PoolMove moves a job that waits to another pool: at once if it waits here, else, if it was handed
// over to another scheduler, once it has been taken back from there. A job that begins there first
// stays. It keeps its place in the queue.
type PoolMove struct {
	From  string          `json:"from"`
	To    string          `json:"to"`
	Own   *SpecDelta      `json:"own,omitempty"` // as the job is in the other pool
	Spec  json.RawMessage `json:"spec,omitempty"`
	Why   string          `json:"why"` // for people
	State *job.State      `json:"state,omitempty"`
	// Undone says that the job is not taken back for this move any more: it stays. Own and Spec are empty then.
	Undone bool `json:"undone,omitempty"`
}

// QueuePlace is a job's place in the queue: larger priority first, then earlier At.
type QueuePlace struct {
	Job      job.ID `json:"job,omitempty"`
	Priority int64  `json:"priority"`
	At       int64  `json:"at"` // nanoseconds since the Unix epoch
}

// QueueMoved gives jobs new places in the queue.
type QueueMoved struct {
	Moves []QueuePlace `json:"moves"`
	State *job.State   `json:"state,omitempty"`
}

// NodesSet drains nodes or takes that back.
type NodesSet struct {
	Nodes  []string `json:"nodes"`
	Pools  []string `json:"pools,omitempty"` // of each of the nodes; none: each is the only node of its name
	Drain  bool     `json:"drain"`
	Reason string   `json:"reason,omitempty"`
}

// NodesRecord is the record that drains nodes or takes that back.
func NodesRecord(keys []fleet.NodeKey, drain bool, why string) NodesSet {
	v := NodesSet{Drain: drain, Reason: why}
	for _, k := range keys {
		v.Nodes, v.Pools = append(v.Nodes, k.Name), append(v.Pools, k.Pool)
	}
	return v
}

// nodeKeys are the nodes of a record.
func (v *NodesSet) nodeKeys() []fleet.NodeKey {
	out := make([]fleet.NodeKey, len(v.Nodes))
	for i, name := range v.Nodes {
		if out[i].Name = name; i < len(v.Pools) {
			out[i].Pool = v.Pools[i]
		}
	}
	return out
}

// Revoked makes a token invalid.
type Revoked struct {
	ID string `json:"id"`
}

// NewRecord makes a journal record with a payload of this package.
func NewRecord(at time.Time, kind string, id job.ID, by job.Actor, payload any) store.Record {
	return store.Record{
		At: at.UTC().Truncate(time.Microsecond), Kind: kind, Job: uint64(id),
		By: store.Actor{Name: by.Name, UID: by.UID, From: by.From}, Data: payloadJSON(payload),
	}
}

func payloadJSON(payload any) []byte {
	if a, ok := payload.(*AcceptedSubmission); ok {
		return a.encodePayload()
	}
	return MustJSON(payload)
}

// payloadOf is a record's payload: the one that was staged, or what stands on disk.
func payloadOf[T any](r *store.Record, staged any) (v T, err error) {
	if v, ok := staged.(T); ok {
		return v, nil
	}
	if err := json.Unmarshal(r.Data, &v); err != nil {
		return v, err
	}
	return v, nil
}

// AcceptedSubmission is the staged payload of KindSubmitted.
type AcceptedSubmission struct {
	First    job.ID
	Shared   *SharedSpec
	OwnDelta SpecDelta
	Delta    PackedDelta
	Text     []byte                // JSON of own; nil: not made yet
	Past     map[job.ID]*PastFates // of what it depends on and memory does not know; not in the record
}

// encodePayload is the payload of the record.
func (a *AcceptedSubmission) encodePayload() []byte {
	o := a.Text
	if o == nil {
		o = MustJSON(&a.OwnDelta)
	}
	b := make([]byte, 0, len(o)+len(a.Shared.Key)+64)
	b = append(b, `{"first":`...)
	b = strconv.AppendUint(b, uint64(a.First), 10)
	b = append(append(append(b, `,"own":`...), o...), `,"spec":`...)
	return append(append(b, a.Shared.Key...), '}')
}

// admittedOf reads the payload of a KindSubmitted record.
func (fs *SharedSpecs) admittedOf(r *store.Record, staged any) (*AcceptedSubmission, error) {
	if a, ok := staged.(*AcceptedSubmission); ok {
		return a, nil
	}
	v, err := payloadOf[submitted](r, nil)
	if err != nil {
		return nil, err
	}
	f, o, err := fs.readSpec(v.Own, v.Spec)
	if err != nil {
		return nil, err
	}
	return &AcceptedSubmission{First: v.First, Shared: f, OwnDelta: o, Delta: PackDelta(&o, &f.Def)}, nil
}

// readSpec uses a specification that was written in two parts, or as a whole by the first
// version. The fields that decide the order of jobs are checked as older versions checked them.
func (fs *SharedSpecs) readSpec(o *SpecDelta, spec json.RawMessage) (*SharedSpec, SpecDelta, error) {
	if o != nil {
		if err := (&job.Spec{Array: o.Array, Depends: o.dependencyOrZero()}).CheckOrder(); err != nil {
			return nil, SpecDelta{}, err
		}
		f, err := fs.get(string(spec), o, func(into *job.Spec) error {
			if err := json.Unmarshal(spec, into); err != nil {
				return err
			}
			return into.CheckRequest()
		})
		return f, *o, err
	}
	var s job.Spec
	if err := json.Unmarshal(spec, &s); err != nil {
		return nil, SpecDelta{}, err
	}
	if err := errors.Join((&job.Spec{Array: s.Array, Depends: s.Depends}).CheckOrder(), s.CheckRequest()); err != nil {
		return nil, SpecDelta{}, err
	}
	f, whole := fs.UseSpec(&s)
	return f, whole, nil
}

// TaskCount is the number of jobs that the submission makes.
func (a *AcceptedSubmission) TaskCount() int {
	if a.OwnDelta.Array == nil {
		return 1
	}
	return len(a.OwnDelta.Array.Indices)
}
