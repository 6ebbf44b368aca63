package sbatchargs

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// streamOptions are the options of a job's standard files.
func streamOptions(j *job.Job) []string {
	spec := j.Spec
	var out []string
	add := func(name, value string) { out = append(out, "--"+name+"="+value) }
	files := outputPatterns(j)
	add("output", files[0])
	if len(files) > 1 {
		add("error", files[1])
	} else if spec.Source.Given["error"] != "" { // the directive named the same file
		add("error", files[0])
	}
	if spec.Output.Append || j.Attempt > 1 {
		add("open-mode", "append")
	} else {
		add("open-mode", "truncate")
	}
	if in := spec.Output.Stdin; in != "" {
		add("input", forSlurm(in, patternNames(j)))
	}
	return out
}

// outputPatterns are the names of a job's output files as Slurm is told them, absolute.
func outputPatterns(j *job.Job) []string {
	spec := j.Spec
	n := patternNames(j)
	standard := "slurm-%j.out"
	if j.Array != nil {
		standard = "slurm-%A_%a.out"
	}
	name := func(pattern string) string {
		file := forSlurm(pattern, n)
		if !filepath.IsAbs(file) {
			file = filepath.Join(strings.ReplaceAll(spec.WorkDir, "%", "%%"), file)
		}
		return filepath.Clean(file)
	}
	out := []string{name(cmp.Or(spec.Output.Stdout, standard))}
	if spec.Output.Stderr != "" {
		if file := name(spec.Output.Stderr); file != out[0] {
			out = append(out, file)
		}
	}
	return out
}

// patternNames are what patterns stand for that are not Slurm's to say: the array, which only we
// know, and the user, who is the submitting one whoever hands the job over.
func patternNames(j *job.Job) slurmfmt.Names {
	spec := j.Spec
	n := slurmfmt.Names{
		Task: slurmfmt.NotArray, JobName: cmp.Or(spec.Name, spec.Program.ScriptName, "sbatch"), User: spec.Owner.User,
		Step: "batch", Restarts: max(int(j.Attempt)-1, 0),
	}
	if j.Array != nil {
		n.ArrayJob, n.Task = uint64(j.Array.Job), j.Array.Index
	}
	return n
}

// slurms are the letters of patterns that Slurm replaces: numbers and nodes are its own. %A is
// one of them outside an array.
const slurms = "jJNn"

// forSlurm is a pattern with all replaced that is not Slurm's to replace.
func forSlurm(pattern string, n slurmfmt.Names) string {
	escape := func(text string) string { return strings.ReplaceAll(text, "%", "%%") }
	if strings.Contains(pattern, `\`) { // no replacement at all
		return escape(slurmfmt.ExpandName(pattern, n))
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(pattern, "%")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		at := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if at < 0 {
			b.WriteString(escape("%" + rest))
			return b.String()
		}
		letter := rest[at]
		switch {
		case strings.IndexByte(slurms, letter) >= 0:
			b.WriteString("%" + rest[:at+1])
		case letter == 'A' && n.Task == slurmfmt.NotArray:
			b.WriteString("%" + rest[:at] + "j")
		case letter == 'u' && n.User == "":
			b.WriteString("%u")
		default:
			b.WriteString(escape(slurmfmt.ExpandName("%"+rest[:at+1], n)))
		}
		pattern = rest[at+1:]
	}
}

// OutputFiles are the output files of a job that has begun on nodes as Slurm's job id.
func OutputFiles(j *job.Job, id uint32, nodes []string) []string {
	n := patternNames(j)
	n.Job = uint64(id)
	if len(nodes) > 0 {
		n.Node, _, _ = strings.Cut(nodes[0], ".")
	}
	out := outputPatterns(j)
	for i := range out {
		out[i] = slurmfmt.ExpandName(out[i], n)
	}
	return out
}
