package main

import (
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
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

// native reads YAML or JSON. Of options the arguments of the script are known to it.
func (r *reading) native(name string, data []byte) (*read, error) {
	if len(r.args) > 0 {
		return nil, notNative(name, r.args[0])
	}
	o := native.Options{Owner: owner(), Host: r.host, Dir: r.dir, ScriptArgs: r.scriptArgs}
	s, script, warnings, err := native.Parse(spec.Source{Name: name, Data: data}, o)
	return &read{s, script, warnings}, err
}

// readHere reads a submission as the server will. It returns the job, nil if there is
// something wrong with it, which the server says in its own words; and the files that
// options name (--nodefile, --export-file), which the server would not open.
func readHere(req *api.Submit) (*job.Spec, map[string]string) {
	files := map[string]string{}
	r := reading{args: req.Args, scriptArgs: req.ScriptArgs, environ: req.Environ, dir: req.Dir, host: req.Host}
	r.readFile = func(name string) ([]byte, error) {
		data, err := os.ReadFile(name)
		if err == nil {
			files[name] = string(data)
		}
		return data, err
	}
	var text *read
	var err error
	if req.Form == api.FormCommand {
		text, err = r.command(req.Command)
	} else {
		text, err = r.read(req.Form, req.File, []byte(req.Text))
	}
	if err != nil {
		return nil, files
	}
	return text.job, files
}
