package server

import (
	"cmp"
	"net/http"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/route"
)

func (s *Server) registerAdvise() {
	add(s, apiRoute{
		method: http.MethodPost, path: "/v1/advise", verb: auth.Advise, id: "advise", tag: "jobs", body: typeOf[api.Submit](),
		example: &api.Submit{Form: api.FormSbatch, File: "train.sbatch", Text: "#!/bin/bash\n#SBATCH --nodes=2\nsrun python train.py\n", Dir: "/home/anna/run"},
		summary: "Where work belongs, and why", about: "From the text, and from what the pools of this server can run: which of them a submission goes to, and why others cannot. Nothing is kept.",
	}, func(c *call, _ *nothing) (*route.Advice, error) {
		req, err := readSubmission(c.body)
		if err != nil {
			return nil, err
		}
		if req.Form == api.FormCommand || len(req.script) == 0 {
			return nil, fault.New(fault.Invalid, "there is no text to advise on").Advise("send a script or a job in YAML as text")
		}
		facts, _, err := route.Read(spec.Source{Name: req.File, Data: req.script}, s.cfg.Now())
		if err != nil {
			return nil, err
		}
		a := route.Advise(facts)
		return a, s.judge(c, req, a)
	})
}

// judge enters into an advice which of the pools can run the work, and which one a submission
// of it goes to. Of a text that is no job only the engines are judged.
func (s *Server) judge(c *call, req *submission, a *route.Advice) error {
	sites := s.sites()
	pools := make([]route.Pool, len(sites))
	for i := range sites {
		pools[i] = sites[i].Pool
	}
	a.Judge(pools)
	rules, err := s.rules(c.ctx())
	if err != nil {
		return err
	}
	p, err := s.read(job.Owner{User: c.id.Name, UID: c.id.UID, GID: c.id.GID}, req)
	if err != nil {
		return nil
	}
	list := a.Rank(sites, asked(p.spec).gpus > 0)
	named := cmp.Or(req.Pool, p.spec.Pool, s.cfg.Pool)
	chosen, unknown := -1, -1
	a.Here = nil
	for i := range list {
		v := &list[i].Verdict
		switch t := s.try(c.ctx(), rules, p, &list[i]); {
		case t.err != nil:
			v.Cannot = sentence(t.err)
		case !t.known:
			v.Says += "; " + sentence(unsaid(&list[i]))
			if unknown < 0 {
				unknown = i
			}
		case chosen < 0:
			chosen = i
		}
		a.Here = append(a.Here, *v)
	}
	if chosen < 0 {
		chosen = unknown
	}
	for i := range list {
		a.Here[i].Chosen = named == "" && i == chosen || named == list[i].Name
	}
	return nil
}
