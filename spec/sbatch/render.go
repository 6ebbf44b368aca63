package sbatch

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
)

// Render writes a job as a batch script: its directives, and below them the script
// without the directives that it had. A job whose tasks run a command gets a script
// that starts them with srun.
//
// The script is read again, and where sbatch would understand something else than
// the job says, a Warning names it: what comes without a warning is what Parse makes
// of it again. Times are written in the zone of Begin, or else of Deadline.
func Render(s *job.Spec, script []byte) ([]byte, []spec.Warning) {
	r := &renderer{spec: s}
	r.writeJob()
	for i, g := range s.Groups {
		if i > 0 {
			r.lines = append(r.lines, magic+" hetjob")
		}
		r.writeGroup(g, i)
	}
	shebang, body := r.splitProgram(script)
	var b bytes.Buffer
	b.WriteString(shebang + "\n")
	for _, line := range r.lines {
		b.WriteString(line + "\n")
	}
	b.Write(body)
	r.compareReread(b.Bytes())
	return b.Bytes(), r.warnings
}

// renderer collects the directives of one job.
type renderer struct {
	spec     *job.Spec
	lines    []string
	warnings []spec.Warning
}

func (r *renderer) addWarning(option, message string, args ...any) {
	r.warnings = append(r.warnings, spec.Warning{File: r.spec.Source.File, Option: option, Message: fmt.Sprintf(message, args...)})
}

// writeFlag writes an option without a value.
func (r *renderer) writeFlag(name string, on bool) {
	if on {
		r.lines = append(r.lines, magic+" --"+name)
	}
}

// writeOption writes an option with a value, unless that is empty.
func (r *renderer) writeOption(name, value string) {
	if value == "" {
		return
	}
	if strings.ContainsAny(value, "\n\r\x00") {
		r.addWarning("--"+name, "cannot be said: its value has a line end in it")
		return
	}
	if plainEnd(value, 0) != len(value) {
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	r.lines = append(r.lines, magic+" --"+name+"="+value)
}

// writeNumber writes an option with a number other than zero.
func (r *renderer) writeNumber(name string, n int64) {
	if n != 0 {
		r.writeOption(name, strconv.FormatInt(n, 10))
	}
}

// writeRequeue writes whether the job may be requeued, unless a script left it to the default.
func (r *renderer) writeRequeue() {
	_, given := r.spec.Source.Given["requeue"]
	r.writeFlag("requeue", r.spec.Requeue && (given || r.spec.Source.Form != form))
	r.writeFlag("no-requeue", !r.spec.Requeue)
}

// writeJob writes what concerns the job as a whole.
func (r *renderer) writeJob() {
	s := r.spec
	r.writeOption("job-name", s.Name)
	r.writeOption("account", s.Account)
	r.writeOption("qos", s.QOS)
	r.writeOption("partition", strings.Join(s.Partitions, ","))
	if s.Pool != "" {
		r.addWarning("pool", "sbatch has no pools: name it where the script is submitted (cox submit --pool %s)", s.Pool)
	}
	r.writeOption("reservation", s.Reservation)
	r.writeOption("licenses", s.Licenses)
	r.writeOption("comment", s.Comment)
	r.writeTimes()
	r.writeFlag("hold", s.Held)
	r.writeNumber("nice", s.Nice)
	r.writeNumber("priority", s.Priority)
	r.writeRequeue()
	r.writeDependencies()
	if a := s.Array; a != nil {
		r.writeOption("array", arrayText(a))
	}
	r.writeFiles()
	r.writeOption("export", s.Env.Export)
	if len(s.Env.Set) > 0 && s.Program.Kind != job.Direct { // whose script sets them
		r.addWarning("--export-file", "is left out: %s that it sets cannot stand in a script", pluralOf(len(s.Env.Set), "variable"))
	}
	if s.Signal != nil {
		r.writeOption("signal", signalText(s.Signal))
	}
	if s.Mail != nil {
		r.writeOption("mail-type", strings.Join(s.Mail.Types, ","))
		r.writeOption("mail-user", s.Mail.To)
	}
	r.withoutEffect()
	if s.Image != "" {
		for _, word := range containeropt.Words(s.Image, s.Container) {
			name, value, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
			r.writeOption(name, value)
			r.writeFlag(name, value == "")
		}
		r.addWarning("--container-image", "is an option of the pyxis plugin: a site without it refuses the script")
	}
}

// withoutEffect repeats what a batch script asked for in vain here: elsewhere it may
// have its effect.
func (r *renderer) withoutEffect() {
	if r.spec.Source.Form != form {
		return
	}
	for i := range table {
		value, given := r.spec.Source.Given[table[i].Name]
		if !given || table[i].Command || table[i].Status != NoEffect && table[i].Name != "sockets-per-node" {
			continue
		}
		if value == "" {
			r.writeFlag(table[i].Name, table[i].Arg != getopt.Required)
		} else {
			r.writeOption(table[i].Name, value)
		}
	}
}

func (r *renderer) writeTimes() {
	s := r.spec
	if s.TimeLimit > 0 {
		r.writeOption("time", slurmfmt.FormatTimeLimit(s.TimeLimit))
	}
	if s.TimeMin > 0 {
		r.writeOption("time-min", slurmfmt.FormatTimeLimit(s.TimeMin))
	}
	if !s.Begin.IsZero() {
		r.writeOption("begin", formatClock(s.Begin))
	}
	if !s.Deadline.IsZero() {
		r.writeOption("deadline", formatClock(s.Deadline.In(r.timeZone())))
	}
}

// timeZone is that in which times are written.
func (r *renderer) timeZone() *time.Location {
	if !r.spec.Begin.IsZero() {
		return r.spec.Begin.Location()
	}
	return r.spec.Deadline.Location()
}

func (r *renderer) writeDependencies() {
	d := r.spec.Depends
	if d.IsZero() {
		return
	}
	r.writeOption("dependency", d.String())
	if d.KillIfNever != nil {
		r.writeOption("kill-on-invalid-dep", map[bool]string{true: "yes", false: "no"}[*d.KillIfNever])
	}
}

// arrayText spells an array out, as it was written where that is known.
func arrayText(a *job.ArraySpec) string {
	if p, err := slurmfmt.ParseArray(a.Text, slurmfmt.MaxArraySize); err == nil && p.MaxRunning == a.MaxRunning && slices.Equal(p.Indices(), a.Indices) {
		return a.Text
	}
	text := slurmfmt.FormatArrayIndices(a.Indices)
	if a.MaxRunning > 0 {
		text += fmt.Sprintf("%%%d", a.MaxRunning)
	}
	return text
}

func (r *renderer) writeFiles() {
	s := r.spec
	if s.WorkDir != s.Source.Submit {
		r.writeOption("chdir", s.WorkDir)
	}
	if s.Output.Stdout != defaultOutput(s.Array != nil) {
		r.writeOption("output", s.Output.Stdout)
	}
	r.writeOption("error", s.Output.Stderr)
	r.writeOption("input", s.Output.Stdin)
	if s.Output.Append {
		r.writeOption("open-mode", "append")
	}
}

// signalNames are the signals that are written by name.
var signalNames = []string{"HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "ALRM", "TERM", "CHLD", "CONT", "STOP", "TSTP", "URG", "XCPU", "WINCH"}

func signalText(s *job.SignalSpec) string {
	text := strconv.Itoa(s.Signal)
	for _, name := range signalNames {
		if n, err := slurmfmt.ParseSignalName(name); err == nil && n == s.Signal {
			text = name
		}
	}
	text = fmt.Sprintf("%s@%d", text, int(s.Before.Seconds()))
	if s.BatchOnly {
		text = "B:" + text
	}
	return text
}

// splitProgram returns the first line of the script and what stands below the directives.
func (r *renderer) splitProgram(script []byte) (shebang string, body []byte) {
	p := r.spec.Program
	shebang = "#!/bin/sh"
	switch {
	case p.Kind == job.Direct:
		line := "srun"
		if r.spec.KillOnBadExit {
			line += " --kill-on-bad-exit=1"
		}
		for _, a := range p.Args {
			line += " " + shellWord(a)
		}
		var exports strings.Builder
		for _, set := range r.spec.Env.Set {
			name, value, _ := strings.Cut(set, "=")
			fmt.Fprintf(&exports, "\nexport %s=%s", name, shellWord(value))
		}
		return shebang, []byte(exports.String() + "\n" + line + "\n")
	case p.Kind == job.BareAllocation:
		r.addWarning("", "it is an allocation, in which nothing runs: salloc with these options makes one")
		return shebang, nil
	case len(p.Args) > 0:
		r.addWarning("", "the script's arguments stand on sbatch's command line, behind the file: %s", oneLine(shellWords(p.Args)))
	}
	if len(script) == 0 {
		r.addWarning("", "the text of the script is not known")
		return shebang, nil
	}
	header := headerOf(script)
	for i, line := range bytes.SplitAfter(script[:header], []byte("\n")) {
		switch {
		case i == 0 && bytes.HasPrefix(line, []byte("#!")):
			shebang = string(bytes.TrimRight(line, "\n"))
		case !bytes.HasPrefix(line, []byte(magic)):
			body = append(body, line...)
		}
	}
	return shebang, append(body, script[header:]...)
}

// shellWord quotes one word for sh.
func shellWord(s string) string {
	plain := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-./=:,+@%", c) >= 0
	}
	for i := range len(s) {
		if !plain(s[i]) {
			return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	return cmp.Or(s, "''")
}

func shellWords(list []string) string {
	var out []string
	for _, s := range list {
		out = append(out, shellWord(s))
	}
	return strings.Join(out, " ")
}

// oneLine shortens a text for a message.
func oneLine(s string) string {
	s = strings.ReplaceAll(s, "\n", " ")
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}
