package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// page is how many rows are read before they are handed out.
const page = 512

const recordColumns = "seq, leader_epoch, at, kind, job, by_name, by_uid, by_from, data"

// Lead implements store.Store.
func (s *Store) Lead(ctx context.Context, who string) (epoch uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.withTransaction(ctx, func(c *conn) error {
		now, _, err := readLeader(c)
		if err != nil {
			return err
		}
		epoch = now + 1
		s.acked = acked{epoch: epoch, durable: true}
		_, err = c.execRows("INSERT OR REPLACE INTO leader VALUES (?,?,?,?)", leaderTable.withSum(int64(1), int64(epoch), who)...)
		return err
	})
	return epoch, err
}

// Append implements store.Store. The pack with the fresh blobs becomes durable
// while the rows are inserted, and before they are committed.
func (s *Store) Append(ctx context.Context, epoch uint64, recs []store.Record) (last uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err = s.checkUsable(ctx); err != nil {
		return 0, err
	}
	if len(recs) == 0 { // fresh blobs wait for a record, which says how old they are
		err := s.withWriter(ctx, epoch, func(c *conn) error {
			last, err = s.newestSeq(c, epoch)
			return err
		})
		return last, err
	}
	at := int64(0)
	for i := range recs {
		at = max(at, toMicros(recs[i].At))
	}
	b, err := s.blobs.beginBatch(at)
	if err != nil {
		return 0, classifyError(err)
	}
	err = s.withWriter(ctx, epoch, func(c *conn) error {
		if last, err = s.newestSeq(c, epoch); err != nil {
			return err
		}
		if err := insertRecords(c, epoch, last, recs); err != nil {
			return err
		}
		s.acked = acked{seq: last + uint64(len(recs)), durable: true}
		if err := b.commitRows(c); err != nil {
			return err
		}
		return b.waitSynced()
	})
	s.blobs.finishBatch(b, err == nil)
	if err != nil {
		return 0, err
	}
	s.led, s.last = epoch, last+uint64(len(recs))
	size := (len(b.blobs) + 3) * pageSize
	for i := range recs {
		size += len(recs[i].Data) + 300
	}
	s.log.noteCommitted(size)
	return s.last, nil
}

func insertRecords(c *conn, epoch, last uint64, recs []store.Record) error {
	for i := range recs {
		r := &recs[i]
		_, err := c.execRows("INSERT INTO journal VALUES (?,?,?,?,?,?,?,?,?,?)", journalTable.withSum(int64(last)+int64(i)+1, int64(epoch), toMicros(r.At),
			r.Kind, int64(r.Job), r.By.Name, int64(r.By.UID), r.By.From, withoutNil(r.Data))...)
		if err != nil {
			return err
		}
	}
	return nil
}

// newestSeq is the seq of the newest record. As long as one epoch leads, nobody else
// appends.
func (s *Store) newestSeq(c *conn, epoch uint64) (uint64, error) {
	if s.led == epoch {
		return s.last, nil
	}
	n, _, err := c.queryNumber("SELECT MAX(seq) FROM journal")
	return uint64(n), err
}

// withoutNil is b without nil, which SQLite would take for NULL.
func withoutNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// scanRecord makes a record of a row that is intact.
func scanRecord(row []driver.Value) store.Record {
	r := store.Record{
		Seq: uint64(row[0].(int64)), Epoch: uint64(row[1].(int64)), At: fromMicros(row[2].(int64)), Kind: row[3].(string),
		Job: uint64(row[4].(int64)), By: store.Actor{Name: row[5].(string), UID: uint32(row[6].(int64)), From: row[7].(string)},
	}
	r.Data, _ = row[8].([]byte)
	return r
}

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, after uint64, f func(store.Record) error) error {
	first, err := s.First(ctx)
	if err != nil {
		return err
	}
	if after+1 < first {
		return store.Purged(after, first)
	}
	recs := make([]store.Record, 0, page)
	for {
		recs = recs[:0]
		var bad error
		err := s.withReader(ctx, func(c *conn) error {
			return c.queryRows(func(row []driver.Value) error {
				if bad == nil && !journalTable.isIntact(row) {
					s.damages.noteDamage(journalTable.damageOf(row))
					bad = damagedRecord(after + uint64(len(recs)) + 1)
				}
				if bad == nil {
					recs = append(recs, scanRecord(row))
				}
				return nil
			}, journalTable.selectRows()+" WHERE seq > ? ORDER BY seq LIMIT ?", int64(after), int64(page))
		})
		if err != nil {
			return err
		}
		for _, r := range recs {
			if r.Seq != after+1 {
				return s.missingRecord(ctx, after)
			}
			if after = r.Seq; f != nil {
				if err := f(r); err != nil {
					return err
				}
			}
		}
		if bad != nil {
			return bad
		}
		if len(recs) < page {
			return nil
		}
	}
}

// damagedRecord is the error for a record of the journal that does not read as it was written.
func damagedRecord(seq uint64) error {
	return fault.New(fault.Internal, "record %d of the journal is %w", seq, store.ErrDamaged).
		Advise("keep the directory, and put a backup in its place; docs/explanation/state.md says how")
}

// missingRecord is the error for a record that is not there, though one behind it is: it has
// been purged in the meantime, or it is lost.
func (s *Store) missingRecord(ctx context.Context, after uint64) error {
	first, err := s.First(ctx)
	switch {
	case err != nil:
		return err
	case first > after+1:
		return store.Purged(after, first)
	}
	s.damages.noteDamage(store.Damage{Table: journalTable.name, Row: fmt.Sprint(after + 1), Why: "it is gone"})
	return damagedRecord(after + 1)
}

// First implements store.Store.
func (s *Store) First(ctx context.Context) (first uint64, err error) {
	err = s.withReader(ctx, func(c *conn) error {
		n, has, err := c.queryNumber("SELECT MIN(seq) FROM journal")
		if first = uint64(n); !has {
			first = 1
		}
		return err
	})
	return first, err
}

// Records implements store.Store.
func (s *Store) Records(ctx context.Context, q store.RecordQuery, f func(store.Record) error) error {
	where, args := recordWhere(&q)
	query := "SELECT * FROM (" + auditTable.selectRows() + " WHERE " + where + " ORDER BY seq LIMIT ?)" +
		" UNION ALL SELECT * FROM (" + journalTable.selectRows() + " WHERE " + where + " ORDER BY seq LIMIT ?) ORDER BY 1 LIMIT ?"
	left := q.Limit
	for {
		want := page
		if q.Limit > 0 {
			want = min(page, left)
		}
		var recs []store.Record
		n, last := 0, driver.Value(nil)
		err := s.withReader(ctx, func(c *conn) error {
			bound := append(append([]driver.Value{int64(q.After)}, args...), int64(want))
			bound = append(append(bound, bound...), int64(want))
			return c.queryRows(func(row []driver.Value) error {
				n++
				last = row[0]
				if !journalTable.isIntact(row) {
					s.damages.noteDamage(journalTable.damageOf(row))
					return nil
				}
				recs = append(recs, scanRecord(row))
				return nil
			}, query, bound...)
		})
		if err != nil {
			return err
		}
		for _, r := range recs {
			if err := f(r); err != nil {
				return err
			}
		}
		if left -= len(recs); n < want || q.Limit > 0 && left <= 0 {
			return nil
		}
		if !isBehind(last, int64(q.After)) {
			return errDisorder
		}
		q.After = uint64(last.(int64))
	}
}

// recordWhere is the condition of q with its arguments; the first mark is for the
// seq to begin after.
func recordWhere(q *store.RecordQuery) (string, []driver.Value) {
	where, args := []string{"seq > ?"}, []driver.Value{}
	if q.Job != 0 {
		where, args = append(where, "job <> 0 AND job = ?"), append(args, int64(q.Job))
	}
	if len(q.Kinds) > 0 {
		cond, list := amongValues("kind", q.Kinds)
		where, args = append(where, cond), append(args, list)
	}
	if q.OnlyActors {
		where = append(where, "(by_name <> '' OR by_uid <> 0 OR by_from <> '')")
	}
	if !q.From.IsZero() {
		where, args = append(where, "at >= ?"), append(args, toMicros(q.From))
	}
	if !q.To.IsZero() {
		where, args = append(where, "at < ?"), append(args, toMicros(q.To))
	}
	return strings.Join(where, " AND "), args
}
