package store

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Memory is a Store that lives as long as the process. Its zero value is empty
// and ready.
type Memory struct {
	mu        sync.Mutex
	epoch     uint64
	purged    uint64   // records that left the journal
	records   []Record // records[i].Seq == purged+i+1
	audit     []Record // left the journal, kept for Records
	rows      map[uint64]JobRow
	docs      map[string][]byte
	projected uint64
	blobs     map[string]*memoryBlob
	fresh     []*memoryBlob // put since the last Append
	closed    bool
}

type memoryBlob struct {
	bytes []byte
	put   time.Time // the newest At of the Append that made it durable; zero: not yet
}

var _ Store = (*Memory)(nil)

// Lead implements Store.
func (m *Memory) Lead(ctx context.Context, _ string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkUsable(ctx); err != nil {
		return 0, err
	}
	m.epoch++
	return m.epoch, nil
}

// Append implements Store.
func (m *Memory) Append(ctx context.Context, epoch uint64, recs []Record) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkEpoch(ctx, epoch); err != nil {
		return 0, err
	}
	if len(recs) == 0 {
		return m.lastSeq(), nil
	}
	var newest time.Time
	for _, r := range recs {
		r.Seq, r.Epoch, r.Data = m.lastSeq()+1, epoch, bytes.Clone(r.Data)
		m.records = append(m.records, r)
		newest = laterTime(newest, r.At)
	}
	for _, b := range m.fresh {
		b.put = laterTime(b.put, newest)
	}
	m.fresh = nil
	return m.lastSeq(), nil
}

func (m *Memory) lastSeq() uint64 { return m.purged + uint64(len(m.records)) }

func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Read implements Store.
func (m *Memory) Read(ctx context.Context, after uint64, f func(Record) error) error {
	m.mu.Lock()
	err := m.checkUsable(ctx)
	if err == nil && after < m.purged {
		err = Purged(after, m.purged+1)
	}
	if err != nil {
		m.mu.Unlock()
		return err
	}
	recs := m.records[min(after-m.purged, uint64(len(m.records))):]
	m.mu.Unlock()
	return forEach(ctx, recs, f)
}

// Purged is the error of Read for records that are no longer kept.
func Purged(after, first uint64) error {
	return fault.New(fault.NotFound, "journal record %d has been purged, record %d is the first that is kept", after+1, first)
}

func forEach[T any](ctx context.Context, list []T, f func(T) error) error {
	for _, v := range list {
		if err := ctx.Err(); err != nil {
			return fault.New(fault.Unavailable, "store: %w", err)
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// First implements Store.
func (m *Memory) First(ctx context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.purged + 1, m.checkUsable(ctx)
}

// Records implements Store.
func (m *Memory) Records(ctx context.Context, q RecordQuery, f func(Record) error) error {
	m.mu.Lock()
	if err := m.checkUsable(ctx); err != nil {
		m.mu.Unlock()
		return err
	}
	var out []Record
	for _, r := range slices.Concat(m.audit, m.records) {
		if q.Match(&r) && (q.Limit == 0 || len(out) < q.Limit) {
			out = append(out, r)
		}
	}
	m.mu.Unlock()
	return forEach(ctx, out, f)
}

// Project implements Store.
func (m *Memory) Project(ctx context.Context, epoch, upTo uint64, rows []JobRow, docs map[string][]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkEpoch(ctx, epoch); err != nil {
		return err
	}
	if m.rows == nil {
		m.rows, m.docs = map[uint64]JobRow{}, map[string][]byte{}
	}
	for _, r := range rows {
		r.Detail = bytes.Clone(r.Detail)
		m.rows[r.ID] = r
	}
	for name, doc := range docs {
		if doc == nil {
			delete(m.docs, name)
			continue
		}
		m.docs[name] = bytes.Clone(doc)
	}
	m.projected = upTo
	return nil
}

// Projected implements Store.
func (m *Memory) Projected(ctx context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.projected, m.checkUsable(ctx)
}

// Doc implements Store.
func (m *Memory) Doc(ctx context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkUsable(ctx); err != nil {
		return nil, err
	}
	doc, ok := m.docs[name]
	if !ok {
		return nil, fault.New(fault.NotFound, "the projection has no document %q", name)
	}
	return bytes.Clone(doc), nil
}

// Job implements Store.
func (m *Memory) Job(ctx context.Context, id uint64) (JobRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkUsable(ctx); err != nil {
		return JobRow{}, err
	}
	r, ok := m.rows[id]
	if !ok {
		return JobRow{}, fault.New(fault.NotFound, "there is no job %d", id)
	}
	return r, nil
}

// Live implements Store.
func (m *Memory) Live(ctx context.Context, f func(JobRow) error) error {
	rows, err := m.matchingRows(ctx, func(r *JobRow) bool { return !r.Final })
	if err != nil {
		return err
	}
	slices.Reverse(rows)
	return forEach(ctx, rows, f)
}

// History implements Store.
func (m *Memory) History(ctx context.Context, q Query, f func(JobRow) error) error {
	rows, err := m.matchingRows(ctx, func(r *JobRow) bool { return (q.Below == 0 || r.ID < q.Below) && q.Match(r) })
	if err != nil {
		return err
	}
	if q.Limit > 0 {
		rows = rows[:min(q.Limit, len(rows))]
	}
	return forEach(ctx, rows, f)
}

// matchingRows returns the rows that f wants, largest number first.
func (m *Memory) matchingRows(ctx context.Context, f func(*JobRow) bool) ([]JobRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkUsable(ctx); err != nil {
		return nil, err
	}
	var rows []JobRow
	for _, r := range m.rows {
		if f(&r) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b JobRow) int { return cmp.Compare(b.ID, a.ID) })
	return rows, nil
}

// PutBlob implements Store.
func (m *Memory) PutBlob(ctx context.Context, b []byte) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkUsable(ctx); err != nil {
		return "", err
	}
	if m.blobs == nil {
		m.blobs = map[string]*memoryBlob{}
	}
	h := Hash(b)
	if m.blobs[h] == nil {
		m.blobs[h] = &memoryBlob{bytes: bytes.Clone(b)}
	}
	m.fresh = append(m.fresh, m.blobs[h])
	return h, nil
}

// Blob implements Store.
func (m *Memory) Blob(ctx context.Context, hash string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkUsable(ctx); err != nil {
		return nil, err
	}
	b, ok := m.blobs[hash]
	if !ok {
		return nil, fault.New(fault.NotFound, "no blob has the hash %s", hash)
	}
	return bytes.Clone(b.bytes), nil
}

// Purge implements Store.
func (m *Memory) Purge(ctx context.Context, epoch uint64, req PurgeRequest) (res PurgeResult, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkEpoch(ctx, epoch); err != nil {
		return res, err
	}
	limit := req.Limit
	if limit == 0 {
		limit = 1000
	}
	for res.Records < limit && len(m.records) > 1 && m.records[0].Seq <= m.projected && m.records[0].At.Before(req.RecordsBefore) {
		if m.records[0].By != (Actor{}) {
			m.audit = append(m.audit, m.records[0])
		}
		m.records = m.records[1:] // readers may have the old ones
		m.purged++
		res.Records++
	}
	m.audit = slices.DeleteFunc(m.audit, func(r Record) bool {
		gone := res.Audit < limit && r.At.Before(req.AuditBefore)
		if gone {
			res.Audit++
		}
		return gone
	})
	for _, id := range slices.Sorted(maps.Keys(m.rows)) {
		if r := m.rows[id]; res.Jobs < limit && r.Final && r.Ended.Before(req.JobsEndedBefore) {
			delete(m.rows, id)
			res.Jobs++
		}
	}
	for hash, b := range m.blobs {
		if res.Blobs == limit || b.put.IsZero() || !b.put.Before(req.BlobsBefore) ||
			slices.Contains(m.fresh, b) || req.Keep != nil && req.Keep(hash) {
			continue
		}
		delete(m.blobs, hash)
		res.Blobs++
		res.Bytes += int64(len(b.bytes))
	}
	res.More = max(res.Records, res.Audit, res.Jobs, res.Blobs) == limit
	return res, nil
}

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Reopen makes a closed Memory usable again, as a restarted process would find a
// durable store.
func (m *Memory) Reopen() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = false
}

func (m *Memory) checkUsable(ctx context.Context) error {
	if m.closed {
		return fault.New(fault.Unavailable, "the store is closed")
	}
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Unavailable, "store: %w", err)
	}
	return nil
}

func (m *Memory) checkEpoch(ctx context.Context, epoch uint64) error {
	if err := m.checkUsable(ctx); err != nil {
		return err
	}
	if epoch != m.epoch && !planted.Unfenced {
		return fault.New(fault.Conflict, "epoch %d no longer leads, epoch %d does", epoch, m.epoch)
	}
	return nil
}
