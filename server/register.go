package server

import (
	"github.com/coxswain-sched/coxswain/server/admin"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/spec/route"
)

// registerRoutes makes every route.
func (s *Server) registerRoutes() {
	s.API.OpenAPI().Components.Schemas.RegisterTypeAlias(transport.TypeOf[route.Origin](), transport.TypeOf[string]()) // it writes itself as text
	s.registerSubmit()
	s.registerUploads()
	s.registerLists()
	s.registerJob()
	s.registerChange()
	s.registerOutput()
	s.registerHistory()
	s.registerAdvise()
	s.registerWatch()
	s.registerOrder()
	s.registerWhatIf()
	admin.Register(s.Server, admin.Config{
		Plane: s.cfg.Plane, Rules: s.cfg.Rules, InForce: s.rules, Users: s.cfg.Users, Name: s.cfg.Name, Version: s.cfg.Version,
		Engines: s.cfg.Engines, Own: s.cfg.Own, Now: s.cfg.Now,
	})
	s.LoosenAnswers()
}
