package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

func (s *Server) registerSubmit() {
	type in struct{}
	add(s, apiRoute{
		method: http.MethodPost, path: "/v1/jobs", verb: auth.Submit, id: "submit", tag: "jobs", status: http.StatusCreated,
		summary: "Submit a job or an array", body: typeOf[api.Submit](),
		example: &api.Submit{
			Form: api.FormSbatch, File: "train.sbatch", Text: "#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=8\nsrun python train.py\n",
			Args: []string{"--time=4:00:00"}, Environ: []string{"HOME=/home/anna"}, Dir: "/home/anna/run",
		},
		about: "The answer comes when the job is durable. With test_only nothing is kept. Problems in the text come with file, line and column.",
	}, func(c *call, _ *in) (*api.Submitted, error) { return s.submit(c) })
}

// parsed is a text that was read, with what the job keeps beside its spec.
type parsed struct {
	spec     *job.Spec
	script   []byte
	env      []string
	warnings []api.Warning
	command  sbatch.CommandOptions
}

// errAnswered is not an error: the answer is written.
var errAnswered = errors.New("answered")

func (s *Server) submit(c *call) (*api.Submitted, error) {
	req, err := readSubmission(c.body)
	if err != nil {
		return nil, err
	}
	p, err := s.parse(c.ctx(), c.id, req)
	if err != nil {
		return nil, err
	}
	out := &api.Submitted{Name: p.spec.Name, Warnings: p.warnings, Wait: p.command.Wait, Parsable: p.command.Parsable, Quiet: p.command.Quiet}
	if out.Chosen = p.spec.Chosen; out.Chosen != nil {
		out.Pool = cmp.Or(p.spec.Pool, s.first())
	}
	if req.TestOnly || req.Preview || p.command.TestOnly {
		return s.estimated(c, req, p, out)
	}
	got, err := s.cfg.Plane.Submit(c.ctx(), control.Submission{Spec: p.spec, Script: p.script, Env: p.env, By: c.id.Actor()})
	if err != nil {
		return nil, s.placed(req, p, err)
	}
	out.ID, out.Tasks = got.ID, got.Tasks
	if out.Chosen == nil && len(p.warnings) == 0 && !out.Wait && !out.Parsable && !out.Quiet { // the hot path: no reflection
		c.write(http.StatusCreated, "application/json", appendSubmitted(nil, out))
		return nil, errAnswered
	}
	return out, nil
}

// estimated says when and where a job would start, and keeps nothing.
func (s *Server) estimated(c *call, req *submission, p *parsed, out *api.Submitted) (*api.Submitted, error) {
	out.TestOnly = true
	e, err := s.cfg.Plane.Estimate(c.ctx(), control.Submission{Spec: p.spec, Script: p.script, Env: p.env, By: c.id.Actor(), Preview: req.Preview})
	if err != nil {
		return nil, s.placed(req, p, err)
	}
	out.Estimate = &api.Estimate{Start: e.Start, Nodes: e.Nodes, CPUs: asked(p.spec).cpus, Reasons: e.Reasons}
	if v := e.Preview; v != nil {
		out.Preview = &api.Preview{Pool: p.spec.Pool, Script: string(v.Script), Args: v.Args, Options: v.Options, Notes: v.Notes}
	}
	return out, nil
}

// appendSubmitted writes the answer to a submission without warnings.
func appendSubmitted(b []byte, v *api.Submitted) []byte {
	b = strconv.AppendUint(append(b, `{"id":`...), uint64(v.ID), 10)
	if v.Tasks > 0 {
		b = strconv.AppendInt(append(b, `,"tasks":`...), int64(v.Tasks), 10)
	}
	if v.Name != "" {
		name, _ := json.Marshal(v.Name) // a string
		b = append(append(b, `,"name":`...), name...)
	}
	return append(b, "}\n"...)
}

// podsPer has a job have a pod of each node or task, as its submission says; empty: it says nothing.
func podsPer(s *job.Spec, of string) error {
	one := job.Pod{}
	if s.Pod != nil {
		one = *s.Pod
	}
	switch of {
	case "":
		return nil
	case "task", "node":
		one.PerTask = of == "task"
		if s.Pod = &one; reflect.DeepEqual(one, job.Pod{}) {
			s.Pod = nil
		}
		return nil
	}
	return fault.New(fault.Invalid, "pods: %.70q is neither node nor task", of).Advise("write task for a pod of each task, or leave it out")
}

// startsAs reports whether the server can start jobs as the caller.
func (s *Server) startsAs(id auth.Identity) error {
	if !s.cfg.Alone || id.UID == s.self.UID {
		return nil
	}
	return fault.New(fault.Permission, "this server runs as %s and can start nothing as %s", s.self.Name, id.Name).
		Advise("a server that root started runs jobs as their owners; or start your own: cox up")
}

// parse reads the text of a request in its form, as its owner's.
func (s *Server) parse(ctx ctxt, id auth.Identity, req *submission) (*parsed, error) {
	if err := s.startsAs(id); err != nil {
		return nil, err
	}
	if !path.IsAbs(req.Dir) {
		return nil, fault.New(fault.Invalid, "dir: %q is not an absolute path", req.Dir).Advise("send the submitter's working directory")
	}
	owner := job.Owner{User: id.Name, UID: id.UID, GID: id.GID}
	if u := s.cfg.Users.ByUID(id.UID); u.Known && id.Via == "token" {
		owner.GID = u.GID // a token may be older than a change of group
	}
	p, err := s.read(owner, req)
	if err != nil {
		return nil, err
	}
	p.spec.Pool = cmp.Or(req.Pool, p.spec.Pool)
	if err := podsPer(p.spec, req.Pods); err != nil {
		return nil, err
	}
	delete(p.spec.Source.Given, "wrap") // it is the script, which is not for everybody as options are
	p.spec.Provenance = req.Provenance
	if err := s.laden(p.spec, req); err != nil {
		return nil, err
	}
	p.umask(req.Umask)
	s.filter(p)
	if err := checkSize(p.spec); err != nil {
		return nil, err
	}
	rules, err := s.rules(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.settle(ctx, req, p, rules); err != nil {
		return nil, err
	}
	if text := rules.Broken(p.spec); text != "" {
		p.warnings = append(p.warnings, api.Warning{Option: "--requeue", Message: text})
	}
	if err := id.MayCharge(p.spec.Account); err != nil {
		return nil, err
	}
	if (p.spec.Priority > 0 || p.spec.Nice < 0) && !id.Admin {
		return nil, fault.New(fault.Permission, "%s may not set a priority of its own or a negative nice value", id.Name).
			Advise("leave --priority out, give --nice a positive value, or ask an administrator")
	}
	return p, nil
}

// nodesNow lists the nodes as they are described now.
func (s *Server) nodesNow(ctx context.Context) ([]fleet.Node, error) {
	views, err := s.cfg.Plane.NodeViews(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]fleet.Node, len(views))
	for i := range views {
		out[i] = views[i].Node
	}
	return out, nil
}

// umask puts the submitter's mask of file modes where sbatch puts it, and the engine
// looks for it.
func (p *parsed) umask(mask *uint32) {
	const name = "SLURM_UMASK="
	if mask == nil {
		return
	}
	env := make([]string, 0, len(p.env)+1)
	for _, kv := range p.env {
		if !strings.HasPrefix(kv, name) {
			env = append(env, kv)
		}
	}
	p.env = append(env, fmt.Sprintf(name+"%04o", *mask&0o777))
}

// Bounds of what a job says of itself. Scripts and environments are kept apart and are
// not in it.
const (
	mostName  = 1 << 10   // bytes of a name or comment
	mostText  = 256 << 10 // of the whole specification
	mostOfAll = 64 << 20  // of the tasks of an array together
)

// checkSize refuses a specification that would fill memory and journal for everybody.
func checkSize(s *job.Spec) error {
	for what, text := range map[string]string{"--job-name": s.Name, "--comment": s.Comment} {
		if len(text) > mostName {
			return fault.New(fault.Invalid, "%s: %d bytes are more than the %d that it may have", what, len(text), mostName).
				Advise("put what is long into a file")
		}
	}
	text := len(s.WorkDir) + len(s.Output.Stdout) + len(s.Output.Stderr) + len(s.Output.Stdin) + len(s.Env.Export) + len(s.Depends.Text) + len(s.Licenses)
	for _, list := range [][]string{s.Program.Args, s.Env.Set, s.Partitions} {
		for _, t := range list {
			text += len(t)
		}
	}
	for k, v := range s.Source.Given {
		text += len(k) + len(v)
	}
	for i := range s.Groups {
		for _, list := range [][]string{s.Groups[i].NodeList, s.Groups[i].Exclude} {
			for _, t := range list {
				text += len(t) + 16 // of a slice's element
			}
		}
	}
	if p := s.Pod; p != nil {
		for _, m := range []map[string]string{p.Labels, p.Annotations, p.NodeSelector} {
			for k, v := range m {
				text += len(k) + len(v)
			}
		}
		for _, t := range append([]string{p.ServiceAccount, p.RuntimeClass, p.PriorityClass}, p.Tolerations...) {
			text += len(t)
		}
	}
	if u := s.Upload; u != nil {
		text += len(u.Digest) + len(u.Dir)
	}
	if s.Provenance != nil {
		text += len(s.Provenance.Notes)*64 + len(s.Provenance.Files)*128
		for _, t := range s.Provenance.Notes {
			text += len(t)
		}
	}
	if text > mostText {
		return fault.New(fault.Invalid, "options and arguments have %d KiB together, more than the %d KiB that a job may have", text>>10, mostText>>10).
			Advise("let the script read its arguments from a file; variables go by the environment")
	}
	if a := s.Array; a != nil && text*len(a.Indices) > mostOfAll {
		return fault.New(fault.Invalid, "options and arguments of %d bytes for each of %d tasks are more than an array may have (%d MiB)", text, len(a.Indices), mostOfAll>>20).
			Advise("let the script read its arguments from a file")
	}
	return nil
}

// filter leaves out the variables that the site does not keep, and notes which.
func (s *Server) filter(p *parsed) {
	var dropped []string
	if p.env, dropped = s.cfg.Environment.Apply(p.env); len(dropped) == 0 {
		return
	}
	var v job.Provenance
	if p.spec.Provenance != nil {
		v = *p.spec.Provenance
	}
	v.Notes = append(slices.Clone(v.Notes), "variables that this site does not keep: "+strings.Join(dropped, ", "))
	p.spec.Provenance = &v
}

func (s *Server) read(owner job.Owner, req *submission) (*parsed, error) {
	src := spec.Source{Name: req.File, Data: req.script}
	if src.Name == "" {
		src.Name = "-"
	}
	opt := sbatch.Options{
		Args: req.Args, Environ: req.Environ, ScriptArgs: req.ScriptArgs, Owner: owner, Host: req.Host, Dir: req.Dir,
		Now: s.cfg.Now(), Strict: req.Strict, Mail: s.cfg.Mail, MaxArraySize: s.cfg.MaxArray, ReadFile: req.file,
	}
	switch req.Form {
	case api.FormSbatch:
		r, err := sbatch.ParseAll(src, opt)
		if err != nil {
			return nil, err
		}
		return &parsed{r.Job, req.script, req.Environ, shownWarnings(r.Warnings), r.Command}, nil
	case api.FormCommand:
		return readCommand(req, opt)
	case api.FormNative:
		sp, script, warnings, err := native.Parse(src, native.Options{
			Owner: owner, Host: req.Host, Dir: req.Dir, Now: s.cfg.Now(), MaxArraySize: s.cfg.MaxArray, Mail: s.cfg.Mail, ScriptArgs: req.ScriptArgs,
		})
		if err != nil {
			return nil, err
		}
		return &parsed{spec: sp, script: script, env: req.Environ, warnings: shownWarnings(warnings)}, nil
	}
	return nil, fault.New(fault.Invalid, "form: %q is none of sbatch, native, command", req.Form).
		Advise("a client that is newer than this server needs a newer server (API %s)", apiVersion)
}

// readCommand makes a job of a command that runs in every task; options of sbatch
// say its shape.
func readCommand(req *submission, opt sbatch.Options) (*parsed, error) {
	if len(req.Command) == 0 || req.Command[0] == "" {
		return nil, fault.New(fault.Invalid, "there is no command to run").Advise("put it behind the options: cox submit -N2 -- hostname")
	}
	opt.ScriptArgs = nil
	sp, warnings, err := sbatch.Parse(spec.Source{Name: path.Base(req.Command[0]), Data: []byte("#!/bin/sh\n")}, opt)
	if err != nil {
		return nil, err
	}
	sp.Program = job.Program{Kind: job.Direct, Args: req.Command}
	sp.Source.Form, sp.Source.File, sp.KillOnBadExit = api.FormCommand, "", true
	return &parsed{spec: sp, env: req.Environ, warnings: shownWarnings(warnings)}, nil
}

// file returns a file that an option names and the client sent. The server opens
// none: it would do so with its own rights.
func (v *submission) file(name string) ([]byte, error) {
	if text, ok := v.Files[name]; ok {
		return []byte(text), nil
	}
	return nil, fault.New(fault.Unsupported, "is not sent by this client").
		Advise("submit with cox submit or sbatch, which send the files that options name")
}

func shownWarnings(ws []spec.Warning) []api.Warning {
	var out []api.Warning
	for _, w := range ws {
		out = append(out, api.Warning{File: w.File, Line: w.Line, Col: w.Col, Option: w.Option, Message: w.Message})
	}
	return out
}
