package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"math"
	"strconv"

	"github.com/coxswain-sched/coxswain/store"
)

// History first reads the numbers of the rows, which an index answers without the
// rows themselves, many at a time, and then the rows page by page.
const (
	firstNumbers = 2 << 10 // the reader may have enough with these
	numbers      = 64 << 10
)

// History implements store.Store. Where a page of the database is damaged, it goes on row by row.
func (s *Store) History(ctx context.Context, q store.Query, f func(store.JobRow) error) error {
	rest, done, own := q, 0, error(nil)
	err := s.queryHistory(ctx, q, func(r store.JobRow) error {
		done++
		rest.Below = r.ID
		own = f(r)
		return own
	})
	if own != nil || !isCorrupt(err) {
		return err
	}
	if q.Limit > 0 {
		rest.Limit -= done
	}
	return s.salvageJobs(ctx, &rest, f)
}

func (s *Store) queryHistory(ctx context.Context, q store.Query, f func(store.JobRow) error) error {
	query, bind := historyQuery(&q)
	below, left := int64(math.MaxInt64), q.Limit
	if q.Below != 0 && q.Below < math.MaxInt64 {
		below = int64(q.Below)
	}
	for batch := firstNumbers; ; batch = numbers {
		want := batch
		if q.Limit > 0 {
			want = min(want, left)
		}
		ids := make([]int64, 0, min(want, page))
		err := s.withReader(ctx, func(c *conn) error {
			return c.queryRows(func(row []driver.Value) error {
				ids = append(ids, row[0].(int64))
				return nil
			}, query, bind(below, want)...)
		})
		if err != nil {
			return err
		}
		if len(ids) > 0 && ids[len(ids)-1] >= below && below != math.MaxInt64 {
			return errDisorder
		}
		n, err := s.jobRows(ctx, &q, ids, f)
		if err != nil {
			return err
		}
		if left -= n; len(ids) < want || q.Limit > 0 && left <= 0 {
			return nil
		}
		below = ids[len(ids)-1]
	}
}

// jobRows calls f for the rows with the numbers that q still asks for, and says how
// many these are.
func (s *Store) jobRows(ctx context.Context, q *store.Query, ids []int64, f func(store.JobRow) error) (n int, err error) {
	rows, list := make([]store.JobRow, 0, min(len(ids), page)), []byte{}
	for len(ids) > 0 {
		now := ids[:min(len(ids), page)]
		ids, rows = ids[len(now):], rows[:0]
		list = append(list[:0], '[')
		for _, id := range now {
			list = append(strconv.AppendInt(list, id, 10), ',')
		}
		list[len(list)-1] = ']'
		rows, _, _, err = s.jobPage(ctx, rows,
			"SELECT "+jobColumns+", sum FROM job WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id DESC", string(list))
		if err != nil {
			return n, err
		}
		for i := range rows {
			if !q.Match(&rows[i]) {
				continue // changed in the meantime
			}
			n++
			if err := f(rows[i]); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// historyQuery is the SELECT of the numbers; bind makes its arguments. The index is
// named because the planner, without statistics, would walk through all rows to
// save a sort. Rows that are not final are in few indexes, so that it is cheap to
// project them: there are not that many.
func historyQuery(q *store.Query) (query string, bind func(below int64, limit int) []driver.Value) {
	where, args := historyWhere(q)
	part := func(index, and string) string {
		return "SELECT id FROM job " + index + " WHERE id < ?" + where + and + " ORDER BY id DESC LIMIT ?"
	}
	one := func(below int64, limit int) []driver.Value {
		return append(append([]driver.Value{below}, args...), int64(limit))
	}
	index, ofFinal := historyIndex(q)
	if !ofFinal || q.Final {
		return part(index, ""), one
	}
	query = "SELECT id FROM (" + part(index, " AND final = 1") + ") UNION ALL SELECT id FROM (" +
		part("INDEXED BY job_live", " AND final = 0") + ") ORDER BY id DESC LIMIT ?"
	return query, func(below int64, limit int) []driver.Value {
		args := one(below, limit)
		return append(append(args, args...), int64(limit))
	}
}

// historyWhere are the conditions of q, each with AND before it, and their
// arguments.
func historyWhere(q *store.Query) (where string, args []driver.Value) {
	add := func(cond string, value ...driver.Value) { where, args = where+" AND "+cond, append(args, value...) }
	for _, l := range []struct {
		column string
		list   []string
	}{
		{"user", q.Users}, {"account", q.Accounts}, {"part", q.Partitions}, {"qos", q.QOS}, {"state", q.States}, {"name", q.Names},
	} {
		if len(l.list) > 0 {
			add(amongValues(l.column, l.list))
		}
	}
	if q.Text != "" {
		text := store.LowerASCII(q.Text)
		add("(instr(lower(name), ?) > 0 OR instr(lower(user), ?) > 0 OR instr(lower(account), ?) > 0)", text, text, text)
	}
	if len(q.IDs) > 0 {
		add(amongValues("id", q.IDs))
	}
	if q.Array != 0 {
		add("array <> 0 AND array = ?", int64(q.Array))
	}
	if !q.From.IsZero() {
		add("ended >= ?", toMicros(q.From))
	}
	if !q.To.IsZero() {
		add("submitted < ?", toMicros(q.To))
	}
	if q.Final {
		add("final = 1")
	}
	return where, args
}

// historyIndex is the index that narrows most, and whether it has final rows only.
func historyIndex(q *store.Query) (hint string, ofFinal bool) {
	switch {
	case len(q.IDs) > 0:
		return "NOT INDEXED", false // by number
	case q.Array != 0:
		return "INDEXED BY job_array", false
	case len(q.Users) > 0:
		return "INDEXED BY job_user", true
	case len(q.Accounts) > 0:
		return "INDEXED BY job_account", true
	case len(q.States) > 0:
		return "INDEXED BY job_state", true
	case !q.From.IsZero() || !q.To.IsZero():
		return "INDEXED BY job_ended", true
	}
	return "NOT INDEXED", false
}

// amongValues is the condition that a column has one of the values. Many are one
// argument, so that there are few different statements.
func amongValues[T uint64 | string](column string, list []T) (string, driver.Value) {
	if len(list) > 1 {
		text, err := json.Marshal(list)
		if err != nil {
			panic(err) // numbers and strings always marshal
		}
		return column + " IN (SELECT value FROM json_each(?))", string(text)
	}
	switch v := any(list[0]).(type) {
	case uint64:
		return column + " = ?", int64(v)
	default:
		return column + " = ?", v
	}
}
