package sbatch

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
)

// Options say what stands around a script. The zero value is usable.
type Options struct {
	Args       []string // sbatch's own options from the command line; they outrank everything
	Environ    []string // NAME=VALUE; of it the SBATCH_* variables are read
	ScriptArgs []string // the script's arguments

	Owner job.Owner
	Host  string // where it is submitted
	Dir   string // directory it is submitted from, absolute

	Now          time.Time // for begin times; zero: time.Now()
	MaxArraySize uint32    // array indices stay below it; 0: slurmfmt.MaxArraySize
	Strict       bool      // refuse every option that sbatch does not have

	Mail bool // somebody sends mail; if not, --mail-type warns

	// ReadFile reads the files of --export-file and --nodefile. If nil they are
	// refused.
	ReadFile func(name string) ([]byte, error)
}

// Wrap returns the script that sbatch --wrap makes of a command.
func Wrap(command string) spec.Source {
	return spec.Source{Name: "wrap", Data: []byte("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + command + "\n")}
}

// Result is what a batch script and the options around it come to.
type Result struct {
	Job      *job.Spec // nil with an error
	Warnings []spec.Warning
	Command  CommandOptions // what is asked of the sbatch command itself
	Outside  bool           // options came from the command line or the environment
}

// Parse reads a batch script into a job. Warnings come in the order of lines and
// also with an error. The error is a *spec.Error, which holds all that was found.
func Parse(src spec.Source, opts Options) (*job.Spec, []spec.Warning, error) {
	r, err := ParseAll(src, opts)
	return r.Job, r.Warnings, err
}

// ParseAll is Parse for the sbatch command, which also has options of its own.
func ParseAll(src spec.Source, opts Options) (Result, error) {
	script, err := Read(src)
	if err != nil {
		return Result{}, err
	}
	return ParseScript(script, opts)
}

// ParseScript is ParseAll for a text that Read has taken apart. The script stays as it is and
// can be parsed again, with other options.
func ParseScript(script *Script, opts Options) (Result, error) {
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	opts.Now = opts.Now.Truncate(time.Second) // Slurm's times have no parts of seconds
	if opts.MaxArraySize == 0 {
		opts.MaxArraySize = slurmfmt.MaxArraySize
	}
	p := &parser{opts: opts, script: script, warnings: slices.Clone(script.Warnings)}
	s := p.parseScript()
	r := Result{Job: s, Warnings: inOrder(p.warnings), Command: p.command, Outside: p.outside}
	if err := spec.Join(p.errs); err != nil {
		r.Job = nil
		return r, err
	}
	return r, nil
}

// parser collects what is found while one script is turned into a job.
type parser struct {
	opts     Options
	script   *Script
	warnings []spec.Warning
	errs     []*spec.Error
	blanks   []int // lines with a blank behind =, which have an error already
	command  CommandOptions
	outside  bool // see Result
}

func (p *parser) parseScript() *job.Spec {
	command, problems := fromArgs(p.opts.Args)
	components := slices.Clone(p.script.Components)
	if n := max(len(components), len(command)); n > maxComponents {
		p.errs = append(p.errs, &spec.Error{
			File: p.script.Name, Message: fmt.Sprintf("the job has %d components", n), Remedy: fmt.Sprintf("a heterogeneous job may have %d", maxComponents),
		})
		components, command = components[:min(len(components), maxComponents)], command[:min(len(command), maxComponents)]
	}
	extra := p.reportProblems(p.script.Problems)
	components[0] = append(slices.Clip(components[0]), extra...)
	command[0] = append(command[0], p.reportProblems(problems)...)
	env, idle := fromEnvironment(p.opts.Environ)
	p.outside = len(p.opts.Args) > 0 || len(env) > 0
	p.idleVariables(idle)
	p.checkEach(components...)
	p.checkEach(env)
	p.checkEach(command...)
	all := p.layerSettings(components, env, command)
	p.judgeForeign(all[0].hasOption("ignore-pbs"))
	for i, set := range all {
		p.checkStatuses(set, i > 0)
	}
	whole := p.wholeJob(all)
	s := p.parseJob(whole)
	for i, set := range all {
		s.Groups = append(s.Groups, p.parseGroup(set))
		if i > 0 {
			p.compareComponent(i, whole, set)
		}
	}
	p.settleComponents(s, all)
	p.fitDeadline(s, whole)
	return s
}

// checkEach looks at every option as it was given, before later ones outrank it.
func (p *parser) checkEach(lists ...[]Directive) {
	for _, list := range lists {
		for i := range list {
			d := &list[i]
			p.command.noteOption(d)
			if d.name.file == environment {
				continue
			}
			p.warnLookalikes(d)
			if d.Option == "mail-type" {
				p.checkMail(d)
			}
		}
	}
}

// checkStatuses warns of options without effect and refuses what the table refuses.
// What a later component took over from the first was reported there.
func (p *parser) checkStatuses(set settings, later bool) {
	for d := range set.allOptions() {
		switch {
		case d.Plugin:
			if pl := pluginByName(d.Option); !pl.container || containeropt.Find(d.Option).Refused != "" {
				p.addWarning(d, pl.what)
			}
		case later && (d.Line == 0 || isPropagated(d.Option)):
		case !p.checkUnused(d):
		case d.opt.Status == OnSome:
			p.addWarning(d, "has its effect on "+d.opt.Engines+" alone: "+d.opt.Why)
		case d.opt.Status == NoEffect:
			p.addWarning(d, "has no effect here: "+d.opt.Why)
		case d.opt.Status == Refused:
			p.failOption(d, fmt.Errorf("is refused: %s", d.opt.Why), "take it out of the script")
		case d.opt.Note == onCommandLine && d.Line > 0:
			p.addWarning(d, "has no effect here: it belongs on the command line")
		}
	}
}

// form is the job.Source.Form of a batch script.
const form = "sbatch"

// parseJob fills what concerns the job as a whole.
func (p *parser) parseJob(set settings) *job.Spec {
	s := &job.Spec{
		Owner: p.opts.Owner, Account: set.optionValue("account"), QOS: set.optionValue("qos"), Comment: set.optionValue("comment"),
		Licenses: p.parseLicenses(set), Reservation: set.optionValue("reservation"),
		Program: job.Program{Kind: job.Batch, ScriptName: path.Base(p.script.Name), Args: p.opts.ScriptArgs},
		Source: job.Source{
			Form: form, File: p.script.Name, Given: make(map[string]string, set.optionCount()), Lines: p.script.Lines,
			Host: p.opts.Host, Submit: p.opts.Dir,
		},
	}
	if p.script.Name == "" || p.script.Name == "-" {
		s.Program.ScriptName = "sbatch"
	}
	for d := range set.allOptions() {
		s.Source.Given[d.Option] = d.Value
	}
	s.Name = s.Program.ScriptName
	if d, ok := set.get("job-name"); ok && d.Value != "" {
		s.Name = d.Value
	}
	if d, ok := set.get("partition"); ok {
		s.Partitions = p.splitCommas(d)
	}
	p.fillTimes(s, set)
	p.fillDependencies(s, set)
	p.fillMail(s, set)
	p.fillPriority(s, set)
	p.fillFiles(s, set)
	p.fillEnvironment(s, set)
	p.fillRequeue(s, set)
	p.fillContainer(s, set)
	if d, ok := set.get("array"); ok {
		s.Array = p.parseArray(d)
	}
	if d, ok := set.get("signal"); ok {
		sig, err := slurmfmt.ParseSignal(d.Value)
		if p.checkValue(d, err) {
			if sig.Reservation {
				p.addWarning(d, "has an R, which has no effect here: no reservation delays its start")
			}
			s.Signal = &job.SignalSpec{Signal: sig.Number, Before: sig.Before, BatchOnly: sig.BatchOnly}
		}
	}
	return s
}

// fillRequeue: a batch job may be requeued unless it says --no-requeue, as with Slurm's
// JobRequeue=1. A site that has it otherwise changes what Source.Given leaves open.
func (p *parser) fillRequeue(s *job.Spec, set settings) {
	s.Requeue = !set.hasOption("no-requeue")
	if d, ok := set.get("requeue"); ok && d.HasValue {
		p.addWarning(d, "is read as --requeue: a requeued job waits like any other")
	}
}

// fillPriority fills what decides the order of jobs.
func (p *parser) fillPriority(s *job.Spec, set settings) {
	_, s.Held = set.get("hold")
	if d, ok := set.get("nice"); ok {
		s.Nice = 100
		if d.HasValue {
			s.Nice = p.parseInteger(d, -maxNice, maxNice)
		}
	}
	if d, ok := set.get("priority"); ok {
		if strings.EqualFold(d.Value, "TOP") {
			p.addWarning(d, "has no effect here: it would reorder the jobs of their owner alone, which is not built yet")
			return
		}
		s.Priority = p.parseInteger(d, 0, 1<<32-2)
	}
}

// maxNice is Slurm's range of --nice.
const maxNice = 2147483645

// fileName returns the name of a file; "none" is the one that holds nothing.
func (s settings) fileName(option string) string {
	name := s.optionValue(option)
	if strings.EqualFold(name, "none") {
		return "/dev/null"
	}
	return name
}

func (p *parser) fillFiles(s *job.Spec, set settings) {
	s.WorkDir = p.opts.Dir
	if dir := set.optionValue("chdir"); dir != "" {
		if s.WorkDir = dir; !path.IsAbs(dir) {
			s.WorkDir = path.Join(p.opts.Dir, dir)
		}
	}
	s.Output = job.Output{Stdout: set.fileName("output"), Stderr: set.fileName("error"), Stdin: set.fileName("input")}
	if s.Output.Stdout == "" {
		s.Output.Stdout = defaultOutput(set.hasOption("array"))
	}
	if d, ok := set.get("open-mode"); ok {
		switch strings.ToLower(d.Value) {
		case "append", "a":
			s.Output.Append = true
		case "truncate", "t":
		default:
			p.failOption(d, fmt.Errorf("is neither append nor truncate"), "write --open-mode=append or =truncate")
		}
	}
}

// defaultOutput is where output goes if nothing is said.
func defaultOutput(array bool) string {
	if array {
		return "slurm-%A_%a.out"
	}
	return "slurm-%j.out"
}

func (p *parser) parseArray(d *Directive) *job.ArraySpec {
	a, err := slurmfmt.ParseArray(d.Value, p.opts.MaxArraySize)
	if err != nil {
		p.failOption(d, err, p.arrayRemedy(err))
		return nil
	}
	out := &job.ArraySpec{Text: d.Value, Indices: a.Indices(), MaxRunning: a.MaxRunning, Step: 1}
	if len(a.Ranges) == 1 {
		out.Step = a.Ranges[0].Step
	}
	return out
}

// arrayRemedy says what to do about an array that is too large or runs backwards.
func (p *parser) arrayRemedy(err error) string {
	var bad *slurmfmt.Error
	if !errors.As(err, &bad) {
		return ""
	}
	switch {
	case strings.Contains(bad.Reason, "MaxArraySize"):
		return fmt.Sprintf("submit several arrays with indices up to %d, or let each task do several of them in a loop", p.opts.MaxArraySize-1)
	case strings.Contains(bad.Reason, "indices"):
		return "forms: " + slurmfmt.ArrayForms
	case strings.Contains(bad.Reason, "backwards"):
		span, step, stepped := strings.Cut(bad.Text[bad.Offset:bad.Offset+bad.Len], ":")
		low, high, _ := strings.Cut(span, "-")
		if stepped {
			return "write " + high + "-" + low + ":" + step
		}
		return "write " + high + "-" + low
	}
	return ""
}
