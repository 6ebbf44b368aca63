package slurmtest

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// verdict says why a script is refused; the zero value is that it is accepted.
type verdict struct {
	kind string // "unknown option", "value", "stray word", …
	what string // the option, without dashes, or the word; empty if it is the script as a whole
}

func (v verdict) String() string {
	if v == (verdict{}) {
		return "accepted"
	}
	return strings.TrimSpace(v.kind + " " + v.what)
}

// related are the options that a message of sbatch about one of them may mean.
var related = map[string][]string{
	"gres": {"gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "ntasks-per-gpu", "cpus-per-gpu", "mem-per-gpu"},
	"mem":  {"mem-per-cpu", "mem-per-gpu"}, "nodelist": {"exclude"}, "nodes": {"nodelist"}, "time-min": {"deadline"},
}

// agree reports whether one of our refusals is for sbatch's reason.
func agree(real verdict, ours []verdict) bool {
	return slices.ContainsFunc(ours, func(v verdict) bool {
		return v == real || v.kind == "value" && real.kind == "value" && slices.Contains(related[real.what], v.what)
	})
}

// complaints are the messages of sbatch, what they mean, and the option that they
// are about where the message does not name it.
var complaints = []struct {
	text   *regexp.Regexp
	kind   string
	option string
}{
	{regexp.MustCompile(`DOS line breaks`), "DOS line ends", ""},
	{regexp.MustCompile(`does not look like a batch script`), "no shebang", ""},
	{regexp.MustCompile("Unmatched `"), "unmatched quote", ""},
	{regexp.MustCompile("Unexpected `:`"), "unexpected colon", ""},
	{regexp.MustCompile(`unrecognized option '--([^'=]*)`), "unknown option", ""},
	{regexp.MustCompile(`invalid option -- '(.)'`), "unknown option", ""},
	{regexp.MustCompile(`option '--([^'=]*)[^']*' is ambiguous`), "ambiguous option", ""},
	{regexp.MustCompile(`option '--([^']*)' requires an argument`), "missing argument", ""},
	{regexp.MustCompile(`option requires an argument -- '(.)'`), "missing argument", ""},
	{regexp.MustCompile(`option '--([^']*)' doesn't allow an argument`), "unwanted argument", ""},
	{regexp.MustCompile(`Invalid directive found in batch script: (.*)`), "stray word", ""},
	{regexp.MustCompile(`is not a valid node count|invalid number of nodes|Maximum node count`), "value", "nodes"},
	{regexp.MustCompile(`Invalid generic resource \(gres\)|Invalid Trackable RESource`), "value", "gres"},
	{regexp.MustCompile(`Invalid time-min`), "value", "time-min"},
	{regexp.MustCompile(`--mem, --mem-per-cpu, and|SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU`), "value", "mem"},
	{regexp.MustCompile(`Requested time limit is invalid|Incompatible begin and deadline`), "value", "deadline"},
	{regexp.MustCompile(`_parse_single_range|Invalid node name`), "value", "nodelist"},
	{regexp.MustCompile(`Invalid feature`), "value", "constraint"},
	{regexp.MustCompile(`Invalid job array`), "value", "array"},
	{regexp.MustCompile(`Job dependency problem|Requested operation not supported`), "value", "dependency"},
	{regexp.MustCompile(`Priority must be`), "value", "priority"},
	{regexp.MustCompile(`user environment file`), "value", "export-file"},
	{regexp.MustCompile(`Arbitrary distribution`), "value", "distribution"},
	{regexp.MustCompile(`Invalid license`), "value", "licenses"},
	{regexp.MustCompile(`arg of -B`), "value", "extra-node-info"},
	{regexp.MustCompile(`(?i)invalid partition`), "value", "partition"},
	{regexp.MustCompile(`can't be reached now`), "value", "clusters"},
	{regexp.MustCompile(`reservation is invalid`), "value", "reservation"},
	{regexp.MustCompile(`node configuration is not available`), "does not fit", ""},
	{regexp.MustCompile(`--([a-z][a-z-]+)`), "value", ""},
}

// complaint reads what sbatch said.
func complaint(t *testing.T, r result) verdict {
	t.Helper()
	if r.code == 0 {
		return verdict{}
	}
	for _, c := range complaints {
		m := c.text.FindStringSubmatch(strings.ReplaceAll(r.stderr, "Try \"sbatch --help\"", ""))
		switch {
		case m == nil:
		case c.kind == "stray word":
			return verdict{c.kind, m[1]}
		case len(m) > 1:
			return verdict{c.kind, long(m[1])}
		default:
			return verdict{c.kind, c.option}
		}
	}
	t.Logf("a message of sbatch that this test does not know: %s", r.stderr)
	return verdict{"other", strings.TrimSpace(r.stderr)}
}

// long returns an option's long name; other words stay as they are.
func long(name string) string {
	for _, o := range sbatch.Table() {
		if len(name) == 1 && o.Short == name[0] {
			return o.Name
		}
		if o.Name == name && o.Same != "" {
			return o.Same
		}
	}
	return name
}

// parse reads a script as Coxswain does, and says all that it is refused for.
// Strict asks for sbatch's own answer to options that it does not have.
func (l *lab) parse(text string, strict bool) (*job.Spec, []verdict) {
	return l.parseWith(text, strict, nil, nil)
}

// parseWith is parse with variables and arguments.
func (l *lab) parseWith(text string, strict bool, vars, args []string) (*job.Spec, []verdict) {
	src := spec.Source{Name: "job.sbatch", Data: []byte(text)}
	opts := sbatch.Options{Args: args, Environ: vars, Dir: l.dir, Strict: strict, MaxArraySize: maxArray, Now: time.Now().UTC()}
	var refusals []verdict
	script, err := sbatch.Read(src)
	if err == nil && strict {
		for _, p := range script.Problems {
			refusals = append(refusals, problem(p))
		}
	}
	s, _, err := sbatch.Parse(src, opts)
	var e *spec.Error
	if !errors.As(err, &e) {
		return s, refusals
	}
	for _, e := range append([]*spec.Error{e}, e.Others...) {
		if v := refusal(e); v.kind != "" {
			refusals = append(refusals, v)
		}
	}
	if len(refusals) == 0 {
		refusals = []verdict{{"other", err.Error()}}
	}
	return nil, refusals
}

func problem(p sbatch.Problem) verdict {
	name, _, _ := strings.Cut(p.Text, "=")
	switch p.Kind {
	case sbatch.UnmatchedQuote, sbatch.UnexpectedColon:
		return verdict{string(p.Kind), ""}
	case sbatch.StrayWord:
		return verdict{string(p.Kind), p.Text}
	}
	return verdict{string(p.Kind), long(strings.TrimLeft(name, "-"))}
}

var (
	about    = regexp.MustCompile(`^--([a-z0-9-]+)`)
	variable = regexp.MustCompile(`^SBATCH_([A-Z_]+)=`)
)

// refusal classifies a message about a value or about the whole script; that of a
// Problem says nothing new.
func refusal(e *spec.Error) verdict {
	switch m := about.FindStringSubmatch(e.Message); {
	case strings.Contains(e.Message, "DOS line ends"):
		return verdict{"DOS line ends", ""}
	case strings.Contains(e.Message, "does not look like a batch script"):
		return verdict{"no shebang", ""}
	case m != nil:
		return verdict{"value", m[1]}
	}
	if m := variable.FindStringSubmatch(e.Message); m != nil {
		name := strings.ToLower(strings.ReplaceAll(m[1], "_", "-"))
		return verdict{"value", cmp.Or(map[string]string{"timelimit": "time", "mem-per-node": "mem"}[name], name)}
	}
	return verdict{}
}
