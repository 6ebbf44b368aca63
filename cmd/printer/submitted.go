package printer

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Estimate says when and where a job would start, for cox submit --test-only.
func Estimate(p Page, s *api.Submitted) string {
	c := card{p: p}
	name := s.Name
	if name == "" {
		name = "it"
	}
	e := s.Estimate
	switch {
	case e == nil:
		c.head("%s would be accepted", name)
		return c.b.String()
	case e.Start.IsZero():
		c.head("%s would be accepted; when it would start is not known", name)
	case e.Start.Sub(p.Now) <= 0:
		c.head("%s would start now on %s", name, Hosts(e.Nodes))
	default:
		c.head("%s would start by %s, in %s, on %s", name, p.Time(e.Start), Duration(e.Start.Sub(p.Now)), Hosts(e.Nodes))
	}
	for _, r := range e.Reasons {
		c.fact("why", r.String())
	}
	c.fact("nothing", "was submitted")
	return c.b.String()
}

// Chosen says which pool a job goes to that named none, and why:
//
//	pool     slurm-b, the first that can run it
//	         not local: needs 4 nodes, only 2 qualify
func Chosen(p Page, pool string, c *job.Choice) string {
	if c == nil {
		return ""
	}
	b := card{p: p}
	b.fact("pool", pool+", "+c.Why)
	b.poolWaits(pool, c)
	return b.b.String()
}

// poolWaits says of a choice when the other pools would have started the job, and which could not.
func (c *card) poolWaits(pool string, choice *job.Choice) {
	for _, w := range choice.Waits {
		if w.Pool == pool {
			c.fact("", "expected to start "+w.Text())
		} else {
			c.fact("", "in "+w.Pool+": "+w.Text())
		}
	}
	for _, x := range choice.Passed {
		c.fact("", "not "+x.Pool+": "+x.Why)
	}
}

// Asked is one line about what a file asks for, and where it says so:
// "train.sbatch: 2 nodes × 4 gpu, 10 min    from #SBATCH lines 2–5".
func Asked(s *job.Spec, file string) string {
	if file == "" || file == "-" {
		file = s.Name
	}
	line := file + ": " + Ask(s)
	switch from, to := s.Source.Lines[0], s.Source.Lines[1]; {
	case s.Source.Form != "sbatch":
	case from > 0 && from == to:
		line += fmt.Sprintf("    from #SBATCH line %d", from)
	case from > 0:
		line += fmt.Sprintf("    from #SBATCH lines %d–%d", from, to)
	}
	return Clean(line)
}

// DryRun says what a specification that was read here would ask for.
func DryRun(p Page, s *job.Spec, file string) string {
	c := card{p: p}
	c.head("%s", Asked(s, file))
	c.fact("name", s.Name)
	c.fact("of", strings.Join(joinPresent("account", s.Account, "qos", s.QOS, "partition", strings.Join(s.Partitions, ",")), ", "))
	c.fact("output", s.Output.Stdout)
	printSource(&c, s)
	c.fact("nothing", "was submitted: --dry-run")
	return c.b.String()
}

// Preview says what a job would be handed over as: what is changed and why, the options one a
// line, and the script as it is.
func Preview(p Page, v *api.Preview) string {
	c := card{p: p}
	c.head("to pool %s, as sbatch has it", v.Pool)
	for _, n := range v.Notes {
		c.fact("note", n)
	}
	if len(v.Args) > 0 {
		c.fact("args", strings.Join(v.Args, " "))
	}
	for i, opts := range v.Options {
		label := "option"
		if len(v.Options) > 1 {
			label = fmt.Sprintf("group %d", i)
		}
		for _, o := range opts {
			c.fact(label, o)
		}
	}
	c.fact("script", fmt.Sprintf("%d lines", strings.Count(v.Script, "\n")))
	for line := range strings.Lines(v.Script) {
		c.line("  " + Clean(strings.TrimSuffix(line, "\n")))
	}
	return c.b.String()
}

// joinPresent joins names with their values where there is one.
func joinPresent(pairs ...string) []string {
	var out []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, pairs[i]+" "+pairs[i+1])
		}
	}
	return out
}

// Waits is one line about a job that waits: "job 7 train waits: needs 8 GPUs, free now: 2".
func Waits(p Page, j *api.Job, why string) string {
	return Clean(subjectOf(j)+" waits: "+p.localizeTimes(why)) + p.Paint(Dim, "          cox why "+j.Name)
}

// Started is one line about a job that has started: where it runs, and where its output is.
func Started(_ Page, j *api.Job) string {
	line := subjectOf(j) + " runs"
	if nodes, _, _, _ := sumClaims(j.Claims); len(nodes) > 0 {
		line += " on " + Hosts(nodes)
	}
	if len(j.Files) > 0 {
		line += ", output in " + strings.Join(j.Files, ", ")
	}
	return Clean(line)
}

func subjectOf(j *api.Job) string {
	if j.Spec == nil || j.Spec.Name == "" {
		return "job " + j.Name
	}
	return "job " + j.Name + " " + j.Spec.Name
}

// Ended says in one line how a job ended: "job 7 FAILED after 41 s, exit 1: rank 5 …".
func Ended(p Page, j *api.Job) string {
	line := "job " + j.Name + " " + p.Paint(StateTone(j.State), j.State)
	if !j.Started.IsZero() {
		line += " after " + Duration(j.Ended.Sub(j.Started)) + ", waited " + Duration(j.Started.Sub(j.Submitted))
	}
	if j.State == "COMPLETED" {
		return line
	}
	if !j.Exit.OK() {
		line += ", " + j.Exit.String()
	}
	if j.Message != "" {
		line += ": " + Clean(j.Message)
	}
	return line
}
