package sacct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/layout"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/stepusage"
)

// parseColumns reads the format: names with a width behind a percent sign, which is
// negative for values that stand left.
func (q *query) parseColumns() ([]field, error) {
	var out []field
	for _, part := range slurmcmd.Split(q.format) {
		name, size, sized := strings.Cut(part, "%")
		f, ok := findField(name)
		if !ok {
			return nil, slurmcmd.Textf("Invalid field requested: \"%s\"", name)
		}
		if sized {
			n, err := strconv.Atoi(size)
			if err != nil {
				return nil, slurmcmd.Textf("Invalid field width: \"%s\"", part)
			}
			f.width = n
		}
		out = append(out, f)
	}
	return out, nil
}

// printTable writes the table.
func (q *query) printTable(cols []field, list []jobs.Row) {
	separated := q.parsable || q.bar
	var format, head layout.Format
	for i, c := range cols {
		one := layout.Column{Field: i, Width: max(c.width, -c.width), Right: c.width >= 0, Mark: true, After: " "}
		title := one
		title.Mark = false
		if separated {
			one = layout.Column{Field: i, After: q.delimiter}
			if q.bar && i == len(cols)-1 {
				one.After = ""
			}
			title = one
		} else if strings.HasPrefix(c.name, "JobID") {
			one.Right, title.Right = false, false // the number stands left
		}
		format, head = append(format, one), append(head, title)
	}
	var b []byte
	if !q.noHeader {
		b = head.Append(b, func(b []byte, i int) []byte { return append(b, cols[i].name...) })
		if !separated {
			b = head.Append(b, func(b []byte, i int) []byte { return append(b, strings.Repeat("-", head[i].Width)...) })
		}
		q.Out.Write(b)
	}
	for _, r := range list {
		for _, l := range q.linesOf(r) {
			b = format.Append(b[:0], func(b []byte, i int) []byte {
				if l.step != nil && !cols[i].step {
					return b
				}
				return cols[i].text(b, l)
			})
			q.Out.Write(b)
		}
	}
}

// linesOf lists the lines of a job: its own and those of its steps, unless -j asks for steps of it
// alone.
func (q *query) linesOf(r jobs.Row) (lines []line) {
	whole, asked := q.asksFor(r)
	l := line{Row: r, units: q.units}
	if r.Part() <= 0 {
		l.steps = r.Steps()
	}
	if len(l.steps) == 0 && hasBatch(r) { // of an engine that does not name its tasks
		l.steps = []api.Step{{ID: "batch", Name: "batch"}}
	}
	if whole {
		lines = append(lines, l)
	}
	if q.alone {
		return lines
	}
	for i := range l.steps {
		l.step = &l.steps[i]
		if l.isBatch() && !hasBatch(r) {
			continue // the srun of a job that has no script
		}
		if whole || slices.Contains(asked, l.step.ID) {
			lines = append(lines, l)
		}
	}
	return lines
}

// asksFor reports whether -j asks for the whole of a job that it selects, or for which of its steps.
func (q *query) asksFor(r jobs.Row) (whole bool, steps []string) {
	if !slices.ContainsFunc(q.steps, func(step string) bool { return step != "" }) {
		return true, nil
	}
	name, number := string(r.AppendName(nil)), strconv.FormatInt(r.Int(column.ID), 10)
	named := false
	for i, id := range q.ids {
		if id != number && id != name && !strings.HasPrefix(name, id+"_") && !strings.HasPrefix(name, id+"+") {
			continue
		}
		named, whole = true, whole || q.steps[i] == ""
		steps = append(steps, q.steps[i])
	}
	return whole || !named, steps
}

// printNames lists the fields, four a line.
func (q *query) printNames() {
	n := 0
	put := func(name string) {
		fmt.Fprintf(q.Out, "%-19s", name)
		if n++; n%4 == 0 {
			q.Out.WriteByte('\n')
		} else {
			q.Out.WriteByte(' ')
		}
	}
	for _, f := range fields {
		put(f.name)
	}
	for _, f := range stepusage.Fields {
		put(f.Name)
	}
	for _, u := range unmeasured {
		put(u.name)
	}
	if n%4 != 0 {
		q.Out.WriteByte('\n')
	}
}
