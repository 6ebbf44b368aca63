package state

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// SpecDelta is the part of a specification in which jobs differ that are otherwise alike. The
// rest is a SharedSpec: those jobs share it in memory, and the scheduling core sees no
// difference between them either. Names are a format on disk.
type SpecDelta struct {
	Name    string `json:"name,omitempty"`
	Comment string `json:"comment,omitempty"`

	Begin    time.Time       `json:"begin,omitzero"`
	Deadline time.Time       `json:"deadline,omitzero"`
	Held     bool            `json:"held,omitempty"`
	Nice     int64           `json:"nice,omitempty"`
	Priority int64           `json:"priority,omitempty"`
	Depends  *job.Dependency `json:"depends,omitempty"`
	Array    *job.ArraySpec  `json:"array,omitempty"`

	ScriptHash string   `json:"script_hash,omitempty"`
	ScriptName string   `json:"script_name,omitempty"`
	Args       []string `json:"args,omitempty"`
	EnvHash    string   `json:"env_hash,omitempty"`
	Export     string   `json:"export,omitempty"`
	Set        []string `json:"set,omitempty"`
	Stdout     string   `json:"stdout,omitempty"`
	Stderr     string   `json:"stderr,omitempty"`
	Stdin      string   `json:"stdin,omitempty"`
	WorkDir    string   `json:"work_dir,omitempty"`

	File       string            `json:"file,omitempty"`
	Host       string            `json:"host,omitempty"`
	Submit     string            `json:"submit,omitempty"`
	Lines      [2]int            `json:"lines,omitzero"`
	Given      map[string]string `json:"given,omitempty"`
	Mail       *job.Mail         `json:"mail,omitempty"`
	Notify     *job.Notify       `json:"notify,omitempty"`
	Provenance *job.Provenance   `json:"provenance,omitempty"`
	Part       *job.Part         `json:"part,omitempty"`
}

// SplitSpec splits a specification into the part that jobs may share and the delta. Both share
// memory with it.
func SplitSpec(s job.Spec) (job.Spec, SpecDelta) {
	o := SpecDelta{
		Name: s.Name, Comment: s.Comment, Begin: s.Begin, Deadline: s.Deadline, Held: s.Held,
		Nice: s.Nice, Priority: s.Priority, Array: s.Array,
		ScriptHash: s.Program.ScriptHash, ScriptName: s.Program.ScriptName, Args: s.Program.Args,
		EnvHash: s.Env.Hash, Export: s.Env.Export, Set: s.Env.Set,
		Stdout: s.Output.Stdout, Stderr: s.Output.Stderr, Stdin: s.Output.Stdin, WorkDir: s.WorkDir,
		File: s.Source.File, Host: s.Source.Host, Submit: s.Source.Submit, Lines: s.Source.Lines,
		Given: s.Source.Given, Mail: s.Mail, Notify: s.Notify, Provenance: s.Provenance, Part: s.Part,
	}
	if !s.Depends.IsZero() {
		depends := s.Depends
		o.Depends = &depends
	}
	bare := SpecDelta{}
	bare.applyTo(&s)
	return s, o
}

// applyTo writes the delta into a specification.
func (o *SpecDelta) applyTo(s *job.Spec) {
	s.Name, s.Comment, s.Begin, s.Deadline, s.Held = o.Name, o.Comment, o.Begin, o.Deadline, o.Held
	s.Nice, s.Priority, s.Array = o.Nice, o.Priority, o.Array
	s.Program.ScriptHash, s.Program.ScriptName, s.Program.Args = o.ScriptHash, o.ScriptName, o.Args
	s.Env.Hash, s.Env.Export, s.Env.Set = o.EnvHash, o.Export, o.Set
	s.Output.Stdout, s.Output.Stderr, s.Output.Stdin, s.WorkDir = o.Stdout, o.Stderr, o.Stdin, o.WorkDir
	s.Source.File, s.Source.Host, s.Source.Submit, s.Source.Lines = o.File, o.Host, o.Submit, o.Lines
	s.Source.Given, s.Mail, s.Notify, s.Provenance = o.Given, o.Mail, o.Notify, o.Provenance
	s.Depends, s.Part = o.dependencyOrZero(), o.Part
}

func (o *SpecDelta) dependencyOrZero() job.Dependency {
	if o.Depends == nil {
		return job.Dependency{}
	}
	return *o.Depends
}
