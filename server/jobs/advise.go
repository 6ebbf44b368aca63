package jobs

import (
	"net/http"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/spec/route"
)

func (s *Service) registerAdvise() {
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/advise", Verb: auth.Advise, ID: "advise", Tag: "jobs", Body: transport.TypeOf[api.Submit](),
		Example: &api.Submit{Form: api.FormSbatch, File: "train.sbatch", Text: "#!/bin/bash\n#SBATCH --nodes=2\nsrun python train.py\n", Dir: "/home/anna/run"},
		Summary: "Which engine fits a job, and why", About: "From the text, and from what the pools of this server can run: which of them a submission goes to, and why others cannot. Nothing is kept.",
	}, func(c *call, _ *transport.Nothing) (*route.Advice, error) { return s.adviseOn(c) })
}

func (s *Service) adviseOn(c *call) (*route.Advice, error) {
	req, err := readSubmission(c.Body)
	if err != nil {
		return nil, err
	}
	if req.Form == api.FormCommand || len(req.script) == 0 {
		return nil, fault.New(fault.Invalid, "there is no text to advise on").Advise("send a script or a job in YAML as text")
	}
	r, err := s.readSubmitted(job.Owner{User: c.ID.Name, UID: c.ID.UID, GID: c.ID.GID}, req)
	about := r
	if err != nil { // the engines can be judged without it
		t := req.asText()
		if t.Form != api.FormSbatch && t.Form != api.FormNative && t.Form != api.FormManifest {
			t.Form = intake.Detect(t.Name, t.Data)
		}
		if about, err = intake.ReadAlone(t, s.cfg.Now()); err != nil {
			return nil, err
		}
		r = nil
	}
	facts, err := about.Facts()
	if err != nil {
		return nil, err
	}
	a := route.Advise(facts)
	return a, s.intake.Judge(c.Ctx(), a, r, req.Pool)
}
