package control

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
	kindSubmitted = "submitted"
	kindHeld      = "allocation-held"
	kindStarted   = "attempt-started"
	kindEnded     = "attempt-ended"
	kindUncertain = "allocation-uncertain"
	kindCancel    = "cancel-asked"
	kindHold      = "hold-set"
	kindRequeue   = "requeue-asked"
	kindExpired   = "time-over"
	kindSuspend   = "suspend-set"
	kindUpdate    = "job-updated"
	kindTop       = "queue-moved"
	kindNodes     = "nodes-set"
	kindToken     = "token-made"
	kindRevoked   = "token-revoked"
	kindPreempted = "preempt-asked"
	kindSaved     = "checkpoint-saved"
	kindPool      = "pool-added"
	kindPoolGone  = "pool-removed"
	kindPolicy    = "policy-set"
	kindUsage     = "usage-kept"
	kindLearned   = "placement-learned"
	kindAdded     = "allocation-added"
	kindJoined    = "addition-started"
	kindAsked     = "addition-asked-back"
	kindDropped   = "addition-ended"
)

// submitted accepts a job, or all tasks of an array: task i has number First+i. Spec
// is the form; journals of the first version have the whole specification there and
// no own part.
type submitted struct {
	First job.ID          `json:"first"`
	Own   *specDelta      `json:"own,omitempty"`
	Spec  json.RawMessage `json:"spec"`
}

// held grants an allocation and begins an attempt.
type held struct {
	Allocation ledger.Allocation `json:"allocation"`
	Limit      time.Duration     `json:"limit,omitempty"` // of this attempt, where it is shorter than the job's
}

// started says that the barrier of an attempt was opened.
type started struct {
	Ref     engine.Ref `json:"ref"`
	Started time.Time  `json:"started"`
	Nodes   []string   `json:"nodes,omitempty"` // where it was seen, if its claims are on a pool as a whole

	// Of one that began on a pool as a whole before the usage was reckoned that is kept, at At
	// in Unix seconds: what it used up to then.
	At   int64        `json:"at,omitempty"`
	Used []fair.Entry `json:"used,omitempty"`
}

// ended says how an attempt ended and that its allocation is free: the report is
// the proof.
type ended struct {
	Ref    engine.Ref    `json:"ref"`
	State  job.State     `json:"state"` // the job's next state; Pending for a requeue
	By     job.Cause     `json:"by"`
	Flags  job.Flags     `json:"flags,omitempty"`
	Report engine.Report `json:"report"`
	Again  time.Time     `json:"again,omitzero"`   // of a requeue: not before
	Failed int           `json:"failed,omitempty"` // attempts that failed in a row, this one with them
	Used   []fair.Entry  `json:"used,omitempty"`   // what it is charged for and the last kindUsage has not
}

// uncertain marks an allocation whose work nobody can prove, or takes that back.
type uncertain struct {
	Ref       engine.Ref `json:"ref"`
	Uncertain bool       `json:"uncertain"`
	Message   string     `json:"message,omitempty"`
}

// cancel asks for the end of a job; a pending one has ended with it. State, here and
// below, is the job's state after the record; journals of the first version lack it,
// and have the name of who asked in By instead of in the record.
type cancel struct {
	By      string        `json:"by,omitempty"`
	Signal  int           `json:"signal,omitempty"`
	Grace   time.Duration `json:"grace"`
	Message string        `json:"message,omitempty"`
	State   *job.State    `json:"state,omitempty"`
}

// hold sets or clears a job's hold.
type hold struct {
	By    string     `json:"by,omitempty"`
	Held  bool       `json:"held"`
	Admin bool       `json:"admin,omitempty"`
	State *job.State `json:"state,omitempty"`
}

// requeue asks for a new attempt; a job that has ended waits again with it.
type requeue struct {
	By    string     `json:"by,omitempty"`
	Hold  bool       `json:"hold,omitempty"`
	State *job.State `json:"state,omitempty"`
}

// expired ends a job whose time is over: State DEADLINE, or TIMEOUT for a limit that
// was lowered while it ran. A pending job has ended with it, a running one is being
// stopped: After is its state until then.
type expired struct {
	State job.State     `json:"state"`
	Grace time.Duration `json:"grace"`
	After *job.State    `json:"after,omitempty"`
}

// suspend stops the processes of a job, or continues them. Parked says that the scheduler
// does, to make room: the engine has proved that they are stopped, or all that the job
// holds is free for it again.
type suspend struct {
	On     bool       `json:"on"`
	Parked bool       `json:"parked,omitempty"`
	State  *job.State `json:"state,omitempty"`
}

// update replaces what was asked for.
type update struct {
	Own        *specDelta      `json:"own"`
	Spec       json.RawMessage `json:"spec"`
	Fields     []string        `json:"fields"` // what was changed, for people
	MaxRunning *uint32         `json:"max_running,omitempty"`
	Queue      *queuePlace     `json:"queue,omitempty"` // the job's new place in the queue; nil: as before
	State      *job.State      `json:"state,omitempty"`
}

// queuePlace is a job's place in the queue: larger priority first, then earlier At.
type queuePlace struct {
	Job      job.ID `json:"job,omitempty"`
	Priority int64  `json:"priority"`
	At       int64  `json:"at"` // nanoseconds since the Unix epoch
}

// queueMoved gives jobs new places in the queue.
type queueMoved struct {
	Moves []queuePlace `json:"moves"`
	State *job.State   `json:"state,omitempty"`
}

// nodesSet drains nodes or takes that back.
type nodesSet struct {
	Nodes  []string `json:"nodes"`
	Pools  []string `json:"pools,omitempty"` // of each of the nodes; none: each is the only node of its name
	Drain  bool     `json:"drain"`
	Reason string   `json:"reason,omitempty"`
}

// nodesRecord is the record that drains nodes or takes that back.
func nodesRecord(keys []fleet.NodeKey, drain bool, why string) nodesSet {
	v := nodesSet{Drain: drain, Reason: why}
	for _, k := range keys {
		v.Nodes, v.Pools = append(v.Nodes, k.Name), append(v.Pools, k.Pool)
	}
	return v
}

// nodeKeys are the nodes of a record.
func (v *nodesSet) nodeKeys() []fleet.NodeKey {
	out := make([]fleet.NodeKey, len(v.Nodes))
	for i, name := range v.Nodes {
		if out[i].Name = name; i < len(v.Pools) {
			out[i].Pool = v.Pools[i]
		}
	}
	return out
}

// revoked makes a token invalid.
type revoked struct {
	ID string `json:"id"`
}

// newRecord makes a journal record; payloads are ours and always marshal.
func newRecord(at time.Time, kind string, id job.ID, by job.Actor, payload any) store.Record {
	return store.Record{
		At: at.UTC().Truncate(time.Microsecond), Kind: kind, Job: uint64(id),
		By: store.Actor{Name: by.Name, UID: by.UID, From: by.From}, Data: payloadJSON(payload),
	}
}

func payloadJSON(payload any) []byte {
	if a, ok := payload.(*acceptedSubmission); ok {
		return a.encodePayload()
	}
	return mustJSON(payload)
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

// acceptedSubmission is a submission as it is applied: what kindSubmitted stands for.
type acceptedSubmission struct {
	first    job.ID
	shared   *sharedSpec
	ownDelta specDelta
	delta    packedDelta
	text     []byte                // JSON of own; nil: not made yet
	past     map[job.ID]*pastFates // of what it depends on and memory does not know; not in the record
}

// encodePayload is the payload of the record.
func (a *acceptedSubmission) encodePayload() []byte {
	o := a.text
	if o == nil {
		o = mustJSON(&a.ownDelta)
	}
	b := make([]byte, 0, len(o)+len(a.shared.key)+64)
	b = append(b, `{"first":`...)
	b = strconv.AppendUint(b, uint64(a.first), 10)
	b = append(append(append(b, `,"own":`...), o...), `,"spec":`...)
	return append(append(b, a.shared.key...), '}')
}

// admittedOf reads the payload of a kindSubmitted record.
func (fs *sharedSpecs) admittedOf(r *store.Record, staged any) (*acceptedSubmission, error) {
	if a, ok := staged.(*acceptedSubmission); ok {
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
	return &acceptedSubmission{first: v.First, shared: f, ownDelta: o, delta: packDelta(&o, &f.def)}, nil
}

// readSpec uses the form of a specification that was written in two parts, or whole. Of
// that which decides the order of jobs it takes what older versions took too.
func (fs *sharedSpecs) readSpec(o *specDelta, spec json.RawMessage) (*sharedSpec, specDelta, error) {
	if o != nil {
		if err := (&job.Spec{Array: o.Array, Depends: o.dependencyOrZero()}).CheckOrder(); err != nil {
			return nil, specDelta{}, err
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
		return nil, specDelta{}, err
	}
	if err := errors.Join((&job.Spec{Array: s.Array, Depends: s.Depends}).CheckOrder(), s.CheckRequest()); err != nil {
		return nil, specDelta{}, err
	}
	f, whole := fs.useSpec(&s)
	return f, whole, nil
}

// taskCount is how many jobs it makes.
func (a *acceptedSubmission) taskCount() int {
	if a.ownDelta.Array == nil {
		return 1
	}
	return len(a.ownDelta.Array.Indices)
}
