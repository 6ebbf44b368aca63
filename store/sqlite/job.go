package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

const jobColumns = "id, array, task, name, user, account, part, qos, state, nodes, cpus, gpus, priority, submitted, started, ended, exit, final, detail"

const jobByID = "SELECT " + jobColumns + ", sum FROM job WHERE id = ?"

// upsert writes a row over the one that stood there.
const upsert = "INSERT OR REPLACE INTO job VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"

// Project implements store.Store. It does not wait for the disk: the log is written
// in order, and the next Append makes all of it durable.
func (s *Store) Project(ctx context.Context, epoch, upTo uint64, rows []store.JobRow, docs map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkUsable(ctx); err != nil {
		return err
	}
	size := 2 * len(rows) * pageSize
	for _, doc := range docs {
		size += len(doc)
	}
	s.log.noteCommitted(size)
	return s.withoutSync(func() error {
		return s.withWriter(ctx, epoch, func(c *conn) error {
			for i := range rows {
				if _, err := c.execRows(upsert, jobTable.withSum(jobValues(&rows[i])...)...); err != nil {
					return err
				}
			}
			if err := putDocs(c, docs); err != nil {
				return err
			}
			_, err := c.execRows("INSERT OR REPLACE INTO projection VALUES (?,?,?)", projectionTable.withSum("job", int64(upTo))...)
			return err
		})
	})
}

// withoutSync runs f without a sync at its commits.
func (s *Store) withoutSync(f func() error) error {
	if err := s.write.runScript("PRAGMA synchronous = NORMAL"); err != nil {
		return classifyError(err)
	}
	err := f()
	if back := s.write.runScript("PRAGMA synchronous = FULL"); back != nil {
		s.broken = classifyError(back) // an Append would not be durable
	}
	return err
}

func putDocs(c *conn, docs map[string][]byte) (err error) {
	for name, doc := range docs {
		if doc == nil {
			_, err = c.execRows("DELETE FROM doc WHERE name = ?", name)
		} else {
			_, err = c.execRows("INSERT OR REPLACE INTO doc VALUES (?,?,?)", docTable.withSum(name, withoutNil(doc))...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func jobValues(r *store.JobRow) []driver.Value {
	final := int64(0)
	if r.Final {
		final = 1
	}
	return []driver.Value{
		int64(r.ID), int64(r.Array), r.Task, r.Name, r.User, r.Account, r.Partition, r.QOS, r.State, r.Nodes,
		r.CPUs, r.GPUs, r.Priority, toMicros(r.Submitted), toMicros(r.Started), endMicros(r.Ended), int64(r.Exit), final, withoutNil(r.Detail),
	}
}

// scanJob makes a job of a row that is intact.
func scanJob(row []driver.Value) store.JobRow {
	r := store.JobRow{
		ID: uint64(row[0].(int64)), Array: uint64(row[1].(int64)), Task: row[2].(int64),
		Name: row[3].(string), User: row[4].(string), Account: row[5].(string), Partition: row[6].(string), QOS: row[7].(string),
		State: row[8].(string), Nodes: row[9].(string), CPUs: row[10].(int64), GPUs: row[11].(int64), Priority: row[12].(int64),
		Submitted: fromMicros(row[13].(int64)), Started: fromMicros(row[14].(int64)), Ended: fromEnding(row[15].(int64)),
		Exit: int(row[16].(int64)), Final: row[17].(int64) != 0,
	}
	if d, _ := row[18].([]byte); len(d) > 0 {
		r.Detail = json.RawMessage(d)
	}
	return r
}

// never is the end of a job that has not ended: so "ended at or after" needs no
// second case.
const never = math.MaxInt64

func endMicros(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return t.UnixMicro()
}

func fromEnding(us int64) time.Time {
	if us == never {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// Projected implements store.Store.
func (s *Store) Projected(ctx context.Context) (seq uint64, err error) {
	err = s.withReader(ctx, func(c *conn) error {
		seq, err = readProjected(c)
		return err
	})
	return seq, err
}

func readProjected(c *conn) (seq uint64, err error) {
	found := false
	err = c.queryRows(func(row []driver.Value) error {
		if found = projectionTable.isIntact(row); found {
			seq = uint64(row[1].(int64))
		}
		return nil
	}, projectionTable.selectRows()+" WHERE name = 'job'")
	if err == nil && !found {
		err = damagedTable(projectionTable)
	}
	return seq, err
}

// Doc implements store.Store.
func (s *Store) Doc(ctx context.Context, name string) (doc []byte, err error) {
	found := false
	err = s.withReader(ctx, func(c *conn) error {
		return c.queryRows(func(row []driver.Value) error {
			if found = docTable.isIntact(row); !found {
				s.damages.noteDamage(docTable.damageOf(row))
				return fault.New(fault.Internal, "the document %q of the projection is %w", name, store.ErrDamaged)
			}
			doc, _ = row[1].([]byte)
			doc = withoutNil(doc)
			return nil
		}, docTable.selectRows()+" WHERE name = ?", name)
	})
	if err == nil && !found {
		err = fault.New(fault.NotFound, "the projection has no document %q", name)
	}
	return doc, err
}

// Job implements store.Store.
func (s *Store) Job(ctx context.Context, id uint64) (r store.JobRow, err error) {
	found := false
	err = s.withReader(ctx, func(c *conn) error {
		err := c.queryRows(func(row []driver.Value) error {
			if found = jobTable.isIntact(row); !found {
				s.damages.noteDamage(jobTable.damageOf(row))
				return store.DamagedJob(id)
			}
			r = scanJob(row)
			return nil
		}, jobByID, int64(id))
		if isCorrupt(err) {
			s.damages.noteDamage(store.Damage{Table: jobTable.name, Row: fmt.Sprint(id), Job: id, Why: "the page that holds it is damaged"})
			err = store.DamagedJob(id)
		}
		return err
	})
	if err == nil && !found {
		err = fault.New(fault.NotFound, "there is no job %d", id)
	}
	return r, err
}

// Live implements store.Store.
func (s *Store) Live(ctx context.Context, f func(store.JobRow) error) error {
	above, rows := int64(-1), make([]store.JobRow, 0, page)
	for {
		got, n, last, err := s.jobPage(ctx, rows[:0],
			"SELECT "+jobColumns+", sum FROM job INDEXED BY job_live WHERE final = 0 AND id > ? ORDER BY id LIMIT ?", above, int64(page))
		if isCorrupt(err) {
			return s.salvageLive(ctx, above, f)
		}
		if err != nil {
			return err
		}
		rows = got
		for i := range rows {
			if rows[i].Final { // the index is damaged
				continue
			}
			if err := f(rows[i]); err != nil {
				return err
			}
		}
		if n < page {
			return nil
		}
		if last <= above {
			return s.salvageLive(ctx, above, f)
		}
		above = last
	}
}

// salvageLive calls f for the live rows with numbers above one, ascending.
func (s *Store) salvageLive(ctx context.Context, above int64, f func(store.JobRow) error) error {
	var rows []store.JobRow
	if err := s.salvageJobs(ctx, &store.Query{}, func(r store.JobRow) error {
		if !r.Final && int64(r.ID) > above {
			rows = append(rows, r)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, r := range slices.Backward(rows) {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}
