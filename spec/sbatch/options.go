package sbatch

import (
	"errors"
	"slices"

	"github.com/coxswain-sched/coxswain/spec"
)

// ReadOptions reads options of sbatch that are given beside a text of another form: each with
// the value that holds, in the order of the table. The warnings name those without effect.
// The error is a *spec.Error: what is no option, what is refused, and what separates
// components of a heterogeneous job. Values are not checked.
func ReadOptions(args []string) ([]Directive, []spec.Warning, error) {
	p := &parser{script: &Script{}}
	components, problems := fromArgs(args)
	components[0] = append(components[0], p.reportProblems(problems)...)
	if len(components) > 1 {
		p.errs = append(p.errs, &spec.Error{
			File: commandLine, Message: ": separates components of a heterogeneous job", Remedy: "write the groups into the file",
		})
	}
	set := make(settings, slots)
	set.putAll(components[0])
	p.checkStatuses(set, false)
	var out []Directive
	for d := range set.allOptions() {
		if !d.Plugin && (d.opt.Status == NoEffect || d.opt.Command) {
			continue
		}
		out = append(out, *d)
	}
	return out, inOrder(p.warnings), spec.Join(p.errs)
}

// FindOption returns the option of the command line that gives one of some options, the first of
// the list that is given.
func FindOption(args []string, options ...string) (Directive, bool) {
	given, _, _ := ReadOptions(args)
	for _, name := range options {
		if i := slices.IndexFunc(given, func(d Directive) bool { return d.Option == name }); i >= 0 {
			return given[i], true
		}
	}
	return Directive{}, false
}

// Refuse is an error about the value of an option that was given, with its place. The reason
// completes a sentence that begins with the option.
func (d *Directive) Refuse(reason error, remedy string) *spec.Error {
	p := &parser{script: &Script{}}
	p.failOption(d, reason, remedy)
	return p.errs[0]
}

// Blame is an error about an option that was given, with its place, for what turns out about a
// job when its text has been read. The message follows the option and a colon.
func (d *Directive) Blame(message, remedy string) *spec.Error {
	e := d.Refuse(errors.New(message), remedy)
	e.Message = d.showOption() + ": " + message
	return e
}
