package sbatchargs

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// Options by who says them.
var (
	// ours are about when and how often a job begins, or about the sbatch command: Coxswain
	// has seen to these, and no option takes all of them back. nodefile too: sbatch would read
	// the file where it runs, with the rights of whoever runs it.
	ours = []string{"array", "begin", "clusters", "cluster", "deadline", "dependency", "hold", "kill-on-invalid-dep", "nodefile", "parsable", "priority", "test-only", "wait"}
	// always are said for every job, as the job has them by now.
	always = []string{
		"account", "chdir", "comment", "error", "export", "export-file", "get-user-env", "input", "job-name", "nice", "no-requeue", "open-mode", "output",
		"partition", "qos", "requeue", "reservation", "signal", "time",
	}
	// amounts are what a job asks for, of which pins say something else.
	amounts = []string{
		"constraint", "contiguous", "cpus-per-gpu", "cpus-per-task", "exclude", "exclusive", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres",
		"mem", "mem-per-cpu", "mem-per-gpu", "mincpus", "nodefile", "nodelist", "nodes", "ntasks", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket", "ntasks-per-core",
		"overcommit", "oversubscribe", "prefer", "segment", "sockets-per-node", "cores-per-socket", "threads-per-core", "spread-job", "switches", "tmp",
		"tres-per-task", "use-min-nodes",
	}
)

// keepScript takes a batch script over as it is. Directives that must not count become comments:
// those of ours, those that were outranked when the job was submitted or have changed since,
// and where pins say what the job gets, its amounts. What else stands on such a line, and
// what was given beside the script, is said in options.
func (w *Job) keepScript(s *job.Spec, text []byte, pins bool) {
	w.Script = text
	read, err := sbatch.Read(spec.Source{Name: s.Source.File, Data: text})
	if err != nil {
		return // no batch script: sbatch says why, and better
	}
	given := s.Source.Given
	changed := changedOptions(s, pins)
	why := func(name string) string {
		_, other := changed[name]
		switch {
		case name == "nodefile":
			return "Slurm would read the file where sbatch runs; --nodelist says the nodes"
		case slices.Contains(ours, name):
			return "Coxswain sees to it, and hands the job over when its time has come"
		case pins && slices.Contains(amounts, name):
			return "options say what it gets on the nodes that Coxswain chooses"
		case other:
			return "it has changed since, and an option says it"
		}
		return ""
	}
	silent := func(name string) bool { return why(name) != "" }
	drop := map[int]bool{}
	stay := map[string]string{}
	each := func(f func(*sbatch.Directive)) {
		for _, component := range read.Components {
			for i := range component {
				f(&component[i])
			}
		}
	}
	each(func(d *sbatch.Directive) {
		_, known := given[d.Option] // it does not stand where another one has outranked it, as --mem has --mem-per-cpu
		outranked := len(given) > 0 && !known && !slices.Contains(always, d.Option)
		if d.Plugin || !silent(d.Option) && !outranked {
			return
		}
		drop[d.Line] = true
		w.Notes = append(w.Notes, explainCommented(s.Source.File, d.Line, d.Option, cmp.Or(why(d.Option), "it was outranked at the submission")))
	})
	each(func(d *sbatch.Directive) {
		switch {
		case !drop[d.Line] && d.Option == "mail-type" && stay[d.Option] != "": // all of them count
			stay[d.Option] += "," + d.Value
		case !drop[d.Line]:
			stay[d.Option] = d.Value
		case d.Plugin:
			w.Options = append(w.Options, formatOption(d.Option, d.Value, d.HasValue))
		}
	})
	w.Script = commentOutLines(text, drop, len(read.Components) > 1 && pins)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value, there := stay[name]
		if there && value == given[name] || silent(name) || slices.Contains(always, name) || name == "wrap" {
			continue
		}
		w.Options = append(w.Options, formatOption(name, given[name], given[name] != ""))
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if changed[name] != "" {
			w.Options = append(w.Options, "--"+name+"="+changed[name])
		}
	}
	if _, there := stay["container-image"]; s.Image != "" && !there && !slices.ContainsFunc(w.Options, func(o string) bool { return strings.HasPrefix(o, "--container-image=") }) {
		w.Options = append(w.Options, "--container-image="+s.Image)
	}
}

// changeable are options whose field of a job that waits may be changed (cox update).
var changeable = []string{"nodes", "nodelist", "exclude", "constraint", "time-min"}

// changedOptions are the changeable options that a job has by now other than it was given them;
// empty: it has none any more.
func changedOptions(s *job.Spec, pins bool) map[string]string {
	if pins || len(s.Groups) != 1 {
		return nil
	}
	was, ok := asGiven(s)
	if !ok || len(was.Groups) != 1 {
		was = &job.Spec{Groups: make([]job.TaskGroup, 1)}
	}
	g, h := &s.Groups[0], &was.Groups[0]
	out := map[string]string{}
	say := func(name string, same bool, value string) {
		if !same {
			out[name] = value
		}
	}
	say("nodes", g.Nodes == h.Nodes, nodesText(g.Nodes))
	say("nodelist", slices.Equal(g.NodeList, h.NodeList), hostlist.CompressInOrder(g.NodeList))
	say("exclude", slices.Equal(g.Exclude, h.Exclude), hostlist.CompressInOrder(g.Exclude))
	say("constraint", g.Constraint.Text == h.Constraint.Text && g.Constraint.IsZero() == h.Constraint.IsZero(), constraintText(&g.Constraint))
	limit := ""
	if s.TimeMin > 0 {
		limit = slurmfmt.FormatTimeLimit(ceilMinutes(s.TimeMin))
	}
	say("time-min", s.TimeMin == was.TimeMin, limit)
	return out
}

// nodesText is a range as a value of --nodes.
func nodesText(r job.Range) string {
	switch {
	case r == job.Range{}:
		return ""
	case r.Max == 0:
		return fmt.Sprintf("%d-%d", r.Min, max(r.Min, mostNodes))
	case r.Max == r.Min:
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}

// mostNodes is more than any cluster has.
const mostNodes = 65000

// constraintText is a constraint as it was written, or as its alternatives are.
func constraintText(c *job.Constraint) string {
	if c.Text != "" || c.IsZero() {
		return c.Text
	}
	var parts []string
	for _, a := range c.Alternatives {
		parts = append(parts, strings.Join(a, "&"))
	}
	if c.Same {
		return "[" + strings.Join(parts, "|") + "]"
	}
	return strings.Join(parts, "|")
}

// asGiven is a job as its options made it. false: they are not enough to know.
func asGiven(s *job.Spec) (*job.Spec, bool) {
	var b bytes.Buffer
	b.WriteString("#!/bin/sh\n")
	for _, name := range changeable {
		if value, given := s.Source.Given[name]; given {
			b.WriteString(directiveLine(name, value))
		}
	}
	for _, name := range amounts {
		if value, given := s.Source.Given[name]; given && !slices.Contains(changeable, name) {
			b.WriteString(directiveLine(name, value))
		}
	}
	return parses.parseOption(b.String(), s.WorkDir)
}

// parses has what options make of a job: those that are handed over together mostly ask for
// the same. Nobody writes to what it returns.
var parses parsedOption

type parsedOption struct {
	mu  sync.Mutex
	all map[string]*job.Spec // by directory and text; nil: it cannot be read
}

// mostParses is how many are kept.
const mostParses = 64

func (p *parsedOption) parseOption(text, dir string) (*job.Spec, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := dir + "\n" + text
	was, known := p.all[key]
	if !known {
		var err error
		was, _, err = sbatch.Parse(spec.Source{Name: "given", Data: []byte(text)}, sbatch.Options{Dir: dir, Mail: true})
		if err != nil {
			was = nil
		}
		if p.all == nil || len(p.all) >= mostParses {
			p.all = map[string]*job.Spec{}
		}
		p.all[key] = was
	}
	return was, was != nil
}

var quotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ")

// directiveLine is an option as a line of a script.
func directiveLine(name, value string) string {
	if value == "" {
		return "#SBATCH --" + name + "\n"
	}
	return "#SBATCH --" + name + `="` + quotes.Replace(value) + "\"\n"
}

// commentOutLines returns a script some of whose lines are comments, and with components, those that
// part them.
func commentOutLines(text []byte, lines map[int]bool, components bool) []byte {
	if len(lines) == 0 && !components {
		return text
	}
	var b bytes.Buffer
	number := 0
	for line := range bytes.Lines(text) {
		number++
		f := bytes.Fields(line)
		parts := components && len(f) == 2 && string(f[0]) == "#SBATCH" && (string(f[1]) == "hetjob" || string(f[1]) == "packjob")
		if lines[number] || parts {
			b.WriteByte('#')
		}
		b.Write(line)
	}
	return b.Bytes()
}

// explainCommented says why a directive of a batch script becomes a comment.
func explainCommented(file string, line int, option, why string) string {
	return fmt.Sprintf("%s:%d: --%s is a comment now: %s", path.Base(file), line, option, why)
}
