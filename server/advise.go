package server

import (
	"encoding/json"
	"net/http"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/fault"
)

// Adviser says where work belongs. The answer is what `cox advise -o json` prints.
type Adviser func(form, file string, text []byte, args []string, pools []api.Pool) (json.RawMessage, error)

func (s *Server) registerAdvise() {
	add(s, route{
		method: http.MethodPost, path: "/v1/advise", verb: auth.Advise, id: "advise", tag: "jobs", body: typeOf[api.Submit](),
		summary: "Where work belongs, and why", about: "With what the engines of this server offer. Nothing is kept.",
	}, func(c *call, _ *nothing) (*json.RawMessage, error) {
		req, err := readSubmission(c.body)
		if err != nil {
			return nil, err
		}
		if s.cfg.Adviser == nil {
			return nil, fault.New(fault.Unsupported, "this server gives no advice").Advise("cox advise FILE works without a server")
		}
		out, err := s.cfg.Adviser(req.Form, req.File, req.script, req.Args, s.cfg.Pools)
		return &out, err
	})
}
