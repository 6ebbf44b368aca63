package store

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// JobRow is the projection of one job: what lists and history show without
// reading the journal. Times are UTC, to the microsecond.
type JobRow struct {
	ID        uint64
	Array     uint64 // the array's job number; 0: not a task of an array
	Task      int64  // the index in the array; -1: none
	Name      string
	User      string
	Account   string
	Partition string
	QOS       string
	State     string
	Nodes     string // a host list
	CPUs      int64
	GPUs      int64
	Priority  int64
	Submitted time.Time
	Started   time.Time // zero: not started
	Ended     time.Time // zero: not ended
	Exit      int       // as a shell reports it
	Final     bool      // nothing will change any more
	Detail    json.RawMessage
}

// Query selects rows. Every field narrows; the zero value of a field asks for
// nothing. A list matches a row that has one of its values.
type Query struct {
	Users, Accounts, Partitions, QOS, States, Names []string

	// Text is a part of the name, the user or the account of a job, where letters of ASCII in upper and
	// lower case are the same; empty: any. No index has it: the rows that the other fields leave are looked at.
	Text string

	IDs   []uint64
	Array uint64 // the tasks of this array

	// From and To select jobs whose life, from submission to end, overlaps the
	// time from From (inclusive) to To (exclusive).
	From, To time.Time

	Final bool   // only final rows
	Below uint64 // only numbers below this one: the last number of the page before
	Limit int    // at most so many rows; 0: all
}

// Match says whether q asks for the row, Below and Limit aside.
func (q *Query) Match(r *JobRow) bool {
	return isListed(q.Users, r.User) && isListed(q.Accounts, r.Account) && isListed(q.Partitions, r.Partition) &&
		isListed(q.QOS, r.QOS) && isListed(q.States, r.State) && isListed(q.Names, r.Name) && isListed(q.IDs, r.ID) &&
		q.MatchText(r.Name, r.User, r.Account) &&
		(q.Array == 0 || q.Array == r.Array) && (!q.Final || r.Final) &&
		(q.From.IsZero() || r.Ended.IsZero() || !r.Ended.Before(q.From)) &&
		(q.To.IsZero() || r.Submitted.Before(q.To))
}

func isListed[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// RecordQuery selects records for the audit view.
type RecordQuery struct {
	After      uint64 // only records with a larger Seq
	Kinds      []string
	Job        uint64
	OnlyActors bool      // only records that somebody asked for
	From, To   time.Time // only records with an At from From (inclusive) to To (exclusive)
	Limit      int       // at most so many; 0: all
}

// Match says whether q asks for the record, Limit aside.
func (q *RecordQuery) Match(r *Record) bool {
	return r.Seq > q.After && isListed(q.Kinds, r.Kind) && (q.Job == 0 || q.Job == r.Job) &&
		(!q.OnlyActors || r.By != Actor{}) &&
		(q.From.IsZero() || !r.At.Before(q.From)) && (q.To.IsZero() || r.At.Before(q.To))
}

// PurgeRequest says what may go. A zero time keeps everything of its sort.
type PurgeRequest struct {
	// RecordsBefore removes the beginning of the journal up to the first record
	// that is not older, is not projected yet, or is the newest. Records with an
	// actor stay to be found by Records.
	RecordsBefore time.Time
	// AuditBefore removes records with an actor that are older, once they have
	// left the journal.
	AuditBefore time.Time
	// JobsEndedBefore removes final rows of jobs that ended earlier.
	JobsEndedBefore time.Time
	// BlobsBefore removes blobs that were last put earlier, except those that Keep
	// names. A store may keep a blob some days longer than asked.
	BlobsBefore time.Time
	// Keep says whether a blob is still needed, because a job that is not final
	// names it. It must not call the store. Nil keeps none.
	Keep func(hash string) bool
	// Limit bounds the work of the call, which writers wait for: about so many
	// records, rows and blobs of each sort; 0: some hundred.
	Limit int
}

// PurgeResult counts what a call of Purge removed.
type PurgeResult struct {
	Records int // of the journal, those that became audit only among them
	Audit   int
	Jobs    int
	Blobs   int
	Bytes   int64 // of blobs, given back to the file system
	More    bool  // the limit ended the call: call again
}

// MatchText says whether one of the texts has Text in it.
func (q *Query) MatchText(texts ...string) bool {
	part := LowerASCII(q.Text)
	return part == "" || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(LowerASCII(s), part) })
}

// LowerASCII is a text with the letters of ASCII in lower case, by which Query.Text is compared.
func LowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
