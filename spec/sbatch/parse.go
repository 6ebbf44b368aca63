package sbatch

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/slurmfmt"
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

	// ReadFile reads the files of --export-file and --nodefile. If nil they are
	// refused.
	ReadFile func(name string) ([]byte, error)
}

// Wrap returns the script that sbatch --wrap makes of a command.
func Wrap(command string) spec.Source {
	return spec.Source{Name: "wrap", Data: []byte("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + command + "\n")}
}

// Parse reads a batch script into a job. Warnings come in the order of lines and
// also with an error. The error is a *spec.Error, which holds all that was found.
func Parse(src spec.Source, opts Options) (*job.Spec, []spec.Warning, error) {
	script, err := Read(src)
	if err != nil {
		return nil, nil, err
	}
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	if opts.MaxArraySize == 0 {
		opts.MaxArraySize = slurmfmt.MaxArraySize
	}
	p := &parser{opts: opts, script: script, warnings: script.Warnings}
	s := p.parse()
	warnings := inOrder(p.warnings)
	if err := spec.Join(p.errs); err != nil {
		return nil, warnings, err
	}
	return s, warnings, nil
}

// parser collects what is found while one script is turned into a job.
type parser struct {
	opts     Options
	script   *Script
	warnings []spec.Warning
	errs     []*spec.Error
	blanks   []int // lines with a blank behind =, which have an error already
}

func (p *parser) parse() *job.Spec {
	command, problems := fromArgs(p.opts.Args)
	components := p.script.Components
	extra := p.report(p.script.Problems)
	components[0] = append(components[0], extra...)
	command[0] = append(command[0], p.report(problems)...)
	for _, list := range append(append([][]Directive{}, components...), command...) {
		for _, d := range list {
			p.lookalikes(d)
		}
	}
	all := p.layer(components, fromEnvironment(p.opts.Environ), command)
	for i, set := range all {
		p.statuses(set, i > 0)
	}
	s := p.whole(all[0])
	for i, set := range all {
		s.Groups = append(s.Groups, p.group(set))
		if i > 0 {
			p.compare(i, all[0], set)
		}
	}
	p.later(s, all)
	return s
}

// statuses warns of options without effect and refuses what the table refuses.
// What a later component took over from the first was reported there.
func (p *parser) statuses(set settings, later bool) {
	for _, d := range set.ordered() {
		switch {
		case d.Plugin:
			p.warn(d, plugin(d.Option).what)
		case later && (d.Line == 0 || isPropagated(d.Option)):
		case d.opt.Status == NoEffect && !p.pointless(d):
			p.warn(d, "has no effect here: "+d.opt.Why)
		case d.opt.Status == Refused:
			p.fail(d, fmt.Errorf("is refused: %s", d.opt.Why), "take it out of the script")
		}
	}
}

// pointless reports whether a warning about an option without effect would tell
// nobody anything.
func (p *parser) pointless(d Directive) bool {
	switch {
	case d.Line == 0 && (d.opt.Why == forCommand || d.opt.Why == onCommandLine):
		return true
	case d.Option == "mail-type":
		return strings.EqualFold(d.Value, "NONE")
	}
	return false
}

// whole fills what concerns the job as a whole.
func (p *parser) whole(set settings) *job.Spec {
	s := &job.Spec{
		Owner: p.opts.Owner, Account: set.value("account"), QOS: set.value("qos"), Comment: set.value("comment"),
		Licenses: set.value("licenses"),
		Program:  job.Program{Kind: job.Batch, ScriptName: path.Base(p.script.Name), Args: p.opts.ScriptArgs},
		Source: job.Source{
			Form: "sbatch", File: p.script.Name, Given: map[string]string{}, Lines: p.script.Lines,
			Host: p.opts.Host, Submit: p.opts.Dir,
		},
	}
	if p.script.Name == "" || p.script.Name == "-" {
		s.Program.ScriptName = "sbatch"
	}
	for _, d := range set {
		s.Source.Given[d.Option] = d.Value
	}
	s.Name = s.Program.ScriptName
	if d, ok := set.get("job-name"); ok && d.Value != "" {
		s.Name = d.Value
	}
	if d, ok := set.get("partition"); ok {
		s.Partitions = p.list(d)
	}
	p.times(s, set)
	p.rank(s, set)
	p.files(s, set)
	p.environment(s, set)
	_, s.Requeue = set.get("requeue")
	if d, ok := set.get("array"); ok {
		s.Array = p.array(d)
	}
	if d, ok := set.get("signal"); ok {
		sig, err := slurmfmt.ParseSignal(d.Value)
		if p.check(d, err) {
			s.Signal = &job.SignalSpec{Signal: sig.Number, Before: sig.Before, BatchOnly: sig.BatchOnly}
		}
	}
	return s
}

func (p *parser) times(s *job.Spec, set settings) {
	limit := func(name string) time.Duration {
		d, ok := set.get(name)
		if !ok {
			return 0
		}
		t, err := slurmfmt.ParseTimeLimit(d.Value)
		p.check(d, err)
		return t
	}
	s.TimeLimit, s.TimeMin = limit("time"), limit("time-min")
	if d, ok := set.get("time-min"); ok && s.TimeMin > s.TimeLimit && s.TimeLimit > 0 {
		p.fail(d, fmt.Errorf("is longer than the time limit, %s", slurmfmt.FormatTimeLimit(s.TimeLimit)), "")
	}
	if d, ok := set.get("begin"); ok {
		t, err := slurmfmt.ParseWhen(d.Value, p.opts.Now)
		if p.check(d, err) {
			s.Begin = t
		}
	}
	if d, ok := set.get("deadline"); ok {
		_, err := slurmfmt.ParseWhen(d.Value, p.opts.Now)
		p.check(d, err)
	}
}

// rank fills what decides the order of jobs.
func (p *parser) rank(s *job.Spec, set settings) {
	_, s.Held = set.get("hold")
	if d, ok := set.get("nice"); ok {
		s.Nice = 100
		if d.HasValue {
			s.Nice = p.integer(d, -maxNice, maxNice)
		}
	}
	if d, ok := set.get("priority"); ok {
		if strings.EqualFold(d.Value, "TOP") {
			p.warn(d, "has no effect here: it would reorder the jobs of their owner alone, which is not built yet")
			return
		}
		s.Priority = p.integer(d, 0, 1<<32-2)
	}
}

// maxNice is Slurm's range of --nice.
const maxNice = 2147483645

// file returns the name of a file; "none" is the one that holds nothing.
func (s settings) file(option string) string {
	name := s.value(option)
	if strings.EqualFold(name, "none") {
		return "/dev/null"
	}
	return name
}

func (p *parser) files(s *job.Spec, set settings) {
	s.WorkDir = p.opts.Dir
	if dir := set.value("chdir"); dir != "" {
		if s.WorkDir = dir; !path.IsAbs(dir) {
			s.WorkDir = path.Join(p.opts.Dir, dir)
		}
	}
	s.Output = job.Output{Stdout: set.file("output"), Stderr: set.file("error"), Stdin: set.file("input")}
	if s.Output.Stdout == "" {
		s.Output.Stdout = "slurm-%j.out"
		if _, array := set.get("array"); array {
			s.Output.Stdout = "slurm-%A_%a.out"
		}
	}
	if d, ok := set.get("open-mode"); ok {
		switch strings.ToLower(d.Value) {
		case "append", "a":
			s.Output.Append = true
		case "truncate", "t":
		default:
			p.fail(d, fmt.Errorf("is neither append nor truncate"), "")
		}
	}
}

func (p *parser) array(d Directive) *job.ArraySpec {
	a, err := slurmfmt.ParseArray(d.Value, p.opts.MaxArraySize)
	if !p.check(d, err) {
		return nil
	}
	out := &job.ArraySpec{Text: d.Value, Indices: a.Indices(), MaxRunning: a.MaxRunning, Step: 1}
	if len(a.Ranges) == 1 {
		out.Step = a.Ranges[0].Step
	}
	return out
}

// compare warns where a later component of a heterogeneous job says something
// that holds for the job as a whole.
func (p *parser) compare(i int, first, set settings) {
	for _, d := range set.ordered() {
		if d.Line == 0 || !isPropagated(d.Option) && d.Option != "partition" || ofGroup(d.Option) {
			continue
		}
		if old, ok := first[slot(d.Option)]; ok && old.Option == d.Option && old.Value == d.Value {
			continue
		}
		if d.Plugin || d.opt.Status != Honoured || d.Option == "time" {
			continue
		}
		p.warn(d, fmt.Sprintf("of component %d is not used: the first component's holds for the whole job", i))
	}
}

// later settles what all components decide together.
func (p *parser) later(s *job.Spec, all []settings) {
	for i, set := range all[1:] {
		d, ok := set.get("time")
		if !ok {
			continue
		}
		t, err := slurmfmt.ParseTimeLimit(d.Value)
		if err == nil && s.TimeLimit > 0 && (t > s.TimeLimit || t == 0) {
			p.warn(d, fmt.Sprintf("of component %d holds for the whole job: it is the longest", i+1))
			s.TimeLimit = t
		}
		p.check(d, err)
	}
	if d, ok := all[0].get("array"); ok && len(all) > 1 {
		p.fail(d, fmt.Errorf("cannot be combined with components (#SBATCH hetjob)"), "submit one heterogeneous job for each index")
	}
}
