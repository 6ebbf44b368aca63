package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// ErrDamaged is in the chain of every error about stored data that does not read as it was
// written.
var ErrDamaged = errors.New("damaged")

// Damage is one row that does not read as it was written, or another fault of the stored data.
type Damage struct {
	Table string // "job", "journal", "audit", "blob", …; empty: the database as a whole
	Row   string // its key
	Job   uint64 // the job whose row it is; 0: of no job
	Why   string
}

// String names the row, for people.
func (d Damage) String() string {
	switch {
	case d.Job != 0:
		return fmt.Sprintf("the stored row of job %d: %s", d.Job, d.Why)
	case d.Row == "":
		return d.Why
	}
	return fmt.Sprintf("row %s of table %s: %s", d.Row, d.Table, d.Why)
}

// Checker is a Store that checks what it keeps.
type Checker interface {
	// Scrub reads and checks everything in the store once. It calls pace with the number of
	// bytes that it has read since the last call, and ends with the error that pace returns.
	// Damages lists the damage that it finds. Other calls go on meanwhile.
	Scrub(ctx context.Context, pace func(bytes int) error) error
	// Damages lists the damage that Scrub or any other read has found since the store was
	// opened, each once.
	Damages() []Damage
}

// DamagedJob is the error for a job whose row is damaged. Its kind is fault.NotFound, for
// the job cannot be shown and everything else can.
func DamagedJob(id uint64) error {
	return fault.New(fault.NotFound, "the stored row of job %d is %w", id, ErrDamaged).
		Advise("an administrator can look for it in a backup; docs/explanation/state.md says how")
}
