package transport

import (
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
	APIVersion    = strconv.Itoa(api.Version) + "." + strconv.Itoa(api.Minor)
	OldestVersion = strconv.Itoa(api.Version) + "." + strconv.Itoa(oldestMinor)
)

const oldestMinor = 0

// Writer is a response that notes its status.
type Writer struct {
	http.ResponseWriter
	Status int // 0: nothing yet
}

// WriteHeader notes the first status.
func (w *Writer) WriteHeader(status int) {
	if w.Status == 0 {
		w.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body; without a status before it, 200 is noted.
func (w *Writer) Write(b []byte) (int, error) {
	if w.Status == 0 {
		w.Status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the connection.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	began := time.Now()
	c := s.NewCall(rw, r)
	defer s.finishRequest(c, began)
	h := c.W.Header()
	h[api.VersionHeader], h["X-Content-Type-Options"], h["Content-Security-Policy"] = versionValue, noSniff, noContent
	if o, _ := r.Context().Value(originKey{}).(*origin); o != nil && o.over {
		c.refuseConn()
		return
	}
	if err := checkVersion(r.Header.Get(api.VersionHeader)); err != nil {
		c.WriteError(err)
		return
	}
	s.mux.ServeHTTP(c.W, c.R)
}

// What browsers are told of every answer: it is of the type that it says, and no page.
var (
	versionValue = []string{APIVersion}
	noSniff      = []string{"nosniff"}
	noContent    = []string{"default-src 'none'; frame-ancestors 'none'"}
)

// finishRequest counts and logs a request, and answers one that panicked.
func (s *Server) finishRequest(c *Call, began time.Time) {
	defer c.release()
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler {
			s.Metrics.countRequest(c, time.Since(began))
			panic(p)
		}
		s.Log.Error("a request panicked, which is a defect", "request", c.requestName(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		s.Metrics.Panics.Add(1)
		if c.W.Status != 0 {
			s.Metrics.countRequest(c, time.Since(began))
			panic(http.ErrAbortHandler)
		}
		c.WriteError(fault.New(fault.Internal, "the server made a mistake"))
	}
	// What is still to be sent, the end of a stream or an answer without a body, may be
	// sent late: the time of the last write, of this answer or of the one before it on the
	// connection, is over by then.
	_ = http.NewResponseController(c.W.ResponseWriter).SetWriteDeadline(time.Now().Add(s.cfg.Stall)) // a recorder of a test has none
	took := time.Since(began)
	s.Metrics.countRequest(c, took)
	if s.Log.Enabled(c.Ctx(), slog.LevelDebug) {
		s.Log.Debug("request", "request", c.requestName(), "method", c.R.Method, "path", WithoutTokens(c.R.URL.Path),
			"status", c.W.Status, "user", c.ID.Name, "from", c.ID.From, "took", took)
	}
}

// checkVersion refuses clients that cannot be served rightly. No version is no
// promise, and served.
func checkVersion(v string) error {
	if v == "" || v == APIVersion {
		return nil
	}
	major, minor, ok := strings.Cut(v, ".")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	switch {
	case !ok || err != nil || err2 != nil || a < 0 || b < 0:
		return fault.New(fault.Invalid, "%s: %q is no version", api.VersionHeader, v).Advise("send %s, or leave it out", APIVersion)
	case a > api.Version:
		return fault.New(fault.Unsupported, "this client speaks API %s, the server %s to %s", v, OldestVersion, APIVersion).
			Advise("update the server, or use the cox of the server's version")
	case a < api.Version || b < oldestMinor:
		return fault.New(fault.Unsupported, "this client speaks API %s, the server %s to %s", v, OldestVersion, APIVersion).
			Advise("update the client to the cox of the server's version")
	}
	return nil // a newer minor version asks for nothing that ServerInfo.Features does not list
}

// unknownRoute answers what no route matches.
func (s *Server) unknownRoute(w http.ResponseWriter, r *http.Request) {
	c := callOf(r.Context())
	if s.Pages != nil && s.Pages(c) {
		return
	}
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
		c.WriteError(statusError{http.StatusMethodNotAllowed, fault.New(fault.Invalid, "there is no %s, only %s", what, strings.Join(other, ", ")).
			Advise("routes stand in /openapi.json")})
	case strings.HasPrefix(r.URL.Path, "/v"):
		c.WriteError(statusError{http.StatusNotFound, fault.New(fault.Unsupported, "this server has no %s", what).
			Advise("it speaks API %s to %s (routes: /openapi.json); a newer client needs a newer server", OldestVersion, APIVersion)})
	default:
		c.WriteError(fault.New(fault.NotFound, "there is no %s", what).Advise("the API begins at %s; routes stand in /openapi.json", api.Prefix))
	}
}
