package server

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
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec"
)

type ctxt = context.Context

// call is one request that is being answered.
type call struct {
	s     *Server
	w     *writer
	r     *http.Request
	id    auth.Identity
	name  string // of the request, for logs and 500s
	route *apiRoute
	body  []byte
	over  func() // gives back what the request took; nil: nothing
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// ctx ends with the request, or when the server shuts down.
func (c *call) ctx() context.Context { return c.r.Context() }

func bootID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// requestName is the id of the request, made when somebody asks.
func (c *call) requestName() string {
	if c.name == "" {
		c.name = c.s.boot + "-" + strconv.FormatUint(c.s.serial.Add(1), 10)
	}
	return c.name
}

// allowed asks auth about an object.
func (c *call) allowed(v auth.Verb, o auth.Object) error { return c.s.cfg.Policy.Allowed(c.id, v, o) }

// maxBody bounds bodies, which are read whole before a route sees them.
const maxBody = 8 << 20

// authorize does what comes before every route: whether the caller may use it at all,
// and its body.
func (s *Server) authorize(c *call) error {
	if err := c.refuseHead(); err != nil {
		return err
	}
	if err := c.identifyCaller(); err != nil && c.route.verb != auth.Health && c.route.verb != auth.Info {
		return err
	}
	if !c.route.owned {
		if err := c.allowed(c.route.verb, auth.Object{}); err != nil {
			return err
		}
	} else if !c.id.Known() {
		return auth.Unauthenticated
	}
	if err := c.waitForPlace(); err != nil {
		return err
	}
	if c.route.body == nil {
		return nil
	}
	return c.readBody()
}

// readBody reads the body into memory that is used again after the call.
func (c *call) readBody() error {
	if c.r.ContentLength > maxBody {
		return tooLarge()
	}
	ctl := http.NewResponseController(c.w.ResponseWriter)
	_ = ctl.SetReadDeadline(time.Now().Add(3 * c.s.cfg.Patience)) // a recorder of a test has none
	buf := bodies.Get().(*[]byte)
	b := (*buf)[:0]
	if n := c.r.ContentLength; n > int64(cap(b)) {
		b = make([]byte, 0, n+1)
	}
	var err error
	for err == nil {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		var n int
		n, err = c.r.Body.Read(b[len(b):cap(b)])
		if b = b[:len(b)+n]; len(b) > maxBody {
			return tooLarge()
		}
	}
	c.body = b
	if err == io.EOF {
		_ = ctl.SetReadDeadline(time.Time{})
		return nil
	}
	// The deadline stays: net/http would wait for the rest before it answers.
	c.w.Header().Set("Connection", "close")
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
func (c *call) release() {
	if cap(c.body) > 0 && cap(c.body) <= 256<<10 {
		b := c.body[:0]
		bodies.Put(&b)
	}
	c.body = nil
	if c.over != nil {
		c.over()
	}
}

func tooLarge() error {
	return statusError{http.StatusRequestEntityTooLarge, fault.New(fault.Invalid, "the request is larger than %d MiB", maxBody>>20).
		Advise("keep large files where the job can read them, and name them in the script")}
}

// writeJSON writes an answer.
func (c *call) writeJSON(status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.writeBody(status, "application/json", append(b, '\n'))
	return nil
}

func (c *call) writeBody(status int, media string, b []byte) {
	h := c.w.Header()
	h["Content-Type"] = []string{media}
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	c.w.WriteHeader(status)
	const part = 64 << 10
	ctl := http.NewResponseController(c.w.ResponseWriter)
	for ok := true; ok; ok = len(b) > 0 { // a client that has gone, or does not read, is no matter
		_ = ctl.SetWriteDeadline(time.Now().Add(c.s.cfg.Stall)) // a recorder of a test has none
		n, err := c.w.Write(b[:min(part, len(b))])
		if err != nil {
			return
		}
		b = b[n:]
	}
}

const problemType = "application/problem+json"

// statusError is an error whose status is not that of its kind.
type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

// writeError answers with an error, unless the answer has begun: then the connection is
// cut, which is the only way left to say so.
func (c *call) writeError(err error) {
	if c.w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	p := errorBody(err)
	if p.Status >= 500 && fault.KindOf(err) == fault.Internal {
		c.s.log.Error("request failed", "request", c.requestName(), "error", err)
		p.Detail += " (request " + c.requestName() + ")"
		if p.Remedy == "" {
			p.Remedy = "this is a defect: the server's log has more under that request"
		}
	}
	if p.Status == http.StatusForbidden || p.Status == http.StatusUnauthorized && len(c.r.Header["Authorization"]) > 0 {
		c.s.log.Info("refused", "user", c.id.Name, "uid", c.id.UID, "from", c.id.From, "method", c.r.Method, "path", withoutTokens(c.r.URL.Path), "why", withoutTokens(p.Detail))
	}
	if p.Status == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	b, jerr := json.Marshal(p)
	if jerr != nil {
		panic(jerr) // texts and numbers
	}
	c.writeBody(p.Status, problemType, append(b, '\n'))
}

// errorBody is the body that reports an error.
func errorBody(err error) *api.Error {
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
	var lack *lackError
	if errors.As(err, &lack) {
		p.Errors = lack.locatedProblems()
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
func (e *humaError) ContentType(string) string { return problemType }

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
			e.Remedy = "parameters stand in /openapi.json; a client that is newer than this server needs a newer server (API " + apiVersion + ")"
		}
		return e
	}
}
