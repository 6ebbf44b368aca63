package jobs

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// SelectQuery is api.Select as parameters of a request. (It has a capital because
// parameters in an embedded type are found only so.)
type SelectQuery struct {
	IDs        []string `query:"ids" doc:"7, 7_3, 7_[1-4,9]"`
	Users      []string `query:"users" doc:"names or numbers"`
	Accounts   []string `query:"accounts"`
	Partitions []string `query:"partitions"`
	QOS        []string `query:"qos"`
	Names      []string `query:"names" doc:"names that users gave"`
	States     []string `query:"states" doc:"long or short names; all: those that ended a moment ago too. Left out: live jobs"`
	Nodes      []string `query:"nodes" doc:"jobs that hold something there, and stored ones that did in their last attempt; host lists"`
}

func (q *SelectQuery) toSelect() api.Select {
	return api.Select{
		IDs: joinBrackets(q.IDs), Users: q.Users, Accounts: q.Accounts, Partitions: q.Partitions, QOS: q.QOS, Names: q.Names,
		States: q.States, Nodes: joinBrackets(q.Nodes),
	}
}

// joinBrackets puts together what was cut at commas inside of brackets: 7_[1-4,9].
func joinBrackets(list []string) (out []string) {
	open := false
	for _, s := range list {
		if open {
			out[len(out)-1] += "," + s
		} else {
			out = append(out, s)
		}
		last := out[len(out)-1]
		open = strings.Count(last, "[") > strings.Count(last, "]")
	}
	return out
}

// Headers of lists.
const (
	changeHeader = "Cox-Change" // the last event that the list reflects
	nextHeader   = api.NextHeader
)

const (
	pageSize  = 1000    // jobs of a JSON page, unless asked otherwise
	pageBytes = 8 << 20 // of a JSON page, about: more jobs come on the next one
	mostJobs  = 10000   // of a JSON page
	mostRows  = 100000  // that a page of text may be limited to
	chunk     = 1024    // jobs that are read in one go
)

type listInput struct {
	SelectQuery
	NarrowQuery
	Sort     string   `query:"sort" doc:"id, name, user, account, state, reason, priority, submitted, started, ended, nodes, gpus or time_limit; with - before it, largest first. The answer has the number of all rows: total, or the header Cox-Total"`
	Offset   int      `query:"offset" minimum:"0" doc:"with sort: rows before the page; a cursor outranks it"`
	Limit    int      `query:"limit" minimum:"0" doc:"jobs of a page; JSON, and text with sort: 1000 if left out, at most 10000; text without sort: all"`
	Cursor   string   `query:"cursor" doc:"next of the page before"`
	Collapse bool     `query:"collapse" doc:"text: pending tasks of an array as one row, 7_[1-4,9%2]"`
	Columns  []string `query:"columns" doc:"answer with text of these columns (docs/reference/api.md)"`
}

func (s *Service) registerLists() {
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs", Verb: auth.SeeJob, ID: "listJobs", Tag: "jobs", Owned: true, Media: []string{api.TSV}, Answer: transport.TypeOf[api.Jobs](),
		Summary: "List jobs", About: "Live jobs and those that ended a moment ago, by number. JSON of Jobs; with columns, text. " +
			"On a page of JSON the first task of an array alone has spec.array.indices. " +
			"Pages go on by cursor and are stable while jobs come and go.",
	}, func(c *call, in *listInput) error { return s.listJobs(c, in) })
	s.registerCounts()
}

func (s *Service) listJobs(c *call, in *listInput) error {
	sel, err := s.selectNarrowed(&in.SelectQuery, &in.NarrowQuery)
	if err != nil {
		return err
	}
	c.W.Header().Set(changeHeader, strconv.FormatUint(s.cfg.Plane.LastEvent(), 10))
	switch {
	case in.Sort != "":
		return s.listSorted(c, sel, in)
	case in.Offset != 0:
		return fault.New(fault.Invalid, "offset: only a sorted list has one").Advise("add sort=id, or go on by cursor")
	}
	after, err := readCursor(in.Cursor)
	if err != nil {
		return err
	}
	if len(in.Columns) > 0 {
		return s.listText(c, sel, in, after)
	}
	return s.listJSON(c, sel, in, after)
}

func readCursor(s string) (job.ID, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fault.New(fault.Invalid, "cursor: %q is none that this server gave out", s).Advise("begin without a cursor")
	}
	return job.ID(n), nil
}

func cursorOf(id job.ID) string { return strconv.FormatUint(uint64(id), 10) }

// listJSON writes api.Jobs. Jobs are written while they are read, a chunk at a
// time, so that nothing waits for a slow client.
func (s *Service) listJSON(c *call, sel *selection, in *listInput, after job.ID) error {
	limit := in.Limit
	if limit == 0 {
		limit = pageSize
	}
	limit = min(limit, mostJobs)
	change := s.cfg.Plane.LastEvent()
	b := append(make([]byte, 0, 64<<10), `{"jobs":[`...)
	n, arrays := 0, map[job.ID]bool{}
	next, missing, err := s.scanInChunks(c, sel, after, true, func(v *state.View) (bool, error) {
		if n == limit || len(b) > pageBytes {
			return false, nil
		}
		if n > 0 {
			b = append(b, ',')
		}
		n++
		one, err := json.Marshal(c.listedJob(v, arrays))
		b = append(b, one...)
		return true, err
	})
	if err != nil {
		return err
	}
	if len(missing) > 0 && n == 0 && after == 0 {
		return unknownJob(missing[0].String())
	}
	b = append(b, ']')
	if next != 0 {
		b = append(append(append(b, `,"next":"`...), cursorOf(next)...), '"')
	}
	b = strconv.AppendUint(append(b, `,"change":`...), change, 10)
	c.WriteBody(http.StatusOK, "application/json", append(b, "}\n"...))
	return nil
}

// scanInChunks calls f for every selected job, and lets the control plane go on between
// chunks. f returns false at the job that it does not want any more; last is then
// the job before it, and zero if there was no such job.
func (s *Service) scanInChunks(c *call, sel *selection, after job.ID, whole bool, f func(*state.View) (bool, error)) (last job.ID, missing []slurmfmt.JobID, err error) {
	for {
		n, full, stopped := 0, false, false
		missing = c.eachSelected(sel, after, whole, func(v *state.View) bool {
			if n == chunk {
				full = true
				return false
			}
			n++
			more, ferr := f(v)
			if ferr != nil || !more {
				err, stopped = ferr, true
				return false
			}
			after = v.Job.ID
			return true
		})
		switch {
		case err != nil:
			return 0, missing, err
		case stopped:
			return after, missing, nil
		case !full:
			return 0, missing, nil
		case c.Ctx().Err() != nil:
			return 0, nil, c.Ctx().Err()
		}
	}
}

func (s *Service) listText(c *call, sel *selection, in *listInput, after job.ID) error {
	cols, names, whole, err := columnsOf(in.Columns, pools.DefaultPool(s.cfg.Plane.Pools()))
	if err != nil {
		return err
	}
	limit := in.Limit
	if limit == 0 {
		limit = 1 << 62
	} else {
		limit = min(limit, mostRows)
	}
	t := &table{cols: cols, names: names, collapse: in.Collapse}
	next, missing, err := s.scanInChunks(c, sel, after, whole, func(v *state.View) (bool, error) {
		if t.rows >= limit && !t.inOpenArray(v) {
			return false, nil
		}
		t.add(v)
		return true, nil
	})
	if err != nil {
		return err
	}
	t.flushArray()
	if len(missing) > 0 && t.rows == 0 && after == 0 {
		return unknownJob(missing[0].String())
	}
	if next != 0 {
		c.W.Header().Set(nextHeader, cursorOf(next))
	}
	c.WriteBody(http.StatusOK, api.TSV+"; charset=utf-8", t.b)
	return nil
}

// table is text of rows and columns that is being written.
type table struct {
	cols     []appendColumn
	names    []string
	collapse bool
	b        []byte
	rows     int
	groups   []group // of the array that is being read
}

// group is the pending tasks of an array that become one row. Its cells are those
// of the first task.
type group struct {
	array job.ID
	held  bool
	limit uint32
	cells [][]byte
	idx   []uint32
}

func isPendingTask(v *state.View) bool {
	return v.Job.Array != nil && v.Job.State == job.Pending && v.Job.Attempt == 0
}

// inOpenArray says whether a job belongs to the array whose tasks are being collected: a
// page does not end there.
func (t *table) inOpenArray(v *state.View) bool {
	return len(t.groups) > 0 && v.Job.Array != nil && v.Job.Array.Job == t.groups[0].array
}

func (t *table) add(v *state.View) {
	if !t.inOpenArray(v) {
		t.flushArray()
	}
	if !t.collapse || !isPendingTask(v) {
		t.writeRow(v)
		return
	}
	held := v.Job.Flags&job.Held != 0
	for i := range t.groups {
		if t.groups[i].held == held {
			t.groups[i].idx = append(t.groups[i].idx, v.Job.Array.Index)
			return
		}
	}
	g := group{array: v.Job.Array.Job, held: held, limit: v.Job.Array.MaxRunning, idx: []uint32{v.Job.Array.Index}}
	for _, f := range t.cols {
		g.cells = append(g.cells, f(nil, v))
	}
	t.groups = append(t.groups, g)
}

func (t *table) writeRow(v *state.View) {
	if t.b == nil {
		t.b = make([]byte, 0, 64<<10)
	}
	b := t.b
	for i, f := range t.cols {
		if i > 0 {
			b = append(b, '\t')
		}
		b = f(b, v)
	}
	t.b = append(b, '\n')
	t.rows++
}

// flushArray writes the rows of the array that was read.
func (t *table) flushArray() {
	for _, g := range t.groups {
		slices.Sort(g.idx)
		set := slurmfmt.FormatArrayIndices(g.idx)
		if g.limit > 0 && len(g.idx) > 1 {
			set += "%" + strconv.FormatUint(uint64(g.limit), 10)
		}
		for i, cell := range g.cells {
			if i > 0 {
				t.b = append(t.b, '\t')
			}
			switch {
			case t.names[i] == "array_task":
				t.b = append(t.b, set...)
			case t.names[i] == "name" && len(g.idx) == 1:
				t.b = append(append(strconv.AppendUint(t.b, uint64(g.array), 10), '_'), set...)
			case t.names[i] == "name":
				t.b = append(append(append(strconv.AppendUint(t.b, uint64(g.array), 10), "_["...), set...), ']')
			default:
				t.b = append(t.b, cell...)
			}
		}
		t.b = append(t.b, '\n')
		t.rows++
	}
	t.groups = t.groups[:0]
}
