package server

import (
	"io/fs"
	"path/filepath"

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
	s.registerFleet()
	s.registerPools()
	s.registerLicenses()
	s.registerDefrag()
	s.registerWatch()
	s.registerMetrics()
	s.registerPolicy()
	s.registerOrder()
	s.registerQuotas()
	s.registerReservations()
	s.registerSnapshot()
	s.registerWhatIf()
	s.registerAdmin()
	s.LoosenAnswers()
}

// sizeOf sums the files below a folder; what cannot be read counts nothing.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if i, err := d.Info(); err == nil && i.Mode().IsRegular() {
			n += i.Size()
		}
		return nil
	})
	return n
}
