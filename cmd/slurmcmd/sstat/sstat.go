// Package sstat is Slurm's sstat: what the steps of running jobs have used so far. The server asks
// the engine of the job's pool, which measures it now or gives an answer that is a few seconds old.
// What Slurm measures and Coxswain does not (virtual memory, pages, energy) is empty.
package sstat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/layout"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/stepusage"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

const usageText = `Usage: sstat [-a] [-e] [-j jobs] [-n] [--noconvert] [-o fields] [-P | -p]
`

const formatDefault = "jobid,alloctres,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,maxpages," +
	"maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,avecpufreq,reqcpufreqmin,reqcpufreqmax," +
	"reqcpufreqgov,consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode," +
	"maxdiskwritetask,avediskwrite,tresusageinave,tresusageinmax,tresusageinmaxn,tresusageinmaxt,tresusageinmin," +
	"tresusageinminn,tresusageinmint,tresusageintot,tresusageoutave,tresusageoutmax,tresusageoutmaxn,tresusageoutmaxt," +
	"tresusageoutmin,tresusageoutminn,tresusageoutmint,tresusageouttot"

// Main is sstat with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	q := &query{Command: slurmcmd.Begin("sstat", stdio)}
	return q.Finish(q.run(args))
}

// query is what is asked for.
type query struct {
	*slurmcmd.Command
	ids                      []string
	format                   string
	all, noHeader, list      bool
	parsable, bar            bool // bar: no delimiter at the end of a line
	help, usage, showVersion bool
	units                    stepusage.Units
}

// Options lists the options of sstat, for documents and tests.
func Options() []slurmcmd.Option { return (&query{Command: &slurmcmd.Command{}}).options() }

func (q *query) options() []slurmcmd.Option {
	return []slurmcmd.Option{
		slurmcmd.Flag("allsteps", 'a', &q.all),
		slurmcmd.Autocomplete(),
		slurmcmd.Alias("fields", "format"),
		{Long: "format", Short: 'o', Arg: getopt.Required, Do: func(s string) error { q.format = strings.TrimPrefix(q.format+","+s, ","); return nil }},
		slurmcmd.Flag("help", 'h', &q.help),
		slurmcmd.Flag("helpformat", 'e', &q.list),
		slurmcmd.Filter("jobs", 'j', func(s string) error { q.ids = append(q.ids, slurmcmd.Split(s)...); return nil }),
		slurmcmd.Flag("noconvert", 0, &q.units.Raw),
		slurmcmd.Flag("noheader", 'n', &q.noHeader),
		slurmcmd.Flag("parsable", 'p', &q.parsable),
		slurmcmd.Flag("parsable2", 'P', &q.bar),
		slurmcmd.Refused("pidformat", 'i', getopt.None, "processes are listed on the node: cox exec JOB -- ps"),
		slurmcmd.Flag("usage", 0, &q.usage),
		slurmcmd.Ignored("verbose", 'v', getopt.None),
		slurmcmd.Flag("version", 'V', &q.showVersion),
	}
}

func (q *query) run(args []string) error {
	rest, err := slurmcmd.Parse(q.options(), args)
	switch {
	case err != nil:
		return err
	case q.Told(q.help || q.usage, usageText, q.showVersion):
		return nil
	case q.list:
		var names []string
		for _, f := range fields {
			names = append(names, f.name)
		}
		slurmcmd.WriteColumns(q.Out, names, 19, 4)
		return nil
	}
	if q.ids = append(q.ids, rest...); len(q.ids) == 0 {
		return slurmcmd.Textf("You didn't give me any jobs to stat.")
	}
	cols, err := q.parseColumns()
	if err != nil {
		return err
	}
	return q.printSteps(cols)
}

// line is one step of a job.
type line struct {
	job  string
	step *api.Step
}

// printSteps asks for the jobs and prints their steps.
func (q *query) printSteps(cols []field) error {
	c, err := q.Client()
	if err != nil {
		return err
	}
	format := q.printHeader(cols)
	var b []byte
	for _, text := range q.ids {
		id, err := slurmfmt.ParseJobID(text)
		if err != nil {
			return slurmcmd.Textf("Invalid job id specified: %s", text)
		}
		name, _, _ := strings.Cut(text, ".")
		u, err := stepusage.Ask(c, name)
		if fault.KindOf(err) == fault.NotFound {
			err = slurmcmd.Textf("No steps running for JobId=%s", name)
		}
		if err != nil {
			return err
		}
		steps := q.chooseSteps(u.Steps, id.Step)
		if len(steps) == 0 {
			q.Errorf("No steps running for JobId=%s", text)
			q.Code = 1
			continue
		}
		for i := range steps {
			l := line{job: name, step: &steps[i]}
			b = format.Append(b[:0], func(b []byte, k int) []byte { return cols[k].text(b, l, q.units) })
			q.Out.Write(b)
		}
	}
	return nil
}

// chooseSteps are the running steps that are asked for: one by its name, all, or the one with the
// lowest number, and the batch script where no other runs.
func (q *query) chooseSteps(all []api.Step, named string) (out []api.Step) {
	for i := range all {
		if s := &all[i]; s.State == job.Running.String() && (named == "" || s.ID == named) {
			out = append(out, *s)
		}
	}
	if named != "" || q.all || len(out) < 2 {
		return out
	}
	for i := range out {
		if _, err := strconv.Atoi(out[i].ID); err == nil {
			return out[i : i+1]
		}
	}
	return out[:1]
}

// printHeader writes the titles and returns the format of lines.
func (q *query) printHeader(cols []field) layout.Format {
	separated := q.parsable || q.bar
	var format, head layout.Format
	for i, c := range cols {
		one := layout.Column{Field: i, Width: max(c.width, -c.width), Right: c.width >= 0, Mark: true, After: " "}
		title := one
		title.Mark = false
		if separated {
			one = layout.Column{Field: i, After: "|"}
			if q.bar && i == len(cols)-1 {
				one.After = ""
			}
			title = one
		}
		format, head = append(format, one), append(head, title)
	}
	if q.noHeader {
		return format
	}
	q.Out.Write(head.Append(nil, func(b []byte, i int) []byte { return append(b, cols[i].name...) }))
	if !separated {
		q.Out.Write(head.Append(nil, func(b []byte, i int) []byte { return append(b, strings.Repeat("-", head[i].Width)...) }))
	}
	return format
}

// parseColumns reads the format: names with a width behind a percent sign.
func (q *query) parseColumns() ([]field, error) {
	text := q.format
	if text == "" {
		text = formatDefault
	}
	var out []field
	for _, part := range slurmcmd.Split(text) {
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

// field is a column of sstat; a negative width stands left.
type field struct {
	name  string
	width int
	text  func(b []byte, l line, u stepusage.Units) []byte
}

// fields are the columns in the order of --helpformat.
var fields = makeFields()

func makeFields() []field {
	empty := func(b []byte, _ line, _ stepusage.Units) []byte { return b }
	out := []field{
		{"AllocTRES", 10, func(b []byte, l line, _ stepusage.Units) []byte {
			return fmt.Appendf(b, "cpu=%d,node=%d", max(l.step.CPUs, 1), max(l.step.Count, 1))
		}},
		{"JobID", -12, func(b []byte, l line, _ stepusage.Units) []byte {
			return append(append(append(b, l.job...), '.'), l.step.ID...)
		}},
		{"Nodelist", 20, func(b []byte, l line, _ stepusage.Units) []byte { return append(b, l.step.Nodes...) }},
		{"NTasks", 8, func(b []byte, l line, _ stepusage.Units) []byte { return strconv.AppendInt(b, int64(l.step.Tasks), 10) }},
	}
	for _, f := range stepusage.Fields {
		out = append(out, field{f.Name, f.Width, func(b []byte, l line, u stepusage.Units) []byte { return f.Text(b, l.step, u) }})
	}
	for name, width := range map[string]int{
		"AveCPUFreq": 10, "AvePages": 10, "AveVMSize": 10, "ConsumedEnergy": 14, "ConsumedEnergyRaw": 17, "MaxPages": 8, "MaxPagesNode": 12,
		"MaxPagesTask": 14, "MaxVMSize": 10, "MaxVMSizeNode": 14, "MaxVMSizeTask": 14, "Pids": 20, "ReqCPUFreq": 10, "ReqCPUFreqMin": 13,
		"ReqCPUFreqMax": 13, "ReqCPUFreqGov": 13, "TRESUsageOutMin": 15, "TRESUsageOutMinNode": 19, "TRESUsageOutMinTask": 19,
	} {
		out = append(out, field{name, width, empty})
	}
	slices.SortFunc(out, func(a, b field) int { return strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name)) })
	return out
}

// findField finds a field by a name that may be shortened.
func findField(name string) (field, bool) {
	name = strings.ToLower(name)
	var near *field
	for i := range fields {
		f := strings.ToLower(fields[i].name)
		if f == name {
			return fields[i], true
		}
		if near == nil && name != "" && strings.HasPrefix(f, name) {
			near = &fields[i]
		}
	}
	if near == nil {
		return field{}, false
	}
	return *near, true
}
