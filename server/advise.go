package server

import (
	"net/http"

	"github.com/coxswain-sched/coxswain/advise"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/spec"
)

func (s *Server) registerAdvise() {
	add(s, route{
		method: http.MethodPost, path: "/v1/advise", verb: auth.Advise, id: "advise", tag: "jobs", body: typeOf[api.Submit](),
		example: &api.Submit{Form: api.FormSbatch, File: "train.sbatch", Text: "#!/bin/bash\n#SBATCH --nodes=2\nsrun python train.py\n", Dir: "/home/anna/run"},
		summary: "Where work belongs, and why", about: "From the text, and from what the engines of this server offer. Nothing is kept.",
	}, func(c *call, _ *nothing) (*advise.Advice, error) {
		req, err := readSubmission(c.body)
		if err != nil {
			return nil, err
		}
		if req.Form == api.FormCommand || len(req.script) == 0 {
			return nil, fault.New(fault.Invalid, "there is no text to advise on").Advise("send a script or a job in YAML as text")
		}
		facts, _, err := advise.Read(spec.Source{Name: req.File, Data: req.script}, s.cfg.Now())
		if err != nil {
			return nil, err
		}
		a := advise.Advise(facts)
		var pools []advise.Pool
		for _, p := range s.cfg.Plane.Pools() {
			var able engine.Abilities // of an engine that has not answered nothing is known
			if p.Info != nil {
				able = p.Info.Abilities
			}
			pools = append(pools, advise.Pool{Name: p.Name, Engine: p.Engine, Able: able})
		}
		a.Judge(pools)
		return a, nil
	})
}
