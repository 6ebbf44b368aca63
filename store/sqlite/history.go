package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/store"
)

// History first reads the numbers of the rows, which an index answers without the
// rows themselves, many at a time, and then the rows page by page.
const numbers = 1 << 16

// History implements store.Store.
func (s *Store) History(ctx context.Context, q store.Query, f func(store.JobRow) error) error {
	query, args := historyQuery(&q)
	below, left := int64(math.MaxInt64), q.Limit
	if q.Below != 0 && q.Below < math.MaxInt64 {
		below = int64(q.Below)
	}
	for {
		want := numbers
		if q.Limit > 0 {
			want = min(want, left)
		}
		ids := make([]int64, 0, min(want, page))
		err := s.reading(ctx, func(c *conn) error {
			return c.query(func(row []driver.Value) error {
				ids = append(ids, row[0].(int64))
				return nil
			}, query, append(append([]driver.Value{below}, args...), int64(want))...)
		})
		if err != nil {
			return err
		}
		n, err := s.rows(ctx, &q, ids, f)
		if err != nil {
			return err
		}
		if left -= n; len(ids) < want || q.Limit > 0 && left <= 0 {
			return nil
		}
		below = ids[len(ids)-1]
	}
}

// rows calls f for the rows with the numbers that q still asks for, and says how
// many these are.
func (s *Store) rows(ctx context.Context, q *store.Query, ids []int64, f func(store.JobRow) error) (n int, err error) {
	rows, list := make([]store.JobRow, 0, min(len(ids), page)), []byte{}
	for len(ids) > 0 {
		now := ids[:min(len(ids), page)]
		ids, rows = ids[len(now):], rows[:0]
		list = append(list[:0], '[')
		for _, id := range now {
			list = append(strconv.AppendInt(list, id, 10), ',')
		}
		list[len(list)-1] = ']'
		err := s.reading(ctx, func(c *conn) error {
			return c.query(func(row []driver.Value) error {
				rows = append(rows, scanJob(row))
				return nil
			}, "SELECT "+jobColumns+" FROM job WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id DESC", string(list))
		})
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

// historyQuery is the SELECT of the numbers with its arguments; the first mark is
// for the number to stay below, the last for the limit. The index is named because
// the planner, without statistics, would walk through all rows to save a sort.
func historyQuery(q *store.Query) (string, []driver.Value) {
	where, args := []string{"id < ?"}, []driver.Value{}
	add := func(cond string, values ...driver.Value) { where, args = append(where, cond), append(args, values...) }
	for _, l := range []struct {
		column string
		list   []string
	}{
		{"user", q.Users}, {"account", q.Accounts}, {"part", q.Partitions}, {"qos", q.QOS}, {"state", q.States}, {"name", q.Names},
	} {
		if len(l.list) > 0 {
			add(among(l.column, l.list))
		}
	}
	if len(q.IDs) > 0 {
		add(among("id", q.IDs))
	}
	if q.Array != 0 {
		add("array <> 0 AND array = ?", int64(q.Array))
	}
	if q.Final {
		add("final = 1")
	}
	if !q.From.IsZero() {
		add("ended >= ?", micros(q.From))
	}
	if !q.To.IsZero() {
		add("submitted < ?", micros(q.To))
	}
	return "SELECT id FROM job" + historyIndex(q) + " WHERE " + strings.Join(where, " AND ") + " ORDER BY id DESC LIMIT ?", args
}

func historyIndex(q *store.Query) string {
	switch {
	case len(q.IDs) > 0:
		return " NOT INDEXED" // by number
	case q.Array != 0:
		return " INDEXED BY job_array"
	case len(q.Users) > 0:
		return " INDEXED BY job_user"
	case len(q.Accounts) > 0:
		return " INDEXED BY job_account"
	case len(q.States) > 0 && q.Final:
		return " INDEXED BY job_state"
	case !q.From.IsZero() || !q.To.IsZero():
		return " INDEXED BY job_ended"
	}
	return " NOT INDEXED"
}

// among is the condition that a column has one of the values. Many are one
// argument, so that there are few different statements.
func among[T uint64 | string](column string, list []T) (string, driver.Value) {
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
