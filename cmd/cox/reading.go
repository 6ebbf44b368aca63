package main

import (
	"path/filepath"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// reading is what stands around a text that is read here instead of by a server.
type reading struct {
	args, scriptArgs, environ []string
	dir, host                 string
	strict                    bool
	readFile                  func(string) ([]byte, error)
}

// read is a text as it was understood.
type read struct {
	job      *job.Spec
	script   []byte
	warnings []spec.Warning
}

// read reads a text in one of the forms of a submission.
func (r *reading) read(form, name string, data []byte) (*read, error) {
	if form == api.FormNative {
		return r.native(name, data)
	}
	s, warnings, err := sbatch.Parse(spec.Source{Name: name, Data: data}, r.options())
	return &read{s, data, warnings}, err
}

func (r *reading) options() sbatch.Options {
	return sbatch.Options{
		Args: r.args, ScriptArgs: r.scriptArgs, Environ: r.environ, Owner: owner(), Dir: r.dir, Host: r.host, Strict: r.strict, ReadFile: r.readFile,
	}
}

// command makes the job of a command that every task runs: the options of sbatch
// give its shape.
func (r *reading) command(words []string) (*read, error) {
	s, warnings, err := sbatch.Parse(spec.Source{Name: filepath.Base(words[0]), Data: []byte("#!/bin/sh\n")}, r.options())
	if err != nil {
		return nil, err
	}
	s.Program = job.Program{Kind: job.Direct, Args: words}
	s.Source.Form, s.Source.File, s.KillOnBadExit = "command", "", true
	return &read{job: s, warnings: warnings}, nil
}

// native reads YAML or JSON.
func (r *reading) native(name string, _ []byte) (*read, error) {
	return nil, fault.New(fault.Unsupported, "%s: reading the native form here is not built yet", name)
}
