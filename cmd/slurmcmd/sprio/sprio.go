package sprio

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/layout"
	"github.com/coxswain-sched/coxswain/model/getopt"
)

// Main is sprio with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	q := &query{Command: slurmcmd.Begin("sprio", stdio)}
	return q.Finish(q.run(args))
}

// query is what is asked for.
type query struct {
	*slurmcmd.Command
	ids, users, partitions []string
	format, sort           string
	long, norm, weights    bool
	noHeader, listLetters  bool
	help, usage, version   bool
}

// Options lists the options of sprio, for documents and tests.
func Options() []slurmcmd.Option { return (&query{Command: &slurmcmd.Command{}}).options() }

func (q *query) options() []slurmcmd.Option {
	return append(q.ClusterOptions(), []slurmcmd.Option{
		slurmcmd.Ignored("federation", 0, getopt.None),
		slurmcmd.Text("format", 'o', &q.format),
		slurmcmd.Autocomplete(),
		slurmcmd.Flag("help", 0, &q.help),
		slurmcmd.Flag("helpformat", 0, &q.listLetters),
		slurmcmd.Numbers("jobs", 'j', func(s string) error { q.ids = append(q.ids, slurmcmd.SplitFilter(s)...); return nil }, func() {}),
		slurmcmd.Ignored("local", 0, getopt.None),
		slurmcmd.Flag("long", 'l', &q.long),
		slurmcmd.Flag("noheader", 'h', &q.noHeader),
		slurmcmd.Flag("norm", 'n', &q.norm),
		slurmcmd.List("partition", 'p', &q.partitions),
		slurmcmd.Ignored("sibling", 0, getopt.None),
		slurmcmd.Alias("sib", "sibling"),
		slurmcmd.Text("sort", 'S', &q.sort),
		slurmcmd.Flag("usage", 0, &q.usage),
		slurmcmd.List("user", 'u', &q.users),
		slurmcmd.Alias("users", "user"),
		slurmcmd.Ignored("verbose", 'v', getopt.None),
		slurmcmd.Flag("version", 'V', &q.version),
		slurmcmd.Flag("weights", 'w', &q.weights),
	}...)
}

func (q *query) run(args []string) error {
	rest, err := slurmcmd.Parse(q.options(), args)
	switch {
	case err != nil:
		return err
	case q.Told(q.help, helpText, false), q.Told(q.usage, usageText, q.version):
		return nil
	case q.listLetters:
		var letters []string
		for _, f := range fields {
			letters = append(letters, "%"+string(f.letter))
		}
		slurmcmd.WriteColumns(q.Out, letters, 8, 6)
		return nil
	case len(rest) > 0:
		q.Errorf("Unrecognized option: %s", rest[0])
		q.Out.WriteString(usageText)
		q.Code = 1
		return nil
	}
	q.ChooseClustersFrom("SLURM_CLUSTERS")
	if _, err := q.CheckClusters(); err != nil {
		return err
	}
	c, err := q.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("GET", "/v1/priorities", nil)
	if err != nil {
		return err
	}
	weights := v.Get("weights")
	if len(weights.Names()) == 0 {
		return slurmcmd.Textf("the site's rules weigh nothing: jobs go by their own priority, then first come, first served")
	}
	return q.printTable(weights, v.Get("jobs").Items())
}

// factor is a part of a priority: its name in the API, the letters of its raw and its
// weighted value.
type factor struct {
	name           string
	norm, weighted byte
}

// factors are in the order in which sprio shows those that count.
var factors = []factor{
	{"age", 'a', 'A'}, {"association", 'b', 'B'}, {"fair_share", 'f', 'F'}, {"job_size", 'j', 'J'}, {"partition", 'p', 'P'}, {"qos", 'q', 'Q'},
}

// defaultFormat is the format that sprio has for itself.
func (q *query) defaultFormat(weights fastclient.Value) string {
	b := []byte("%.15i %9r")
	if q.long || len(q.users) > 0 {
		b = append(b, " %.8u"...)
	}
	if q.norm {
		b = append(b, " %10y"...)
	} else {
		b = append(b, " %.10Y %.10S"...)
	}
	for _, f := range factors {
		if weights.Get(f.name).Float() > 0 {
			if q.norm {
				b = append(b, " %10"...)
				b = append(b, f.norm)
				continue
			}
			b = append(b, " %.10"...)
			b = append(b, f.weighted)
		}
	}
	if q.long && !q.norm {
		b = append(b, " %.11N"...)
	}
	tres := slices.ContainsFunc(weights.Names(), func(n string) bool { return strings.HasPrefix(n, "tres/") })
	switch {
	case tres && q.norm:
		b = append(b, " %20t"...)
	case tres:
		b = append(b, " %.20T"...)
	}
	return string(b)
}

func (q *query) printTable(weights fastclient.Value, list []fastclient.Value) error {
	spec := q.format
	if spec == "" {
		spec = q.defaultFormat(weights)
	}
	f := layout.Letters(spec, findLetter, func(text string) { q.Errorf("Invalid job format specification: %s", text) })
	for k := range f {
		if f[k].Field < 0 && strings.HasPrefix(f[k].After, "%") {
			f[k].After = "" // it was reported
		}
	}
	chosen := q.chooseJobs(list)
	if len(chosen) == 0 && len(q.ids) > 0 {
		q.Out.WriteString("Unable to find jobs matching user/id(s) specified\n")
		return nil
	}
	var b []byte
	if !q.noHeader {
		q.Out.Write(f.Append(b, func(b []byte, i int) []byte { return append(b, fields[i].head...) }))
	}
	if err := q.sortJobs(chosen); err != nil {
		return err
	}
	if q.weights {
		b = f.Append(b, func(b []byte, i int) []byte { return append(b, fields[i].weight(weights)...) })
		chosen = nil
	}
	for _, j := range chosen {
		b = f.Append(b, func(b []byte, i int) []byte { return append(b, fields[i].text(j)...) })
	}
	q.Out.Write(b)
	return nil
}

// chooseJobs leaves out what is not asked about. The tasks of an array that wait are one
// line, as in Slurm: the one of them that goes first.
func (q *query) chooseJobs(list []fastclient.Value) (out []fastclient.Value) {
	for i, name := range q.users {
		if q.users[i] = slurmcmd.UserName(name); q.users[i] == name {
			if _, ok := slurmcmd.UserID(name); !ok && name != "" {
				q.Errorf("Invalid user: %s\n", name)
			}
		}
	}
	arrays := map[string]bool{}
	for _, v := range list {
		name, task, ofArray := strings.Cut(v.Get("job").Text(), "_")
		switch {
		case len(q.ids) > 0 && !slices.Contains(q.ids, name) && !(ofArray && slices.Contains(q.ids, name+"_"+task)),
			len(q.users) > 0 && !slices.Contains(q.users, v.Get("user").Text()),
			len(q.partitions) > 0 && !slices.Contains(q.partitions, v.Get("partition").Text()),
			arrays[name]:
			continue
		}
		arrays[name] = ofArray
		out = append(out, v)
	}
	return out
}

// sortJobs sorts by -S: letters of -o with a sign each, the job's number unless said.
func (q *query) sortJobs(list []fastclient.Value) error {
	spec := q.sort
	if spec == "" {
		spec = "i"
	}
	var by []func(a, b fastclient.Value) int
	for _, key := range slurmcmd.Split(spec) {
		down := key[0] == '-'
		letter := strings.TrimLeft(key, "+-")
		i, ok := 0, false
		if len(letter) == 1 {
			i, ok = findLetter(letter[0])
		}
		if !ok {
			return slurmcmd.Textf("Invalid sort specification: %s", q.sort)
		}
		f := fields[i].compare
		if down {
			f = func(a, b fastclient.Value) int { return fields[i].compare(b, a) }
		}
		by = append(by, f)
	}
	slices.SortStableFunc(list, func(a, b fastclient.Value) int {
		for _, f := range by {
			if n := f(a, b); n != 0 {
				return n
			}
		}
		return cmp.Compare(a.Get("id").Int(), b.Get("id").Int())
	})
	return nil
}
