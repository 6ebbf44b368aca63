package store

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/coxswain-sched/coxswain/fault"
)

// Memory is a Store that lives as long as the process. Its zero value is empty
// and ready.
type Memory struct {
	mu        sync.Mutex
	epoch     uint64
	records   []Record
	rows      map[uint64]JobRow
	projected uint64
	blobs     map[string][]byte
	closed    bool
}

var _ Store = (*Memory)(nil)

// Lead implements Store.
func (m *Memory) Lead(ctx context.Context, _ string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return 0, err
	}
	m.epoch++
	return m.epoch, nil
}

// Append implements Store.
func (m *Memory) Append(ctx context.Context, epoch uint64, recs []Record) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.leads(ctx, epoch); err != nil {
		return 0, err
	}
	for _, r := range recs {
		r.Seq, r.Epoch, r.Data = uint64(len(m.records)+1), epoch, bytes.Clone(r.Data)
		m.records = append(m.records, r)
	}
	return uint64(len(m.records)), nil
}

// Read implements Store.
func (m *Memory) Read(ctx context.Context, after uint64, f func(Record) error) error {
	m.mu.Lock()
	if err := m.usable(ctx); err != nil {
		m.mu.Unlock()
		return err
	}
	recs := m.records[min(after, uint64(len(m.records))):]
	m.mu.Unlock()
	for _, r := range recs {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// Project implements Store.
func (m *Memory) Project(ctx context.Context, epoch, upTo uint64, rows []JobRow) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.leads(ctx, epoch); err != nil {
		return err
	}
	if m.rows == nil {
		m.rows = map[uint64]JobRow{}
	}
	for _, r := range rows {
		m.rows[r.ID] = r
	}
	m.projected = upTo
	return nil
}

// Projected implements Store.
func (m *Memory) Projected(ctx context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.projected, m.usable(ctx)
}

// Jobs implements Store.
func (m *Memory) Jobs(ctx context.Context, below uint64, limit int, f func(JobRow) error) error {
	m.mu.Lock()
	if err := m.usable(ctx); err != nil {
		m.mu.Unlock()
		return err
	}
	var rows []JobRow
	for _, r := range m.rows {
		if below == 0 || r.ID < below {
			rows = append(rows, r)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(rows, func(a, b JobRow) int { return cmp.Compare(b.ID, a.ID) })
	for _, r := range rows[:min(limit, len(rows))] {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// PutBlob implements Store.
func (m *Memory) PutBlob(ctx context.Context, b []byte) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return "", err
	}
	if m.blobs == nil {
		m.blobs = map[string][]byte{}
	}
	h := Hash(b)
	m.blobs[h] = bytes.Clone(b)
	return h, nil
}

// Blob implements Store.
func (m *Memory) Blob(ctx context.Context, hash string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	b, ok := m.blobs[hash]
	if !ok {
		return nil, fault.New(fault.NotFound, "no blob has the hash %s", hash)
	}
	return bytes.Clone(b), nil
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

func (m *Memory) usable(ctx context.Context) error {
	if m.closed {
		return fault.New(fault.Unavailable, "the store is closed")
	}
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Unavailable, "store: %w", err)
	}
	return nil
}

func (m *Memory) leads(ctx context.Context, epoch uint64) error {
	if err := m.usable(ctx); err != nil {
		return err
	}
	if epoch != m.epoch {
		return fault.New(fault.Conflict, "epoch %d no longer leads, epoch %d does", epoch, m.epoch)
	}
	return nil
}
