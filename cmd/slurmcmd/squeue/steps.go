package squeue

import (
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/layout"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/printable"
)

const formatStep = "%.15i %.8j %.9P %.8u %.9M %N"

var stepColumns = []column.Column{
	column.Name, column.State, column.Partition, column.User, column.Started, column.Ended, column.BatchHost, column.ScriptHash, column.Steps,
}

// stepsOf lists the steps of a job that run. The batch script has the times of the job.
func stepsOf(r jobs.Row) (out []api.Step) {
	hasScript := len(r.Bytes(column.ScriptHash)) > 0
	all := r.Steps()
	for i := range all {
		if all[i].State == job.Running.String() && (all[i].ID != "batch" || hasScript) {
			out = append(out, all[i])
		}
	}
	if len(all) == 0 && hasScript { // of an engine that does not name its tasks
		out = append(out, api.Step{ID: "batch", Name: "batch", Nodes: r.Text(column.BatchHost)})
	}
	return out
}

// printSteps shows the steps that run.
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
		if s := r.Base(); s != job.Running && s != job.Suspended || r.Part() > 0 {
			continue
		}
		for _, step := range stepsOf(r) {
			b = f.Append(b[:0], func(b []byte, i int) []byte { return appendStepField(b, r, &step, letters[i]) })
			q.Out.Write(b)
		}
	}
}

func appendStepField(b []byte, r jobs.Row, step *api.Step, letter byte) []byte {
	switch letter {
	case 'i':
		return append(append(append(b, r.Bytes(column.Name)...), '.'), step.ID...)
	case 'j':
		return append(b, printable.Clean([]byte(step.Name))...)
	case 'P':
		return append(b, r.Bytes(column.Partition)...)
	case 'u':
		return append(b, r.Bytes(column.User)...)
	case 'M':
		if step.ID != "batch" && !step.Started.IsZero() {
			return jobs.AppendSpan(b, max(r.Now-step.Started.Unix(), 0))
		}
		return jobs.AppendSpan(b, r.Elapsed())
	}
	return append(b, step.Nodes...)
}
