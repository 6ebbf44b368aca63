package server

import (
	"bytes"
	"net/http"

	"github.com/coxswain-sched/coxswain/auth"
)

func (s *Server) registerSnapshot() {
	addStreamRoute(s, apiRoute{
		method: http.MethodGet, path: "/v1/snapshot", verb: auth.TakeState, id: "snapshot", tag: "server", media: []string{"application/json"},
		summary: "The scheduling core's state, and its steps since",
		about:   "A state some steps ago and everything that the core was told and decided since, in a form with a version of its own: `cox replay` makes the same decisions anew. Names of jobs, users and accounts are in it; scripts, commands and environments are not.",
	}, func(c *call, _ *nothing) error {
		f, err := s.cfg.Plane.Flight(c.ctx())
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := f.Write(&b, s.cfg.Version); err != nil {
			return err
		}
		c.writeBody(http.StatusOK, "application/json", b.Bytes())
		return nil
	})
}
