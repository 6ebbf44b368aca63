package admin

import (
	"bytes"
	"net/http"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *service) registerSnapshot() {
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/snapshot", Verb: auth.TakeState, ID: "snapshot", Tag: "server", Media: []string{"application/json"},
		Summary: "The state of the scheduling core, and its steps since",
		About:   "A state some steps ago and everything that the core was told and decided since, in a form with a version of its own: `cox replay` makes the same decisions anew. Names of jobs, users and accounts are in it; scripts, commands and environments are not.",
	}, func(c *call, _ *transport.Nothing) error {
		f, err := s.cfg.Plane.Flight(c.Ctx())
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := f.Write(&b, s.cfg.Version); err != nil {
			return err
		}
		c.WriteBody(http.StatusOK, "application/json", b.Bytes())
		return nil
	})
}
