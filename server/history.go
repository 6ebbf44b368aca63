package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/slurmfmt"
	"github.com/coxswain-sched/coxswain/store"
)

type historyInput struct {
	SelectQuery
	From    string   `query:"from" doc:"RFC 3339: jobs that lived at that time or later"`
	To      string   `query:"to" doc:"RFC 3339: jobs that were submitted before"`
	Limit   int      `query:"limit" minimum:"0" doc:"jobs of a page; JSON: 1000 if left out, at most 10000; text: all"`
	Cursor  string   `query:"cursor" doc:"next of the page before"`
	Columns []string `query:"columns" doc:"answer with text of these columns (docs/api.md)"`
}

func (s *Server) registerHistory() {
	addStream(s, route{
		method: http.MethodGet, path: "/v1/history", verb: auth.SeeJob, id: "history", tag: "jobs", owned: true, media: []string{api.TSV}, answer: typeOf[api.History](),
		summary: "List jobs of the store, newest first", about: "Live ones too. JSON of History; with columns, text.",
	}, func(c *call, in *historyInput) error { return s.history(c, in) })
}

func (s *Server) history(c *call, in *historyInput) error {
	q, err := s.historyQuery(c, in)
	if err != nil {
		return err
	}
	limit := in.Limit
	if limit == 0 {
		limit = pageSize
		if len(in.Columns) > 0 {
			limit = 1 << 62
		}
	} else if len(in.Columns) == 0 {
		limit = min(limit, mostJobs)
	}
	cols, names, _, err := columnsOf(in.Columns)
	if err != nil {
		return err
	}
	t := &table{cols: cols, names: names}
	b := append([]byte(nil), `{"jobs":[`...)
	n := 0
	next := uint64(0)
	for {
		q.Limit = min(limit-n, mostJobs)
		got := 0
		var werr error
		next, err = s.cfg.Plane.History(c.ctx(), *q, func(v *control.View) bool {
			got++
			if !c.sees(v) {
				return true
			}
			n++
			if len(cols) > 0 {
				t.row(v)
				return true
			}
			if n > 1 {
				b = append(b, ',')
			}
			var one []byte
			one, werr = json.Marshal(shown(v))
			b = append(b, one...)
			return werr == nil
		})
		if err == nil {
			err = werr
		}
		if err != nil {
			return err
		}
		if next == 0 || n >= limit || got == 0 {
			break
		}
		q.Below = next
	}
	if len(cols) > 0 {
		if next != 0 && n >= limit {
			c.w.Header().Set(nextHeader, strconv.FormatUint(next, 10))
		}
		c.write(http.StatusOK, api.TSV+"; charset=utf-8", t.b)
		return nil
	}
	b = append(b, ']')
	if next != 0 {
		b = append(strconv.AppendUint(append(b, `,"next":"`...), next, 10), '"')
	}
	c.write(http.StatusOK, "application/json", append(b, "}\n"...))
	return nil
}

// historyQuery reads the parameters.
func (s *Server) historyQuery(c *call, in *historyInput) (*store.Query, error) {
	q := &store.Query{Accounts: in.Accounts, Partitions: in.Partitions, QOS: in.QOS, Names: in.Names}
	for _, u := range in.Users {
		name := u
		if n, err := strconv.ParseUint(u, 10, 32); err == nil {
			name = s.cfg.Users.ByUID(uint32(n)).Name
		}
		q.Users = append(q.Users, name)
	}
	if s.cfg.Policy.Private && !c.id.Admin {
		q.Users = []string{c.id.Name}
	}
	for _, n := range in.States {
		if strings.EqualFold(n, "all") {
			q.States = nil
			break
		}
		st, fl, ok := stateOf(n)
		switch {
		case !ok:
			return nil, fault.New(fault.Invalid, "states: there is no state %q", n)
		case fl != 0:
			q.States = append(q.States, strings.ToUpper(n)) // a row has none of these
		default:
			q.States = append(q.States, st.String())
		}
	}
	if err := c.historyIDs(q, rejoin(in.IDs)); err != nil {
		return nil, err
	}
	var err error
	if q.From, err = moment("from", in.From); err != nil {
		return nil, err
	}
	if q.To, err = moment("to", in.To); err != nil {
		return nil, err
	}
	below, err := readCursor(in.Cursor)
	q.Below = uint64(below)
	return q, err
}

// historyIDs adds jobs to a query: numbers, tasks, or all of an array.
func (c *call) historyIDs(q *store.Query, texts []string) error {
	for _, text := range texts {
		id, err := slurmfmt.ParseJobID(text)
		if err != nil {
			return badJob(text, err)
		}
		if id.Tasks != "" {
			if err := c.historyTasks(q, id); err != nil {
				return err
			}
			continue
		}
		v, err := c.s.cfg.Plane.Job(c.ctx(), job.ID(id.Job))
		switch {
		case fault.KindOf(err) == fault.NotFound:
		case err != nil:
			return err
		case v.Job.Array == nil || v.Job.Array.Job != v.Job.ID:
			q.IDs = append(q.IDs, id.Job)
		case len(texts) == 1:
			q.Array = id.Job
		default:
			for i := range uint64(v.Job.Array.Count) { // tasks follow each other
				q.IDs = append(q.IDs, id.Job+i)
			}
		}
	}
	if len(texts) > 0 && len(q.IDs) == 0 && q.Array == 0 {
		q.IDs = []uint64{0} // nothing has this number
	}
	return nil
}

func (c *call) historyTasks(q *store.Query, id slurmfmt.JobID) error {
	set, err := slurmfmt.ParseArray(id.Tasks, slurmfmt.MaxArraySize)
	if err != nil {
		return badJob(id.String(), err)
	}
	for _, i := range set.Indices() {
		v, err := c.s.cfg.Plane.Find(c.ctx(), job.ID(id.Job), i)
		switch {
		case fault.KindOf(err) == fault.NotFound:
		case err != nil:
			return err
		default:
			q.IDs = append(q.IDs, uint64(v.Job.ID))
		}
	}
	return nil
}

func moment(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fault.New(fault.Invalid, "%s: %q is no time", name, text).Advise("write it as 2006-01-02T15:04:05Z")
	}
	return t, nil
}
