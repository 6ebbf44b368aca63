package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// damagesAtMost bounds how many damaged rows a store remembers.
const damagesAtMost = 1000

// damages is the list of damaged rows that were read, each once.
type damages struct {
	mu   sync.Mutex
	list []store.Damage
	seen map[store.Damage]struct{}
}

func (d *damages) noteDamage(one store.Damage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, has := d.seen[one]; has || len(d.list) == damagesAtMost {
		return
	}
	if d.seen == nil {
		d.seen = map[store.Damage]struct{}{}
	}
	d.seen[one] = struct{}{}
	d.list = append(d.list, one)
}

// Damages implements store.Checker. It lists a thousand at most.
func (s *Store) Damages() []store.Damage {
	s.damages.mu.Lock()
	defer s.damages.mu.Unlock()
	return slices.Clone(s.damages.list)
}

// errDisorder is the error for rows that are not in the order of their keys.
var errDisorder = fault.New(fault.Internal, "the journal is %w: rows are not in order", store.ErrDamaged)

// isBehind reports whether a key comes after another key of the same table.
func isBehind(key, other driver.Value) bool {
	switch key := key.(type) {
	case int64:
		o, ok := other.(int64)
		return ok && key > o
	case string:
		o, ok := other.(string)
		return ok && key > o
	case []byte:
		o, ok := other.([]byte)
		return ok && bytes.Compare(key, o) > 0
	}
	return false
}

// isCorrupt reports whether SQLite could not make sense of a page.
func isCorrupt(err error) bool {
	if errors.Is(err, errDisorder) {
		return true
	}
	var se *sqlite.Error
	return errors.As(err, &se) && (se.Code()&0xff == sqlite3.SQLITE_CORRUPT || se.Code()&0xff == sqlite3.SQLITE_NOTADB)
}

// salvageJobs calls f for the rows that q asks for, largest number first. It is for a database with
// a damaged page, where a plain query fails: it collects the numbers of jobs from the table and its
// indexes, and reads each row by itself.
func (s *Store) salvageJobs(ctx context.Context, q *store.Query, f func(store.JobRow) error) error {
	ids := map[int64]struct{}{}
	for _, query := range []string{
		"SELECT id FROM job NOT INDEXED ORDER BY id", "SELECT id FROM job NOT INDEXED ORDER BY id DESC",
		"SELECT id FROM job INDEXED BY job_live WHERE final = 0 ORDER BY id", "SELECT id FROM job INDEXED BY job_user WHERE final = 1",
		"SELECT id FROM job INDEXED BY job_account WHERE final = 1", "SELECT id FROM job INDEXED BY job_state WHERE final = 1",
	} {
		err := s.withReader(ctx, func(c *conn) error {
			return c.queryRows(func(row []driver.Value) error {
				if id, ok := row[0].(int64); ok && id > 0 {
					ids[id] = struct{}{}
				}
				return ctx.Err()
			}, query)
		})
		if isCorrupt(err) {
			s.damages.noteDamage(store.Damage{Why: fmt.Sprintf("pages of the table job or of its indexes are damaged: %v", err)})
		} else if err != nil {
			return err
		}
	}
	left := q.Limit
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(ids))) {
		if q.Below != 0 && uint64(id) >= q.Below {
			continue
		}
		r, err := s.Job(ctx, uint64(id))
		switch {
		case errors.Is(err, store.ErrDamaged):
			continue
		case fault.KindOf(err) == fault.NotFound:
			s.damages.noteDamage(store.Damage{Table: jobTable.name, Row: fmt.Sprint(id), Job: uint64(id), Why: "an index names it, and it is gone"})
			continue
		case err != nil:
			return err
		}
		if !q.Match(&r) {
			continue
		}
		if err := f(r); err != nil {
			return err
		}
		if left--; left == 0 {
			return nil
		}
	}
	return nil
}

// jobPage reads rows of jobs and leaves out the damaged ones. last is the number of the last row;
// last and n include damaged rows.
func (s *Store) jobPage(ctx context.Context, rows []store.JobRow, query string, args ...driver.Value) (out []store.JobRow, n int, last int64, err error) {
	err = s.withReader(ctx, func(c *conn) error {
		return c.queryRows(func(row []driver.Value) error {
			n++
			if id, ok := row[0].(int64); ok {
				last = id
			}
			if !jobTable.isIntact(row) {
				s.damages.noteDamage(jobTable.damageOf(row))
				return nil
			}
			rows = append(rows, scanJob(row))
			return nil
		}, query, args...)
	})
	return rows, n, last, err
}
