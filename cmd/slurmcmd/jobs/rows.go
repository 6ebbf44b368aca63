package jobs

import (
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/model/printable"
)

// Want is a set of columns that is asked for.
type Want struct {
	order []column.Column
	at    [column.Count]int8 // position in order, plus one
}

// Add adds columns; those that are there already stay where they are.
func (w *Want) Add(cols ...column.Column) {
	for _, c := range cols {
		if w.at[c] == 0 {
			w.order = append(w.order, c)
			w.at[c] = int8(len(w.order))
		}
	}
}

// Param is the value of the parameter columns.
func (w *Want) Param() string { return column.Join(w.order) }

// Rows are the jobs of an answer.
type Rows struct {
	table *fastclient.Table
	want  *Want
	Now   int64 // Unix seconds
	// Cluster is the cluster's name; the command sets it where a field prints it.
	Cluster string
	zone    *time.Location
}

// Get asks a server for jobs; params are those of the request, without columns.
func Get(c *fastclient.Client, path string, w *Want, now time.Time, params ...string) (*Rows, error) {
	r, err := c.Get(fastclient.Query(path, append(params, "columns", w.Param())...), api.TSV)
	if err != nil {
		return nil, err
	}
	t, err := r.Table(len(w.order))
	if err != nil {
		return nil, err
	}
	return New(t, w, now), nil
}

// New makes Rows of a table whose columns are those of w.
func New(t *fastclient.Table, w *Want, now time.Time) *Rows {
	return &Rows{table: t, want: w, Now: now.Unix(), zone: now.Location()}
}

// None are no jobs.
func None(w *Want, now time.Time) *Rows {
	t, err := fastclient.NewTable(nil, max(len(w.order), 1))
	if err != nil {
		panic(err) // there is nothing in it that could be wrong
	}
	return New(t, w, now)
}

// Len is the number of jobs.
func (r *Rows) Len() int { return r.table.Len() }

// Row returns one job.
func (r *Rows) Row(i int) Row { return Row{Rows: r, i: i, part: -1} }

// Row is one job, or one component of a heterogeneous one.
type Row struct {
	*Rows
	i         int
	part      int    // index of the component; -1: the job is none
	partition string // stands for the job's list of partitions; empty: the list itself
	name      string // stands for the job's own; empty: that one
}

// Named is the job under another name: waiting tasks of an array, which stand for all of them.
func (r Row) Named(name string) Row { r.name = name; return r }

// InPartition is the job as if it were in one of its partitions alone.
func (r Row) InPartition(name string) Row { r.partition = name; return r }

// Component returns one component of a heterogeneous job.
func (r Row) Component(k int) Row { r.part = k; return r }

// Part is the component's index, -1 where the job has none.
func (r Row) Part() int { return r.part }

// Bytes is a cell for people: what would move a terminal's cursor or break a line is
// taken out of it. A column that was not asked for is empty.
func (r Row) Bytes(c column.Column) []byte { return printable.Clean(r.Raw(c)) }

// Raw is a cell as it is, for programs.
func (r Row) Raw(c column.Column) []byte {
	at := r.want.at[c]
	switch {
	case at == 0:
		return nil
	case c == column.Partition && r.partition != "":
		return []byte(r.partition)
	case c == column.Name && r.name != "":
		return []byte(r.name)
	}
	return r.table.Cell(r.i, int(at)-1)
}

// Text is a cell as a string.
func (r Row) Text(c column.Column) string { return string(r.Bytes(c)) }

// Int is a cell with a number; a fraction is rounded up, since Slurm counts whole CPUs.
func (r Row) Int(c column.Column) int64 {
	b := r.Bytes(c)
	var n int64
	for i, d := range b {
		switch {
		case d >= '0' && d <= '9':
			n = n*10 + int64(d-'0')
		case d == '-' && i == 0:
		default:
			f, err := strconv.ParseFloat(string(b), 64)
			if err != nil {
				return 0
			}
			n = int64(f)
			if float64(n) < f {
				n++
			}
			return n
		}
	}
	if len(b) > 0 && b[0] == '-' {
		n = -n
	}
	return n
}

// Is reports whether a flag of one digit is set.
func (r Row) Is(c column.Column) bool { b := r.Bytes(c); return len(b) == 1 && b[0] == '1' }
