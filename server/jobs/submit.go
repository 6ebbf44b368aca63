package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/spec"
)

func (s *Service) registerSubmit() {
	type in struct{}
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/jobs", Verb: auth.Submit, ID: "submit", Tag: "jobs", Status: http.StatusCreated,
		Summary: "Submit a job or an array", Body: transport.TypeOf[api.Submit](),
		Example: &api.Submit{
			Form: api.FormSbatch, File: "train.sbatch", Text: "#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=8\nsrun python train.py\n",
			Args: []string{"--time=4:00:00"}, Environ: []string{"HOME=/home/anna"}, Dir: "/home/anna/run",
		},
		About: "The answer comes when the job is durable. With test_only nothing is kept. Problems in the text come with file, line and column.",
	}, func(c *call, _ *in) (*api.Submitted, error) { return s.submitJob(c) })
}

func (s *Service) submitJob(c *call) (*api.Submitted, error) {
	req, err := readSubmission(c.Body)
	if err != nil {
		return nil, err
	}
	r, err := s.admitText(c.Ctx(), c.ID, req)
	if err != nil {
		return nil, err
	}
	out := &api.Submitted{Name: r.Spec.Name, Warnings: shownWarnings(r.Warnings), Wait: r.Command.Wait, Parsable: r.Command.Parsable, Quiet: r.Command.Quiet}
	if s.cfg.Budgets != nil {
		out.Warnings = append(out.Warnings, s.cfg.Budgets(c.Ctx(), c.ID, r.Spec.Account)...)
	}
	if out.Chosen = r.Spec.Chosen; out.Chosen != nil {
		out.Pool = cmp.Or(r.Spec.Pool, pools.DefaultPool(s.cfg.Plane.Pools()))
	}
	if req.TestOnly || req.Preview || r.Command.TestOnly {
		return s.answerEstimate(c, req, r, out)
	}
	if r.Service != nil {
		return s.submitService(c, r, out)
	}
	if r.Schedule != nil {
		return s.submitSchedule(c, r, out)
	}
	if err := s.keepSecrets(r); err != nil {
		return nil, err
	}
	got, err := s.intake.Submit(c.Ctx(), c.ID.Actor(), r)
	if err != nil {
		return nil, s.intake.Locate(r, err)
	}
	out.ID, out.Tasks = got.ID, got.Tasks
	s.leases.keepSubmitted(got.ID, &r.Spec.Program)
	if out.Chosen == nil && len(out.Warnings) == 0 && !out.Wait && !out.Parsable && !out.Quiet { // the hot path: no reflection
		c.WriteBody(http.StatusCreated, "application/json", appendSubmitted(nil, out))
		return nil, transport.ErrAnswered
	}
	return out, nil
}

// submitService hands over a service that was admitted.
func (s *Service) submitService(c *call, r *intake.Request, out *api.Submitted) (*api.Submitted, error) {
	if r.Spec.Upload != nil {
		return nil, fault.New(fault.Unsupported, "--upload: a service cannot bring a directory: that is kept for one job, and replicas begin anew as long as the service lives").Advise("put the files where every node sees them, or into an image")
	}
	if _, err := s.intake.Estimate(c.Ctx(), c.ID.Actor(), r, false); err != nil { // it can never run
		return nil, s.intake.Locate(r, err)
	}
	if spare := r.Spare(); spare != nil {
		if _, err := s.intake.Estimate(c.Ctx(), c.ID.Actor(), spare, false); err != nil {
			return nil, fault.New(fault.KindOf(err), "spare_qos: replicas above min could never run: %w", s.intake.Locate(spare, err))
		}
	}
	if err := s.keepSecrets(r); err != nil {
		return nil, err
	}
	done, err := s.cfg.SubmitService(c.Ctx(), c.ID, r.Replicas())
	if err != nil {
		return nil, s.intake.Locate(r, err)
	}
	out.Service = done
	return out, nil
}

// submitSchedule hands over a schedule whose job was admitted.
func (s *Service) submitSchedule(c *call, r *intake.Request, out *api.Submitted) (*api.Submitted, error) {
	if r.Spec.Upload != nil {
		return nil, fault.New(fault.Unsupported, "--upload: a schedule cannot bring a directory: its runs would outlive it").Advise("put the files where every node sees them, or into an image")
	}
	if _, err := s.intake.Estimate(c.Ctx(), c.ID.Actor(), r, false); err != nil { // it can never run
		return nil, s.intake.Locate(r, err)
	}
	if err := s.keepSecrets(r); err != nil {
		return nil, err
	}
	done, err := s.cfg.SubmitSchedule(c.Ctx(), c.ID, r.Scheduled())
	if err != nil {
		return nil, s.intake.Locate(r, err)
	}
	out.Schedule = done
	return out, nil
}

// answerEstimate says when and where a job would start, and keeps nothing.
func (s *Service) answerEstimate(c *call, req *submission, r *intake.Request, out *api.Submitted) (*api.Submitted, error) {
	out.TestOnly = true
	e, err := s.intake.Estimate(c.Ctx(), c.ID.Actor(), r, req.Preview)
	if err != nil {
		return nil, s.intake.Locate(r, err)
	}
	out.Estimate = &api.Estimate{Start: e.Start, Nodes: e.Nodes, Part: e.Part, CPUs: r.Spec.Demand().CPUs, Reasons: e.Reasons}
	if v := e.Preview; v != nil {
		out.Preview = &api.Preview{Pool: r.Spec.Pool, Script: string(v.Script), Args: v.Args, Options: v.Options, Notes: v.Notes}
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

// startsAs reports whether the server can start jobs as the caller.
func (s *Service) startsAs(id auth.Identity) error {
	if !s.cfg.Alone || id.UID == s.Self.UID {
		return nil
	}
	return fault.New(fault.Permission, "this server runs as %s and can start nothing as %s", s.Self.Name, id.Name).
		Advise("a server that root started runs jobs as their owners; or start your own: cox up")
}

// admitText reads the text of a submission as its owner's and admits it.
func (s *Service) admitText(ctx context.Context, id auth.Identity, req *submission) (*intake.Request, error) {
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
	r, err := s.readSubmitted(owner, req)
	if err != nil {
		return nil, err
	}
	err = s.intake.Admit(ctx, id, r, intake.Wish{
		Pool: req.Pool, Pods: req.Pods, Provenance: req.Provenance, Upload: req.Upload, Umask: req.Umask, Limits: req.Limits, TestOnly: req.TestOnly || req.Preview,
	})
	if err != nil {
		return nil, err
	}
	return r, s.addForeignSecrets(r)
}

func (s *Service) readSubmitted(owner job.Owner, req *submission) (*intake.Request, error) {
	t := req.asText()
	switch t.Form {
	case api.FormSbatch, api.FormNative, api.FormManifest, api.FormCommand, api.FormAllocation:
		return s.intake.Read(t, intake.Options{
			Args: req.Args, Set: req.Env, Image: req.Image, Notify: req.Notify, Rerun: job.Rerun(req.Rerun), Schedule: req.Schedule, Once: req.Once, Environ: req.Environ, ScriptArgs: req.ScriptArgs, Owner: owner, Host: req.Host, Dir: req.Dir, Strict: req.Strict, ReadFile: req.sentFile,
		})
	}
	return nil, fault.New(fault.Invalid, "form: %q is none of sbatch, native, manifest, command, allocation", req.Form).
		Advise("a client that is newer than this server needs a newer server (API %s)", transport.APIVersion)
}

// asText is the text of a submission as the intake reads it.
func (v *submission) asText() intake.Text {
	return intake.Text{Form: v.Form, Name: v.File, Data: v.script, Work: v.Work, Command: v.Command, Step: v.Step, Client: v.Client, KillBad: v.KillBad, Lease: time.Duration(v.Lease) * time.Second}
}

// sentFile returns a file that an option names and the client sent. The server opens
// none: it would do so with its own rights.
func (v *submission) sentFile(name string) ([]byte, error) {
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
