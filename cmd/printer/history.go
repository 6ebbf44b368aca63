package printer

import (
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// History is the table of jobs of the past, newest first.
func History(p Page, jobs []api.Job, wide bool) *Table {
	t := &Table{Columns: []Column{
		{Title: "JOB"},
		{Title: "NAME", Least: 8},
		{Title: "USER", Least: 6},
		{Title: "STATE"},
		{Title: "EXIT"},
		{Title: "ENDED"},
		{Title: "RAN", Right: true},
		{Title: "WAITED", Right: true},
		{Title: "NODES", Right: true},
		{Title: "GPU-HOURS", Right: true},
		{Title: "CPU", Right: true, Spare: 2},
		{Title: "MEMORY", Right: true, Spare: 3},
		{Title: "GPU", Right: true, Spare: 1},
	}}
	rows := make([]QueueRow, len(jobs))
	for i := range jobs {
		rows[i] = QueueRowOf(&jobs[i])
	}
	several := ofPools(rows)
	if several {
		t.Columns = append(t.Columns, Column{Title: "POOL"})
	}
	if wide {
		t.Columns = append(t.Columns, Column{Title: "ACCOUNT"}, Column{Title: "SUBMITTED"}, Column{Title: "STARTED"},
			Column{Title: "ATTEMPT", Right: true}, Column{Title: "WHERE", Least: 12}, Column{Title: "FAILURE"}, Column{Title: "MESSAGE", Least: 12})
	}
	for i := range jobs {
		t.Rows = append(t.Rows, historyCells(p, &jobs[i], &rows[i], wide, several))
	}
	return t
}

func historyCells(p Page, j *api.Job, r *QueueRow, wide, several bool) []Cell {
	ran, waited := "", ""
	if !r.Started.IsZero() {
		ran, waited = Elapsed(r.timeSpent(p.Now)), Elapsed(r.Started.Sub(r.Submitted))
	}
	exit := ""
	if !j.Ended.IsZero() && !j.Started.IsZero() {
		exit = strconv.Itoa(j.Exit.Shell())
	}
	cpu, memory, gpu := usageShares(j, p.Now)
	cells := []Cell{
		{Text: j.Name, Tone: Accent},
		textCell(r.JobName), textCell(r.User),
		{Text: j.State, Tone: StateTone(j.State)},
		textCell(exit),
		textCell(p.Time(j.Ended)), textCell(ran), textCell(waited), textCell(strconv.Itoa(r.Nodes)), textCell(gpuHours(r, p.Now)),
		textCell(cpu), textCell(memory), textCell(gpu),
	}
	if several {
		cells = append(cells, textCell(r.Pool))
	}
	if wide {
		cells = append(cells, textCell(r.Account), textCell(p.Time(j.Submitted)), textCell(p.Time(j.Started)),
			textCell(strconv.Itoa(int(j.Attempt))), textCell(r.NodeList), textCell(j.Failure), textCell(j.Message))
	}
	return cells
}

// gpuHours is what a job took of GPUs in its last attempt.
func gpuHours(r *QueueRow, now time.Time) string {
	if r.GPUs == 0 || r.Started.IsZero() {
		return ""
	}
	return strconv.FormatFloat(r.GPUs*r.timeSpent(now).Hours(), 'f', 2, 64)
}
