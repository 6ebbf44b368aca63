// Package store is the contract for what must survive: one journal in order, large
// blobs by hash, and a projection of jobs that can always be made again from the
// journal.
//
// A record is durable when Append returns, all of a batch or none. Every write
// carries the epoch of the leader that makes it; a store refuses the epoch of a
// leader that was followed by another, so a server that lost leadership in the
// middle of a write changes nothing. Memory is the implementation for tests and
// simulation; store/sqlite and later store/postgres pass store/storetest with it.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Record is one entry of the journal. Seq is given by the store, 1 first, without
// gaps.
type Record struct {
	Seq   uint64          `json:"seq"`
	Epoch uint64          `json:"epoch"`
	At    time.Time       `json:"at"` // of the clock that control was given, UTC, to the microsecond
	Kind  string          `json:"kind"`
	Job   uint64          `json:"job,omitempty"` // the job that it concerns first, for look-ups
	Data  json.RawMessage `json:"data"`
}

// JobRow is the projection of one job: what lists and history show without
// reading the journal.
type JobRow struct {
	ID        uint64
	Name      string
	User      string
	State     string
	Submitted time.Time
	Started   time.Time // zero: not started
	Ended     time.Time // zero: not ended
	Exit      int       // as a shell reports it
	Detail    json.RawMessage
}

// Store keeps a journal. Implementations are safe for concurrent use.
type Store interface {
	// Lead makes the caller the leader and returns its epoch, larger than every
	// epoch before. From then on writes of earlier epochs are fault.Conflict.
	Lead(ctx context.Context, who string) (epoch uint64, err error)
	// Append writes the records in order, all or none, and returns the Seq of the
	// last one once they are durable. It sets Seq and Epoch; the caller's slice is
	// not changed. fault.Exhausted says that there is no room: nothing was written.
	Append(ctx context.Context, epoch uint64, recs []Record) (last uint64, err error)
	// Read calls f for every record with a Seq above after, in order.
	Read(ctx context.Context, after uint64, f func(Record) error) error
	// Project writes job rows that reflect the journal up to Seq upTo.
	Project(ctx context.Context, epoch, upTo uint64, rows []JobRow) error
	// Projected returns the Seq that the projection reflects.
	Projected(ctx context.Context) (uint64, error)
	// Jobs calls f for the projected jobs by number, largest first, below the
	// given number (0: from the newest), at most limit.
	Jobs(ctx context.Context, below uint64, limit int, f func(JobRow) error) error
	// PutBlob keeps bytes and returns their hash (Hash). Putting the same bytes
	// again is cheap.
	PutBlob(ctx context.Context, b []byte) (hash string, err error)
	// Blob returns the bytes of a hash; fault.NotFound if there are none.
	Blob(ctx context.Context, hash string) ([]byte, error)
	// Close releases the store. Nothing that was durable is lost.
	Close() error
}

// Hash is the name of a blob: SHA-256 in lower-case hex.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
