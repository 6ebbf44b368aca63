package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Versions of the API that are served.
var (
	apiVersion    = strconv.Itoa(api.Version) + "." + strconv.Itoa(api.Minor)
	oldestVersion = strconv.Itoa(api.Version) + "." + strconv.Itoa(oldestMinor)
)

const oldestMinor = 0

// writer notes what was answered.
type writer struct {
	http.ResponseWriter
	status int
}

func (w *writer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	began := time.Now()
	c := &call{s: s, w: &writer{ResponseWriter: rw}}
	c.r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	defer s.finishRequest(c, began)
	c.w.Header()[api.VersionHeader] = versionValue
	if o, _ := r.Context().Value(originKey{}).(*origin); o != nil && o.over {
		c.refuseConn()
		return
	}
	if err := checkVersion(r.Header.Get(api.VersionHeader)); err != nil {
		c.writeError(err)
		return
	}
	s.mux.ServeHTTP(c.w, c.r)
}

var versionValue = []string{apiVersion}

// finishRequest counts and logs a request, and answers one that panicked.
func (s *Server) finishRequest(c *call, began time.Time) {
	defer c.release()
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler {
			s.metrics.countRequest(c, time.Since(began))
			panic(p)
		}
		s.log.Error("a request panicked, which is a defect", "request", c.requestName(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		s.metrics.panics.Add(1)
		if c.w.status != 0 {
			s.metrics.countRequest(c, time.Since(began))
			panic(http.ErrAbortHandler)
		}
		c.writeError(fault.New(fault.Internal, "the server made a mistake"))
	}
	// What is still to be sent, the end of a stream or an answer without a body, may be
	// sent late: the time of the last write, of this answer or of the one before it on the
	// connection, is over by then.
	_ = http.NewResponseController(c.w.ResponseWriter).SetWriteDeadline(time.Now().Add(s.cfg.Stall)) // a recorder of a test has none
	took := time.Since(began)
	s.metrics.countRequest(c, took)
	if s.log.Enabled(c.ctx(), slog.LevelDebug) {
		s.log.Debug("request", "request", c.requestName(), "method", c.r.Method, "path", withoutTokens(c.r.URL.Path),
			"status", c.w.status, "user", c.id.Name, "from", c.id.From, "took", took)
	}
}

// checkVersion refuses clients that cannot be served rightly. No version is no
// promise, and served.
func checkVersion(v string) error {
	if v == "" || v == apiVersion {
		return nil
	}
	major, minor, ok := strings.Cut(v, ".")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	switch {
	case !ok || err != nil || err2 != nil || a < 0 || b < 0:
		return fault.New(fault.Invalid, "%s: %q is no version", api.VersionHeader, v).Advise("send %s, or leave it out", apiVersion)
	case a > api.Version:
		return fault.New(fault.Unsupported, "this client speaks API %s, the server %s to %s", v, oldestVersion, apiVersion).
			Advise("update the server, or use the cox of the server's version")
	case a < api.Version || b < oldestMinor:
		return fault.New(fault.Unsupported, "this client speaks API %s, the server %s to %s", v, oldestVersion, apiVersion).
			Advise("update the client to the cox of the server's version")
	}
	return nil // a newer minor version asks for nothing that ServerInfo.Features does not list
}

// unknownRoute answers what no route matches.
func (s *Server) unknownRoute(w http.ResponseWriter, r *http.Request) {
	c := callOf(r.Context())
	var other []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if _, pattern := s.mux.Handler(&http.Request{Method: m, URL: r.URL, Host: r.Host}); pattern != "/" && m != r.Method {
			other = append(other, m)
		}
	}
	what := r.Method + " " + r.URL.Path
	switch {
	case len(other) > 0:
		w.Header().Set("Allow", strings.Join(other, ", "))
		c.writeError(statusError{http.StatusMethodNotAllowed, fault.New(fault.Invalid, "there is no %s, only %s", what, strings.Join(other, ", ")).
			Advise("routes stand in /openapi.json")})
	case strings.HasPrefix(r.URL.Path, "/v"):
		c.writeError(statusError{http.StatusNotFound, fault.New(fault.Unsupported, "this server has no %s", what).
			Advise("it speaks API %s to %s (routes: /openapi.json); a newer client needs a newer server", oldestVersion, apiVersion)})
	default:
		c.writeError(fault.New(fault.NotFound, "there is no %s", what).Advise("the API begins at %s; routes stand in /openapi.json", api.Prefix))
	}
}
