package squeue

import (
	"strings"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/layout"
	"github.com/coxswain-sched/coxswain/model/job"
)

const formatStep = "%.15i %.8j %.9P %.8u %.9M %N"

var stepColumns = []column.Column{
	column.Name, column.State, column.Partition, column.User, column.Started, column.Ended, column.BatchHost, column.ScriptHash,
}

// printSteps shows the batch script of each running job, the one step that the
// server knows by itself.
func (q *query) printSteps(list []jobs.Row) {
	spec := q.format
	if spec == "" {
		spec = formatStep
	}
	const letters = "ijPuMN"
	find := func(l byte) (int, bool) { i := strings.IndexByte(letters, l); return i, i >= 0 }
	f := layout.Letters(spec, find, func(text string) { q.Errorf("Invalid job step format specification: %s", text) })
	heads := []string{"STEPID", "NAME", "PARTITION", "USER", "TIME", "NODELIST"}
	var b []byte
	if !q.noHeader {
		q.Out.Write(f.Append(nil, func(b []byte, i int) []byte { return append(b, heads[i]...) }))
	}
	for _, r := range list {
		if s := r.Base(); s != job.Running && s != job.Suspended || len(r.Bytes(column.ScriptHash)) == 0 || r.Part() > 0 {
			continue
		}
		b = f.Append(b[:0], func(b []byte, i int) []byte {
			switch letters[i] {
			case 'i':
				return append(append(b, r.Bytes(column.Name)...), ".batch"...)
			case 'j':
				return append(b, "batch"...)
			case 'P':
				return append(b, r.Bytes(column.Partition)...)
			case 'u':
				return append(b, r.Bytes(column.User)...)
			case 'M':
				return jobs.AppendSpan(b, r.Elapsed())
			}
			return append(b, r.Bytes(column.BatchHost)...)
		})
		q.Out.Write(b)
	}
}
