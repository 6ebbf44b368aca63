package jobs

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// sortKeys are what a list of jobs can be sorted by: a number or a text of each job.
var sortKeys = map[string]func(*state.View) (int64, string){
	"id":         func(*state.View) (int64, string) { return 0, "" },
	"name":       func(v *state.View) (int64, string) { return 0, v.Job.Spec.Name },
	"user":       func(v *state.View) (int64, string) { return 0, v.Job.Spec.Owner.User },
	"account":    func(v *state.View) (int64, string) { return 0, v.Job.Spec.Account },
	"state":      func(v *state.View) (int64, string) { return 0, v.Job.State.String() },
	"reason":     func(v *state.View) (int64, string) { return 0, string(v.Why.Code) },
	"priority":   func(v *state.View) (int64, string) { return v.Priority, "" },
	"submitted":  func(v *state.View) (int64, string) { return unixOf(v.Job.Submitted), "" },
	"started":    func(v *state.View) (int64, string) { return unixOf(v.Job.Started), "" },
	"ended":      func(v *state.View) (int64, string) { return unixOf(v.Job.Ended), "" },
	"nodes":      func(v *state.View) (int64, string) { return int64(v.Demand().Nodes), "" },
	"gpus":       func(v *state.View) (int64, string) { return int64(v.Demand().GPUs), "" },
	"time_limit": func(v *state.View) (int64, string) { return wholeSeconds(v.Job.Spec.TimeLimit), "" },
}

// unixOf is an instant in seconds; 0: none.
func unixOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// sortRow is a row of a sorted list: a job, or the pending tasks of an array together.
type sortRow struct {
	number int64
	text   string
	id     job.ID
	tasks  *group // nil: one job
}

// order is the order of a sorted list.
type order struct {
	word string // as it was asked for
	key  func(*state.View) (int64, string)
	down bool
}

func readOrder(word string) (order, error) {
	name, down := strings.CutPrefix(word, "-")
	o := order{word: word, key: sortKeys[name], down: down}
	if o.key == nil {
		return o, transport.RefuseSort("jobs", name, slices.Collect(maps.Keys(sortKeys)))
	}
	return o, nil
}

// compare orders rows; of equal ones the smaller number comes first, or the larger one where the
// largest come first.
func (o *order) compare(a, b sortRow) int {
	c := cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text), cmp.Compare(a.id, b.id))
	if o.down {
		return -c
	}
	return c
}

// sortCursor is the last row of a page, and the order that it is of.
type sortCursor struct {
	Sort   string `json:"s"`
	Number int64  `json:"n,omitempty"`
	Text   string `json:"t,omitempty"`
	ID     job.ID `json:"i"`
}

func (o *order) cursorAfter(r *sortRow) string {
	b, err := json.Marshal(sortCursor{o.word, r.number, r.text, r.id})
	if err != nil {
		panic(err) // numbers and texts
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func (o *order) readCursor(text string) (sortRow, error) {
	var c sortCursor
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.Sort != o.word {
		return sortRow{}, transport.RefuseCursor(text, o.word)
	}
	return sortRow{number: c.Number, text: c.Text, id: c.ID}, nil
}

// listSorted answers with a page of a sorted list. The whole list is read and sorted for each page:
// nothing is kept between two of them.
func (s *Service) listSorted(c *call, sel *selection, in *listInput) error {
	o, err := readOrder(in.Sort)
	if err != nil {
		return err
	}
	rows, missing := c.sortedRows(sel, &o, in.Collapse && len(in.Columns) > 0)
	if len(missing) > 0 && len(rows) == 0 {
		return unknownJob(missing[0].String())
	}
	c.SetTotal(len(rows))
	from := min(in.Offset, len(rows))
	if in.Cursor != "" {
		last, err := o.readCursor(in.Cursor)
		if err != nil {
			return err
		}
		from, _ = slices.BinarySearchFunc(rows, last, func(a, b sortRow) int { return cmp.Or(o.compare(a, b), -1) })
	}
	limit := min(cmp.Or(in.Limit, pageSize), mostJobs)
	end := min(from+limit, len(rows))
	next := ""
	if end < len(rows) {
		next = o.cursorAfter(&rows[end-1])
	}
	if len(in.Columns) > 0 {
		return s.sortedText(c, in, rows[from:end], next)
	}
	return s.sortedJSON(c, rows[from:end], len(rows), next)
}

// sortedRows are all rows of a list, in order.
func (c *call) sortedRows(sel *selection, o *order, collapse bool) (rows []sortRow, missing []slurmfmt.JobID) {
	type arrayPart struct {
		array job.ID
		held  bool
	}
	parts := map[arrayPart]*group{}
	missing = c.eachSelected(sel, 0, false, func(v *state.View) bool {
		var tasks *group
		if collapse && isPendingTask(v) {
			k := arrayPart{v.Job.Array.Job, v.Job.Flags&job.Held != 0}
			if g := parts[k]; g != nil {
				g.idx = append(g.idx, v.Job.Array.Index)
				return true
			}
			tasks = &group{array: k.array, held: k.held, limit: v.Job.Array.MaxRunning, idx: []uint32{v.Job.Array.Index}}
			parts[k] = tasks
		}
		n, text := o.key(v)
		rows = append(rows, sortRow{n, text, v.Job.ID, tasks})
		return true
	})
	slices.SortFunc(rows, o.compare)
	return rows, missing
}

// eachRow calls f for the jobs of rows as they are now. Those that have left memory meanwhile are left
// out.
func (c *call) eachRow(rows []sortRow, whole bool, f func(*sortRow, *state.View)) {
	for i := range rows {
		c.s.cfg.Plane.Scan(query.Filter{After: rows[i].id - 1, Whole: whole}, func(v *state.View) bool {
			if v.Job.ID == rows[i].id && c.MaySee(v) {
				f(&rows[i], v)
			}
			return false
		})
	}
}

func (s *Service) sortedText(c *call, in *listInput, rows []sortRow, next string) error {
	cols, names, whole, err := columnsOf(in.Columns, pools.DefaultPool(s.cfg.Plane.Pools()))
	if err != nil {
		return err
	}
	t := &table{cols: cols, names: names}
	c.eachRow(rows, whole, func(r *sortRow, v *state.View) {
		if r.tasks == nil {
			t.writeRow(v)
			return
		}
		for _, f := range cols {
			r.tasks.cells = append(r.tasks.cells, f(nil, v))
		}
		t.groups = append(t.groups, *r.tasks)
		t.flushArray()
	})
	if next != "" {
		c.W.Header().Set(nextHeader, next)
	}
	c.WriteBody(http.StatusOK, api.TSV+"; charset=utf-8", t.b)
	return nil
}

func (s *Service) sortedJSON(c *call, rows []sortRow, total int, next string) error {
	out := &api.Jobs{Jobs: []api.Job{}, Next: next, Total: total, Change: s.cfg.Plane.LastEvent()}
	arrays := map[job.ID]bool{}
	var failed error
	b := append(make([]byte, 0, 64<<10), `{"jobs":[`...)
	c.eachRow(rows, true, func(_ *sortRow, v *state.View) {
		one, merr := json.Marshal(c.listedJob(v, arrays))
		if failed == nil {
			failed = merr
		}
		if len(b) > len(`{"jobs":[`) {
			b = append(b, ',')
		}
		b = append(b, one...)
	})
	if failed != nil {
		return failed
	}
	rest, err := json.Marshal(out)
	if err != nil {
		return err
	}
	b = append(b, strings.TrimPrefix(string(rest), `{"jobs":[`)...)
	c.WriteBody(http.StatusOK, "application/json", append(b, '\n'))
	return nil
}
