package control

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/ledger"
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
)

// submitted accepts a job, or all tasks of an array: task i has number First+i.
type submitted struct {
	First job.ID    `json:"first"`
	Spec  *job.Spec `json:"spec"`
}

// held grants an allocation and begins an attempt.
type held struct {
	Allocation ledger.Allocation `json:"allocation"`
}

// started says that the barrier of an attempt was opened.
type started struct {
	Ref     engine.Ref `json:"ref"`
	Started time.Time  `json:"started"`
}

// ended says how an attempt ended and that its allocation is free: the report is
// the proof.
type ended struct {
	Ref    engine.Ref    `json:"ref"`
	State  job.State     `json:"state"` // the job's next state; Pending for a requeue
	By     job.Cause     `json:"by"`
	Flags  job.Flags     `json:"flags,omitempty"`
	Report engine.Report `json:"report"`
}

// uncertain marks an allocation whose work nobody can prove, or takes that back.
type uncertain struct {
	Ref       engine.Ref `json:"ref"`
	Uncertain bool       `json:"uncertain"`
	Message   string     `json:"message,omitempty"`
}

// cancel asks for the end of a job; a pending one has ended with it.
type cancel struct {
	By     string        `json:"by"`
	Signal int           `json:"signal,omitempty"`
	Grace  time.Duration `json:"grace"`
}

// hold sets or clears a job's hold.
type hold struct {
	By   string `json:"by"`
	Held bool   `json:"held"`
}

// requeue asks for a new attempt; a job that has ended waits again with it.
type requeue struct {
	By string `json:"by"`
}

// record makes a journal record; payloads are ours and always marshal.
func record(at time.Time, kind string, id job.ID, payload any) store.Record {
	data, err := json.Marshal(payload)
	if err != nil {
		panic(fmt.Sprintf("control: %s record: %v", kind, err))
	}
	return store.Record{At: at.UTC().Truncate(time.Microsecond), Kind: kind, Job: uint64(id), Data: data}
}

func decode[T any](r store.Record) (T, error) {
	var v T
	if err := json.Unmarshal(r.Data, &v); err != nil {
		return v, fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Kind, err)
	}
	return v, nil
}
