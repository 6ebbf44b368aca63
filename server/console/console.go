package console

import (
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/server/transport"
)

// Config are the parts of the console.
type Config struct {
	Files  fs.FS // the built console; without index.html there is none
	Tokens Tokens
	Listen string // host:port at which a browser on the server's machine reaches it; empty: nowhere
	Now    func() time.Time
}

// service answers browsers.
type service struct {
	*transport.Server
	cfg   Config
	files func() (map[string]*file, error) // read when a browser asks first
	links links
}

// Register lets a server answer paths that are no route with pages of the console.
func Register(t *transport.Server, cfg Config) {
	s := &service{Server: t, cfg: cfg}
	s.files = sync.OnceValues(func() (map[string]*file, error) { return readFiles(cfg.Files) })
	s.registerSessions()
	t.Pages = s.servePage
}

// apiPrefixes are the paths that no page has: what is not a route there gets an error of the API.
var apiPrefixes = []string{"/v", "/debug/", "/openapi", "/metrics", "/healthz", "/readyz"}

// servePage answers a path that is no route. It returns false where no page is meant.
func (s *service) servePage(c *transport.Call) bool {
	if c.R.Method != http.MethodGet && c.R.Method != http.MethodHead {
		return false
	}
	name := strings.TrimPrefix(path.Clean("/"+c.R.URL.Path), "/")
	for _, prefix := range apiPrefixes {
		if strings.HasPrefix("/"+name, prefix) {
			return false
		}
	}
	if name == "login" && c.R.URL.RawQuery != "" {
		s.signIn(c)
		return true
	}
	files, err := s.files()
	if err != nil {
		c.WriteError(err)
		return true
	}
	wantsPage := name == "" || strings.Contains(c.R.Header.Get("Accept"), "text/html") && path.Ext(name) == ""
	switch {
	case files[name] != nil:
		writeFile(c, files[name])
	case !wantsPage:
		return false
	case files["index.html"] != nil:
		writeFile(c, files["index.html"])
	default:
		writePage(c, http.StatusOK, &notBuilt)
	}
	return true
}
