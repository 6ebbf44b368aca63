package transport

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec"
)

// Call is one request that is being answered.
type Call struct {
	W    *Writer
	R    *http.Request
	ID   auth.Identity // of the caller
	Body []byte        // of the request, valid until the handler returns

	s     *Server
	route *Route
	name  string // of the request, for logs and 500s
	over  func() // gives back what the request took; nil: nothing
}

type callKey struct{}

func callOf(ctx context.Context) *Call { return ctx.Value(callKey{}).(*Call) }

// NewCall is a request that nothing has been done about yet.
func (s *Server) NewCall(rw http.ResponseWriter, r *http.Request) *Call {
	c := &Call{s: s, W: &Writer{ResponseWriter: rw}}
	c.R = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	return c
}

// Ctx ends with the request, or when the server shuts down.
func (c *Call) Ctx() context.Context { return c.R.Context() }

func bootID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// requestName is the id of the request, made when somebody asks.
func (c *Call) requestName() string {
	if c.name == "" {
		c.name = c.s.boot + "-" + strconv.FormatUint(c.s.serial.Add(1), 10)
	}
	return c.name
}

// Allowed asks auth about an object.
func (c *Call) Allowed(v auth.Verb, o auth.Object) error { return c.s.cfg.Policy.Allowed(c.ID, v, o) }

// MaySee says whether a caller may see a job.
func (c *Call) MaySee(v *state.View) bool {
	return c.SeesAll() || v.Job.Spec.Owner.UID == c.ID.UID
}

// SeesAll says whether the caller may see the jobs of everybody.
func (c *Call) SeesAll() bool { return !c.s.cfg.Policy.Private || c.ID.Admin }

// MaxBody bounds bodies, which are read whole before a route sees them.
const MaxBody = 8 << 20

// authorize does what comes before every route: whether the caller may use it at all,
// and its body.
func (s *Server) authorize(c *Call) error {
	if err := c.refuseHead(); err != nil {
		return err
	}
	if err := c.identifyCaller(); err != nil && c.route.Verb != auth.Health && c.route.Verb != auth.Info {
		return err
	}
	if err := c.countConn(); err != nil {
		return err
	}
	if !c.route.Owned || c.ID.Role != "" { // a role has no objects of its own
		if err := c.Allowed(c.route.Verb, auth.Object{}); err != nil {
			return err
		}
	} else if !c.ID.Known() {
		return auth.Unauthenticated
	}
	if err := c.waitForPlace(); err != nil {
		return err
	}
	if c.route.Body == nil {
		return nil
	}
	return c.readBody()
}

// readBody reads the body into memory that is used again after the call.
func (c *Call) readBody() error {
	if c.R.ContentLength > MaxBody {
		return tooLarge()
	}
	ctl := http.NewResponseController(c.W.ResponseWriter)
	_ = ctl.SetReadDeadline(time.Now().Add(3 * c.s.cfg.Patience)) // a recorder of a test has none
	buf := bodies.Get().(*[]byte)
	b := (*buf)[:0]
	if n := c.R.ContentLength; n > int64(cap(b)) {
		b = make([]byte, 0, n+1)
	}
	var err error
	for err == nil {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		var n int
		n, err = c.R.Body.Read(b[len(b):cap(b)])
		if b = b[:len(b)+n]; len(b) > MaxBody {
			return tooLarge()
		}
	}
	c.Body = b
	if err == io.EOF {
		_ = ctl.SetReadDeadline(time.Time{})
		return nil
	}
	// The deadline stays: net/http would wait for the rest before it answers.
	c.W.Header().Set("Connection", "close")
	var slow net.Error
	switch {
	case errors.As(err, &slow) && slow.Timeout():
		return fault.New(fault.Invalid, "the request's body did not come within %s", 3*c.s.cfg.Patience).
			Advise("send it again, faster")
	}
	return fault.New(fault.Invalid, "the request's body broke off: %w", err).Advise("send it again, whole")
}

var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

// release gives the body's memory back. Nothing of it may be in use any more.
func (c *Call) release() {
	if cap(c.Body) > 0 && cap(c.Body) <= 256<<10 {
		b := c.Body[:0]
		bodies.Put(&b)
	}
	c.Body = nil
	if c.over != nil {
		c.over()
	}
}

func tooLarge() error {
	return statusError{http.StatusRequestEntityTooLarge, fault.New(fault.Invalid, "the request is larger than %d MiB", MaxBody>>20).
		Advise("keep large files where the job can read them, and name them in the script")}
}

// writeJSON writes an answer.
func (c *Call) writeJSON(status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.WriteBody(status, "application/json", append(b, '\n'))
	return nil
}

// WriteBody writes a whole answer, in parts that each have to be read in time.
func (c *Call) WriteBody(status int, media string, b []byte) {
	h := c.W.Header()
	h["Content-Type"] = []string{media}
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	c.W.WriteHeader(status)
	const part = 64 << 10
	ctl := http.NewResponseController(c.W.ResponseWriter)
	for ok := true; ok; ok = len(b) > 0 { // a client that has gone, or does not read, is no matter
		_ = ctl.SetWriteDeadline(time.Now().Add(c.s.cfg.Stall)) // a recorder of a test has none
		n, err := c.W.Write(b[:min(part, len(b))])
		if err != nil {
			return
		}
		b = b[n:]
	}
}

const ProblemType = "application/problem+json"

// statusError is an error whose status is not that of its kind.
type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

// WithStatus is an error that is answered with another status than that of its kind.
func WithStatus(status int, err error) error { return statusError{status, err} }

// WriteError answers with an error, unless the answer has begun: then the connection is
// cut, which is the only way left to say so.
func (c *Call) WriteError(err error) {
	if c.W.Status != 0 {
		panic(http.ErrAbortHandler)
	}
	p := ErrorBody(err)
	if p.Status >= 500 && fault.KindOf(err) == fault.Internal {
		c.s.Log.Error("request failed", "request", c.requestName(), "error", err)
		p.Detail += " (request " + c.requestName() + ")"
		if p.Remedy == "" {
			p.Remedy = "this is a defect: the server's log has more under that request"
		}
	}
	if p.Status == http.StatusForbidden || p.Status == http.StatusUnauthorized && len(c.R.Header["Authorization"]) > 0 {
		c.logRefusal(p.Detail)
	}
	if p.Status == http.StatusUnauthorized {
		c.W.Header().Set("WWW-Authenticate", "Bearer")
	}
	b, jerr := json.Marshal(p)
	if jerr != nil {
		panic(jerr) // texts and numbers
	}
	c.WriteBody(p.Status, ProblemType, append(b, '\n'))
}

// ErrorBody is the body that reports an error.
func ErrorBody(err error) *api.Error {
	p := api.ErrorOf(err)
	var se statusError
	if errors.As(err, &se) {
		p.Status = se.status
	}
	if errors.Is(err, auth.Unauthenticated) {
		p.Status = http.StatusUnauthorized
	}
	var refused *control.RefusedError
	if errors.As(err, &refused) {
		p.Reasons = refused.Reasons
	}
	var lack interface{ LocatedProblems() []api.Located }
	if errors.As(err, &lack) {
		p.Errors = lack.LocatedProblems()
	}
	var place *spec.Error
	if errors.As(err, &place) {
		p.Errors = append(p.Errors, locatedError(place))
		for _, o := range place.Others {
			p.Errors = append(p.Errors, locatedError(o))
		}
	}
	var no *intake.NoPoolError
	if errors.As(err, &no) {
		if len(p.Errors) == 0 {
			p.Errors, p.Remedy = []api.Located{{Message: "pool " + no.Pool + ": " + no.Err.Error(), Remedy: p.Remedy}}, ""
		}
		p.Errors = append(p.Errors, no.Others...)
	}
	return p
}

func locatedError(e *spec.Error) api.Located {
	return api.Located{File: e.File, Line: e.Line, Col: e.Col, Len: e.Len, Text: e.Text, Message: e.Message, Remedy: e.Remedy}
}

// humaError lets huma report wrong parameters as everything else is reported.
type humaError struct{ body }

type body = api.Error // a name of its own: Error is a method

func (e *humaError) GetStatus() int            { return e.Status }
func (e *humaError) ContentType(string) string { return ProblemType }

// Schema is the one of api.Error, which every route has put into the document.
func (e *humaError) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Ref: "#/components/schemas/Error"}
}

// huma has one hook for the form of its errors, a variable of its package.
func init() {
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		k := fault.Invalid
		if status >= 500 {
			k = fault.Internal
		} else {
			status = k.HTTPStatus()
		}
		e := &humaError{body{Status: status, Title: k.String(), Detail: msg}}
		for i, err := range errs {
			text := err.Error()
			if d, ok := err.(huma.ErrorDetailer); ok {
				text = d.ErrorDetail().Location + ": " + d.ErrorDetail().Message
			}
			if i == 0 {
				e.Detail = text
			} else {
				e.Detail += "; " + text
			}
		}
		if k == fault.Invalid {
			e.Remedy = "parameters stand in /openapi.json; a client that is newer than this server needs a newer server (API " + APIVersion + ")"
		}
		return e
	}
}
