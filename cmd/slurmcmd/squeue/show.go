package squeue

import (
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/layout"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmjson"
	"github.com/coxswain-sched/coxswain/model/job"
)

// The formats that squeue has for itself.
const (
	formatShort = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	formatLong  = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
	formatState = "%.18i %.2t"
	formatStart = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
)

// nameWidth is how wide a column of -O is unless told otherwise.
const nameWidth = 20

// showJobs asks for the jobs and prints them.
func (q *query) showJobs() error {
	if len(q.pools) == 0 || q.json {
		return q.showJobsOf(q.heading, q.pools)
	}
	for i, p := range q.pools { // a table for each, as Slurm has for clusters
		if i > 0 && !q.noHeader {
			q.Out.WriteString("\n")
		}
		if err := q.showJobsOf(p, []string{p}); err != nil {
			return err
		}
	}
	return nil
}

// showJobsOf shows the jobs of some pools, or of all, below a heading.
func (q *query) showJobsOf(heading string, pools []string) error {
	var want jobs.Want
	format, err := q.parseFormat(&want)
	if err != nil {
		return err
	}
	order, err := q.sortOrder(&want)
	if err != nil {
		return err
	}
	want.Add(column.State, column.Flags, column.HetSize)
	if q.json {
		want.Add(slurmjson.JobColumns()...)
	}
	if q.steps {
		want.Add(stepColumns...)
	}
	if len(q.reservations) > 0 {
		want.Add(column.Reservation)
	}
	if len(q.licenses) > 0 {
		want.Add(column.Licenses)
	}
	if q.notMe {
		want.Add(column.UID)
	}
	if q.perPartition {
		want.Add(column.Partition)
	}
	rows, err := q.fetchRows(&want, pools)
	if err != nil {
		return err
	}
	if rows == nil {
		return nil
	}
	if q.namesCluster || q.json {
		if rows.Cluster, err = q.ClusterName(); err != nil {
			return err
		}
	}
	list := q.chooseRows(rows)
	switch {
	case q.json && q.onlyState:
		return slurmjson.JobStates(q.Command, q.jsonForm, list)
	case q.json:
		return slurmjson.Jobs(q.Command, q.jsonForm, list)
	}
	slices.SortStableFunc(list, order)
	if !q.noHeader {
		if q.wide || q.iterate > 0 {
			q.Out.WriteString(q.Now.Format("Mon Jan 02 15:04:05 2006") + "\n")
		}
		q.WriteClusterHeading(heading)
	}
	if q.steps {
		q.printSteps(list)
		return nil
	}
	q.printTable(format, list)
	return nil
}

// parseFormat finds the format and adds the columns that it needs.
func (q *query) parseFormat(want *jobs.Want) (layout.Format, error) {
	if q.json || q.steps {
		return nil, nil
	}
	var f layout.Format
	if q.long != "" {
		var err error
		if f, err = layout.Names(q.long, nameWidth, jobs.Find); err != nil {
			return nil, err
		}
	} else {
		spec := q.format
		switch {
		case spec != "":
		case q.start:
			spec = formatStart
		case q.wide:
			spec = formatLong
		default:
			spec = formatShort
		}
		f = layout.Letters(spec, jobs.FindLetter, func(text string) {
			q.Errorf("Invalid job format specification: %s", text)
		})
	}
	fields := jobs.Fields()
	f.Keep(func(i int) bool { l := fields[i].Letter; return l == 'N' || l == 'R' || l == 'Y' })
	for _, c := range f {
		if c.Field >= 0 {
			want.Add(fields[c.Field].Needs...)
			q.namesCluster = q.namesCluster || fields[c.Field].NeedsCluster()
		}
	}
	return f, nil
}

// fetchRows gets the jobs; nil without an error means that it was already said why there
// are none.
func (q *query) fetchRows(want *jobs.Want, pools []string) (*jobs.Rows, error) {
	if slurmcmd.MatchesNothing(q.ids, q.users, q.accounts, q.partitions, q.qos, q.names, q.nodes, q.states, q.reservations, q.licenses) {
		return jobs.None(want, q.Now), nil
	}
	c, err := q.Client()
	if err != nil {
		return nil, err
	}
	collapse := "1"
	if q.array {
		collapse = ""
	}
	states := q.rowFilter().Param()
	if len(q.ids) > 0 {
		states = "all" // so that an unknown number differs from a job that has ended
	}
	rows, err := jobs.Get(c, "/v1/jobs", want, q.Now,
		"ids", slurmcmd.JoinFilter(q.ids), "users", slurmcmd.JoinFilter(q.users), "accounts", slurmcmd.JoinFilter(q.accounts),
		"partitions", slurmcmd.JoinFilter(q.partitions), "qos", slurmcmd.JoinFilter(q.qos), "names", slurmcmd.JoinFilter(q.names),
		"nodes", slurmcmd.JoinFilter(q.nodes), "states", states, "collapse", collapse, "pools", strings.Join(pools, ","))
	if slurmcmd.IsNotFound(err) {
		if len(q.ids) > 1 {
			return jobs.None(want, q.Now), nil
		}
		q.Code = 1
		q.Err.Write([]byte("slurm_load_jobs error: Invalid job id specified\n"))
		return nil, nil
	}
	return rows, err
}

func (q *query) rowFilter() *jobs.Filter {
	if slices.Contains(q.states, "all") {
		return &jobs.Filter{All: true}
	}
	if q.start && len(q.states) == 0 {
		return jobs.NewFilter([]string{"PENDING"})
	}
	if q.steps {
		return jobs.NewFilter([]string{"RUNNING", "SUSPENDED"})
	}
	return jobs.NewFilter(q.states)
}

// chooseRows takes what is to be shown; a heterogeneous job becomes its components.
func (q *query) chooseRows(rows *jobs.Rows) []jobs.Row {
	f := q.rowFilter()
	out := make([]jobs.Row, 0, rows.Len())
	for i := range rows.Len() {
		r := rows.Row(i)
		if !f.Match(r) || !emptyOrContains(q.reservations, r.Bytes(column.Reservation)) || !hasLicence(q.licenses, r) {
			continue
		}
		if q.notMe && r.Int(column.UID) == int64(slurmcmd.Me()) {
			continue
		}
		n := int(r.Int(column.HetSize))
		if n < 2 {
			out = append(out, q.linesOf(r)...)
			continue
		}
		for k := range n {
			out = append(out, r.Component(k))
		}
	}
	return out
}

// linesOf is a job, or with -P the same job once for each partition in which it waits.
func (q *query) linesOf(r jobs.Row) (out []jobs.Row) {
	if !q.perPartition || r.Base() != job.Pending {
		return []jobs.Row{r}
	}
	for p := range strings.SplitSeq(r.Text(column.Partition), ",") {
		if len(q.partitions) == 0 || slices.Contains(q.partitions, p) {
			out = append(out, r.InPartition(p))
		}
	}
	return out
}

func emptyOrContains(list []string, v []byte) bool {
	return len(list) == 0 || slices.Contains(list, string(v))
}

func hasLicence(list []string, r jobs.Row) bool {
	if len(list) == 0 {
		return true
	}
	for l := range strings.FieldsFuncSeq(r.Text(column.Licenses), func(c rune) bool { return c == ',' || c == ';' || c == '|' }) {
		name, _, _ := strings.Cut(l, ":")
		if slices.Contains(list, name) {
			return true
		}
	}
	return false
}

func (q *query) printTable(f layout.Format, list []jobs.Row) {
	fields := jobs.Fields()
	b := make([]byte, 0, 512)
	if !q.noHeader {
		b = f.Append(b, func(b []byte, i int) []byte { return append(b, fields[i].Head...) })
		q.Out.Write(b)
	}
	for _, r := range list {
		b = f.Append(b[:0], func(b []byte, i int) []byte { return fields[i].Append(b, r) })
		q.Out.Write(b)
	}
}
