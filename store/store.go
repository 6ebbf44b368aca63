// Package store is the contract for what must survive: one journal in order, large
// blobs by hash, and a projection of jobs that can be made again from the journal
// as long as the journal is whole.
//
// A record is durable when Append returns, all of a batch or none. A blob is
// durable no later than the next Append that returns without an error, so that
// many submissions share one flush. Every write of the journal and of the
// projection carries the epoch of the leader that makes it; a store refuses the
// epoch of a leader that was followed by another, so a server that lost leadership
// in the middle of a write changes nothing.
//
// The journal has no gap from First on. Purge takes away its oldest part, never
// beyond what the projection reflects, and can keep the records that somebody
// asked for (the audit) longer.
//
// The store reads no clock: the age of everything is the At of the records that
// came with it. It does not know what a record or a document means, and it does not
// decide who may read what.
//
// Memory is the implementation for tests and simulation; store/sqlite and later
// store/postgres pass store/storetest with it.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Actor is who asked for a change. The zero value is the control plane itself.
type Actor struct {
	Name string `json:"name"`
	UID  uint32 `json:"uid"`
	From string `json:"from,omitempty"` // "socket", "tcp 127.0.0.1:5123", "cox run"
}

// Record is one entry of the journal. Seq is given by the store, 1 first, without
// gaps.
type Record struct {
	Seq   uint64          `json:"seq"`
	Epoch uint64          `json:"epoch"`
	At    time.Time       `json:"at"` // of the clock that control was given, UTC, to the microsecond
	Kind  string          `json:"kind"`
	Job   uint64          `json:"job,omitempty"` // the job that it concerns first, for look-ups
	By    Actor           `json:"by,omitzero"`   // who asked; zero: the control plane itself
	Data  json.RawMessage `json:"data"`
}

// Store keeps a journal. Implementations are safe for concurrent use. The callbacks
// may be slow and may call the store: nothing is locked while one runs.
type Store interface {
	// Lead makes the caller the leader and returns its epoch, larger than every
	// epoch before. From then on writes of earlier epochs are fault.Conflict.
	Lead(ctx context.Context, who string) (epoch uint64, err error)

	// Append writes the records in order, all or none, and returns the Seq of the
	// last one once they and all blobs put before are durable. It sets Seq and
	// Epoch; the caller's slice is not changed. fault.Exhausted says that there is
	// no room: nothing was written, and the same call succeeds when there is. After
	// another error but fault.Conflict the batch may be durable all the same: Read
	// tells, and what it does not find then never will be. Append of no records
	// writes nothing, no blob either, and says whether the epoch leads.
	Append(ctx context.Context, epoch uint64, recs []Record) (last uint64, err error)
	// Read calls f for every record with a Seq above after, in order.
	// fault.NotFound says that records after it have been purged (see First).
	Read(ctx context.Context, after uint64, f func(Record) error) error
	// First returns the Seq of the oldest record that Read can begin with; 1 of
	// a journal that was never purged, even if it is empty.
	First(ctx context.Context) (uint64, error)
	// Records calls f for the records that q asks for, ascending: those of the
	// journal and those that are kept as the audit only.
	Records(ctx context.Context, q RecordQuery, f func(Record) error) error

	// Project writes job rows and documents that reflect the journal up to Seq
	// upTo, all or none. A nil document is removed. Project is durable no later
	// than the next Append.
	Project(ctx context.Context, epoch, upTo uint64, rows []JobRow, docs map[string][]byte) error
	// Projected returns the Seq that the projection reflects.
	Projected(ctx context.Context) (uint64, error)
	// Doc returns a document of the projection; fault.NotFound if there is none.
	Doc(ctx context.Context, name string) ([]byte, error)
	// Job returns the row of a job; fault.NotFound if there is none.
	Job(ctx context.Context, id uint64) (JobRow, error)
	// Live calls f for the rows that are not Final, by number, ascending.
	Live(ctx context.Context, f func(JobRow) error) error
	// History calls f for the rows that q asks for, largest number first.
	History(ctx context.Context, q Query, f func(JobRow) error) error

	// PutBlob keeps bytes and returns their hash (Hash). They can be read at once,
	// and are durable when the next Append has returned. Putting the same bytes
	// again is cheap and renews them for Purge.
	PutBlob(ctx context.Context, b []byte) (hash string, err error)
	// Blob returns the bytes of a hash; fault.NotFound if there are none.
	Blob(ctx context.Context, hash string) ([]byte, error)

	// Purge removes what is older than the request says, a bounded amount per call.
	Purge(ctx context.Context, epoch uint64, req PurgeRequest) (PurgeResult, error)
	// Close releases the store. Nothing that was durable is lost.
	Close() error
}

// Backuper is a Store that can copy itself while it is used.
type Backuper interface {
	// Backup writes a consistent copy into a directory that does not exist or is
	// empty. The copy has all that was durable when Backup was called, and is
	// itself durable when Backup returns. Without an error it is complete.
	Backup(ctx context.Context, dir string) error
}

// Hash is the name of a blob: SHA-256 in lower-case hex.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
