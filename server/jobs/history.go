package jobs

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store"
)

type historyInput struct {
	SelectQuery
	Match   string   `query:"match" doc:"jobs whose name, user or account has this text in it, in upper or lower case. No index has it: add users, accounts or ids where there are millions of jobs"`
	Sort    string   `query:"sort" doc:"-id alone, the order that the list has: stored jobs are not sorted otherwise"`
	From    string   `query:"from" doc:"RFC 3339: jobs that lived at that time or later"`
	To      string   `query:"to" doc:"RFC 3339: jobs that were submitted before"`
	Limit   int      `query:"limit" minimum:"0" doc:"jobs of a page; JSON: 1000 if left out, at most 10000; text: all"`
	Cursor  string   `query:"cursor" doc:"next of the page before"`
	Columns []string `query:"columns" doc:"answer with text of these columns (docs/reference/api.md)"`
}

func (s *Service) registerHistory() {
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/history", Verb: auth.SeeJob, ID: "history", Tag: "jobs", Owned: true, Media: []string{api.TSV}, Answer: transport.TypeOf[api.History](),
		Summary: "List all stored jobs, newest first", About: "Live ones too, as they are now. JSON of History; with columns, text. " +
			"On a page of JSON the first task of an array alone has spec.array.indices.",
	}, func(c *call, in *historyInput) error { return s.listHistory(c, in) })
}

func (s *Service) listHistory(c *call, in *historyInput) error {
	q, err := s.historyQuery(c, in)
	if err != nil {
		return err
	}
	cols, names, _, err := columnsOf(in.Columns, pools.DefaultPool(s.cfg.Plane.Pools()))
	if err != nil {
		return err
	}
	limit := in.Limit
	switch {
	case len(cols) > 0 && limit == 0:
		limit = 1 << 62
	case len(cols) == 0 && limit == 0:
		limit = pageSize
	case len(cols) == 0:
		limit = min(limit, mostJobs)
	}
	p := &page{call: c, table: table{cols: cols, names: names}, arrays: map[job.ID]bool{}}
	if p.nodes, err = readNodeNames(joinBrackets(in.Nodes)); err != nil {
		return err
	}
	if err := c.queryOneArray(q, in.IDs); err != nil {
		return err
	}
	var next uint64
	if len(in.IDs) > 0 && q.Array == 0 {
		next, err = c.historyByName(q, joinBrackets(in.IDs), limit, p)
	} else {
		next, err = c.mergeHistory(q, limit, p)
	}
	if err != nil {
		return err
	}
	return p.write(c, next)
}

// page is an answer that is being written: text of columns, or JSON.
type page struct {
	table
	call   *call
	json   []byte
	n      int
	arrays map[job.ID]bool // of which a task is in json
	nodes  nodeNames       // that the store's queries do not know
}

// isWanted reports whether a job that is not of the store's answer is asked for, and the caller may see it.
func (p *page) isWanted(q *store.Query, v *state.View) bool {
	return p.call.MaySee(v) && matchesQuery(q, v) && p.nodes.hasOneOf(v)
}

func (p *page) add(v *state.View) error {
	p.n++
	if len(p.cols) > 0 {
		p.writeRow(v)
		return nil
	}
	if p.n > 1 {
		p.json = append(p.json, ',')
	}
	one, err := json.Marshal(p.call.listedJob(v, p.arrays))
	p.json = append(p.json, one...)
	return err
}

func (p *page) write(c *call, next uint64) error {
	if len(p.cols) > 0 {
		if next != 0 {
			c.W.Header().Set(nextHeader, strconv.FormatUint(next, 10))
		}
		c.WriteBody(http.StatusOK, api.TSV+"; charset=utf-8", p.b)
		return nil
	}
	b := append(append([]byte(`{"jobs":[`), p.json...), ']')
	if next != 0 {
		b = append(strconv.AppendUint(append(b, `,"next":"`...), next, 10), '"')
	}
	c.WriteBody(http.StatusOK, "application/json", append(b, "}\n"...))
	return nil
}

// mergeHistory merges what is in memory with the rows of the store, newest first. The rows
// are a second or two late, so memory outranks them. next is the last number of a
// page that is full, else 0.
func (c *call) mergeHistory(q *store.Query, limit int, p *page) (next uint64, err error) {
	m, more := c.historyInMemory(q, limit, p), true
	if q.Array != 0 {
		if more, err = m.writeArrayTop(q); err != nil {
			return 0, err
		}
	}
	for more && p.n < limit {
		var werr error
		if q.Limit = min(limit-p.n, chunk); p.nodes.names != nil {
			q.Limit = chunk // few of them may be wanted
		}
		q.Below, err = c.s.cfg.Plane.History(c.Ctx(), *q, func(v *state.View) bool {
			id := uint64(v.Job.ID)
			if werr = m.writeDownTo(id); werr != nil || p.n == limit {
				return false
			}
			if _, there := slices.BinarySearch(m.all, id); !there && c.MaySee(v) && p.nodes.hasOneOf(v) {
				m.last, werr = id, p.add(v)
			}
			return werr == nil && p.n < limit
		})
		if err == nil {
			err = werr
		}
		if err != nil {
			return 0, err
		}
		more = q.Below != 0
	}
	if err := m.writeDownTo(0); err != nil || p.n < limit {
		return 0, err
	}
	return m.last, nil
}

// memory is the jobs in memory while a page of history is made.
type memory struct {
	c     *call
	p     *page
	limit int
	all   []uint64 // ascending
	wants []uint64 // those of them that are asked for and not written yet
	last  uint64   // written last

	maybe *store.Query // which of wants are asked for is not known yet; nil: all
}

func (c *call) historyInMemory(q *store.Query, limit int, p *page) *memory {
	m := &memory{c: c, p: p, limit: limit}
	if q.Array != 0 { // of a large one each page would else look at all that is in memory
		for _, id := range c.s.cfg.Plane.Tasks(job.ID(q.Array)) {
			if q.Below == 0 || uint64(id) < q.Below {
				m.all = append(m.all, uint64(id))
			}
		}
		m.wants, m.maybe = slices.Clone(m.all), q
		return m
	}
	c.s.cfg.Plane.Scan(query.Filter{}, func(v *state.View) bool {
		id := uint64(v.Job.ID)
		if q.Below != 0 && id >= q.Below {
			return false
		}
		m.all = append(m.all, id)
		if p.isWanted(q, v) {
			m.wants = append(m.wants, id)
		}
		return true
	})
	return m
}

// writeArrayTop writes those tasks of an array that come first and of which the store need not be asked,
// since memory has each. more: it is to be asked for the others.
func (m *memory) writeArrayTop(q *store.Query) (more bool, err error) {
	if len(m.all) == 0 {
		return q.Below == 0 || q.Below > q.Array, nil
	}
	v, err := m.c.s.cfg.Plane.Job(m.c.Ctx(), job.ID(m.all[0]))
	if err != nil || v.Job.Array == nil {
		return true, nil // it is gone; the store has it
	}
	below := q.Array + uint64(v.Job.Array.Count)
	if q.Below != 0 {
		below = min(below, q.Below)
	}
	for i := len(m.all) - 1; i >= 0 && m.all[i] == below-1; i-- {
		below--
	}
	q.Below = below
	return below > q.Array, m.writeDownTo(below - 1)
}

// writeDownTo writes the jobs in memory from the top to above a number.
func (m *memory) writeDownTo(above uint64) error {
	for n := len(m.wants); n > 0 && m.wants[n-1] > above && m.p.n < m.limit; n-- {
		id := m.wants[n-1]
		m.wants = m.wants[:n-1]
		v, err := m.c.s.cfg.Plane.Job(m.c.Ctx(), job.ID(id))
		if fault.KindOf(err) == fault.NotFound || err == nil && m.maybe != nil && !m.p.isWanted(m.maybe, &v) {
			continue
		}
		if err == nil {
			err = m.p.add(&v)
		}
		if err != nil {
			return err
		}
		m.last = id
	}
	return nil
}

// queryOneArray makes a query of the number of an array, if it is all that the caller names: reading
// each task by itself would take long. Of its first task the history may be over.
func (c *call) queryOneArray(q *store.Query, texts []string) error {
	if len(texts) != 1 {
		return nil
	}
	ids, err := parseIDs(texts)
	if err != nil || len(ids) != 1 || ids[0].Tasks != "" {
		return err
	}
	v, err := c.s.cfg.Plane.Job(c.Ctx(), job.ID(ids[0].Job))
	switch {
	case fault.KindOf(err) == fault.NotFound:
		q.Array = ids[0].Job
		return nil
	case err == nil && v.Job.Array != nil && v.Job.Array.Job == v.Job.ID:
		q.Array = ids[0].Job
	}
	return err
}

// historyByName shows jobs that the caller names: each as it is at this moment, wherever it
// is kept. The store's rows are a second or two late.
func (c *call) historyByName(q *store.Query, texts []string, limit int, p *page) (next uint64, err error) {
	ids, err := c.historyIDs(texts)
	if err != nil {
		return 0, err
	}
	for _, id := range slices.Backward(ids) {
		if q.Below != 0 && id >= q.Below {
			continue
		}
		if p.n == limit {
			return next, nil
		}
		v, err := c.s.cfg.Plane.Job(c.Ctx(), job.ID(id))
		if fault.KindOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return 0, err
		}
		if p.isWanted(q, &v) {
			if err := p.add(&v); err != nil {
				return 0, err
			}
			next = id
		}
	}
	return 0, nil
}

// matchesQuery is store.Query.Match for a view.
func matchesQuery(q *store.Query, v *state.View) bool {
	j, s := &v.Job, v.Job.Spec
	return q.MatchText(s.Name, s.Owner.User, s.Account) && (q.Array == 0 || j.Array != nil && uint64(j.Array.Job) == q.Array) && isAmong(q.Users, s.Owner.User) && isAmong(q.Accounts, s.Account) && isAmong(q.QOS, s.QOS) && isAmong(q.Names, s.Name) &&
		isAmong(q.States, j.State.String()) &&
		(len(q.Partitions) == 0 || slices.ContainsFunc(s.Partitions, func(p string) bool { return slices.Contains(q.Partitions, p) })) &&
		(q.From.IsZero() || j.Ended.IsZero() || !j.Ended.Before(q.From)) && (q.To.IsZero() || j.Submitted.Before(q.To))
}

// historyQuery reads the parameters.
func (s *Service) historyQuery(c *call, in *historyInput) (*store.Query, error) {
	if in.Sort != "" && in.Sort != "-id" {
		return nil, fault.New(fault.Invalid, "sort: stored jobs are not sorted by %q", in.Sort).Advise("leave it out, or give -id: the newest job comes first. GET /v1/jobs sorts the jobs in memory")
	}
	q := &store.Query{Accounts: in.Accounts, Partitions: in.Partitions, QOS: in.QOS, Names: in.Names, Text: in.Match}
	for _, u := range in.Users {
		name := u
		if n, err := strconv.ParseUint(u, 10, 32); err == nil {
			name = s.cfg.Users.ByUID(uint32(n)).Name
		}
		q.Users = append(q.Users, name)
	}
	if s.cfg.Policy.Private && !c.ID.Admin {
		q.Users = []string{c.ID.Name}
	}
	for _, n := range in.States {
		if strings.EqualFold(n, "all") {
			q.States = nil
			break
		}
		st, fl, ok := stateOf(n)
		switch {
		case !ok:
			return nil, noState(n)
		case fl != 0:
			q.States = append(q.States, strings.ToUpper(n)) // a row has none of these
		default:
			q.States = append(q.States, st.String())
		}
	}
	var err error
	if q.From, err = parseTime("from", in.From); err != nil {
		return nil, err
	}
	if q.To, err = parseTime("to", in.To); err != nil {
		return nil, err
	}
	below, err := readCursor(in.Cursor)
	q.Below = uint64(below)
	return q, err
}

// historyIDs are the numbers that are named, ascending, each once: of a job, of
// tasks, or of all tasks of an array.
func (c *call) historyIDs(texts []string) (ids []uint64, err error) {
	named, err := parseIDs(texts)
	if err != nil {
		return nil, err
	}
	for _, id := range named {
		if id.Tasks != "" {
			tasks, err := c.historyTasks(id)
			if err != nil {
				return nil, err
			}
			ids = append(ids, tasks...)
			continue
		}
		n := uint64(1)
		v, err := c.firstOfNumber(id.Job)
		switch {
		case fault.KindOf(err) == fault.NotFound:
		case err != nil:
			return nil, err
		case v.Job.Array != nil && uint64(v.Job.Array.Job) == id.Job:
			n = uint64(v.Job.Array.Count)
		}
		for i := range n { // tasks of an array follow each other
			ids = append(ids, id.Job+i)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// historyTasks are the numbers of tasks of an array: they follow each other in the
// order of its indices.
func (c *call) historyTasks(id slurmfmt.JobID) (ids []uint64, err error) {
	v, err := c.firstOfNumber(id.Job)
	switch {
	case fault.KindOf(err) == fault.NotFound || err == nil && (v.Job.Array == nil || uint64(v.Job.Array.Job) != id.Job || v.Job.Spec.Array == nil):
		return nil, nil
	case err != nil:
		return nil, err
	}
	set := setOf(id)
	for at, index := range v.Job.Spec.Array.Indices {
		if set.Contains(index) {
			ids = append(ids, id.Job+uint64(at))
		}
	}
	return ids, nil
}

func parseTime(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fault.New(fault.Invalid, "%s: %q is no time", name, text).Advise("write it as 2006-01-02T15:04:05Z")
	}
	return t, nil
}
