package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"
)

// exchange is one request with its answer. It is the RoundTripper of its own ReverseProxy, so that the
// proxy's one try becomes as many as it takes, and the ResponseWriter that the proxy writes to.
type exchange struct {
	proxy httputil.ReverseProxy

	gateway  *Server
	service  *service // nil: none was found
	settings *settings
	w        http.ResponseWriter
	r        *http.Request
	control  *http.ResponseController
	start    time.Time

	backend *backend // at which the request is in flight; nil: none
	meter   *meter
	replica string // ID of the backend that answered, or failed last
	body    *keptBody
	cookie  string // that the request has
	tries   int
	held    time.Duration
	first   time.Duration // until the head of the answer; 0: none came
	streams bool          // the answer is an event stream

	status int // of the answer; 0: none was written
	bytes  int64
	late   time.Time // until when the client has to take what was written
	err    error     // why no backend answered
}

var exchanges = sync.Pool{New: func() any {
	x := &exchange{}
	x.proxy = httputil.ReverseProxy{
		Rewrite: rewriteRequest, Transport: x, BufferPool: x,
		ModifyResponse: x.noteAnswer, ErrorHandler: x.answerError,
	}
	return x
}}

// beginExchange takes a request up.
func (g *Server) beginExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := exchanges.Get().(*exchange)
	proxy := x.proxy
	*x = exchange{proxy: proxy, gateway: g, w: w, r: r, control: http.NewResponseController(w), start: time.Now()}
	x.proxy.ErrorLog = g.proxyLog
	return x
}

// endExchange counts a request out and forgets it.
func (x *exchange) endExchange(admitted bool) {
	if x.body != nil {
		x.body.over.Store(true)
	}
	if x.r.ProtoMajor == 1 && !x.late.IsZero() {
		x.limitWrite() // for the end of the answer, which the server writes
	}
	if x.backend != nil {
		x.service.releaseBackend(x.backend, false)
	}
	if x.status == 0 {
		x.status = statusClientGone
	}
	if x.service != nil && (x.status >= 500 || x.err != nil && x.status != statusClientGone) {
		x.service.failed.Add(1)
	}
	x.gateway.count(x)
	x.gateway.access.write(x)
	if admitted {
		x.service.endRequest() // last: a gateway that ends waits for it
	}
	*x = exchange{proxy: x.proxy}
	exchanges.Put(x)
}

// statusClientGone is the status of a request whose client has gone before the answer, in logs and metrics.
const statusClientGone = 499

// rewriteRequest is what backends get otherwise than clients sent it.
func rewriteRequest(p *httputil.ProxyRequest) {
	p.SetXForwarded()
	p.Out.URL.Scheme = "http"
	p.Out.URL.Host = p.In.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery // as it came: the gateway reads none of it
	p.Out.Host = p.In.Host
	if isHTTPUpgrade(p.Out.Header.Get("Upgrade")) {
		p.Out.Header.Del("Upgrade")
		p.Out.Header.Del("Connection")
		p.Out.Header.Del("Http2-Settings")
	}
}

// isHTTPUpgrade reports whether a client asks for another version of HTTP on its connection (h2c). Its
// requests would pass the route's path, rate and token unseen.
func isHTTPUpgrade(upgrade string) bool {
	for one := range strings.SplitSeq(upgrade, ",") {
		name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(one)), "/")
		if name == "h2c" || name == "h2" || name == "http" {
			return true
		}
	}
	return false
}

// RoundTrip sends the request to a backend, and to another where that is safe.
func (x *exchange) RoundTrip(out *http.Request) (*http.Response, error) {
	ctx := out.Context()
	x.keepRequestBody(out)
	again := x.body == nil && isIdempotent(out.Method)
	until := x.start.Add(x.settings.hold)
	var avoid *backend
	for {
		b, wait, err := x.service.acquireBackend(ctx, x.cookie, avoid, until)
		x.held += wait
		if err != nil {
			return nil, err
		}
		x.backend, x.meter, x.replica = b, b.meter, b.ID
		x.tries++
		out.URL.Host = b.Address
		resp, err := x.service.settings.Load().transport.RoundTrip(out)
		if err == nil {
			return resp, nil
		}
		refused := isRefused(err)
		x.backend = nil
		x.service.releaseBackend(b, refused && ctx.Err() == nil)
		switch {
		case ctx.Err() != nil:
			return nil, err
		case refused && (x.body == nil || x.body.isUntouched()):
		case again && !refused && !isTimeout(err) && !isBadAnswer(err):
			again, avoid = false, b
		default:
			return nil, err
		}
		x.service.retried.Add(1)
		out = copyRequest(out)
	}
}

// keepRequestBody puts a keptBody before the body of the request.
func (x *exchange) keepRequestBody(out *http.Request) {
	if out.Body == nil || out.Body == http.NoBody {
		return
	}
	x.body = &keptBody{body: out.Body, stall: x.gateway.cfg.Limits.Stall}
	if x.r.ProtoMajor == 1 {
		x.body.control = x.control
	}
	out.Body = x.body
	if !isIdempotent(out.Method) && out.Header["Idempotency-Key"] == nil && out.Header["X-Idempotency-Key"] == nil {
		// net/http uses it only if nothing was written to the connection: with these methods and
		// without these headers it takes no other request for one that may be sent twice.
		out.GetBody = x.body.rewindBody
	}
}

// copyRequest is a request that can be changed while a try that failed still holds the old one.
func copyRequest(r *http.Request) *http.Request {
	n := r.WithContext(r.Context())
	u := *r.URL
	n.URL = &u
	return n
}

// isIdempotent says whether a request may be sent twice if it has no body.
func isIdempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// stickyCookie is the cookie that leads to a replica.
const stickyCookie = "coxswain-replica"

// noteAnswer sees the head of an answer before it is written.
func (x *exchange) noteAnswer(resp *http.Response) error {
	x.first = time.Since(x.start)
	x.service.noteLatency(x.first)
	x.streams = isEventStream(resp.Header)
	b := x.backend
	x.service.noteAnswered(b)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		x.status = resp.StatusCode // the proxy writes it to the connection itself
	}
	if x.settings.route.Sticky && x.cookie != b.cookie {
		c := http.Cookie{
			Name: stickyCookie, Value: b.cookie, Path: x.settings.route.Path, HttpOnly: true,
			SameSite: http.SameSiteLaxMode, Secure: x.r.TLS != nil,
		}
		if c.Path == "" {
			c.Path = "/"
		}
		resp.Header.Add("Set-Cookie", c.String())
	}
	return nil
}

// answerError answers a request that no backend answered.
func (x *exchange) answerError(_ http.ResponseWriter, r *http.Request, err error) {
	if x.body != nil && x.body.stalled.Load() { // which ends the request's context too
		err = errStalled
	}
	x.err = err
	if err != errStalled && (r.Context().Err() != nil || errors.Is(err, context.Canceled)) {
		panic(http.ErrAbortHandler) // nobody is there to read it
	}
	x.writePage(pageOf(x, err))
}

// Get is a buffer for the body of an answer (httputil.BufferPool).
func (x *exchange) Get() []byte {
	if x.streams {
		return make([]byte, streamBuffer)
	}
	return copyBuffers.Get().(*[32 << 10]byte)[:]
}

// Put takes a buffer back.
func (x *exchange) Put(b []byte) {
	if len(b) == 32<<10 {
		copyBuffers.Put((*[32 << 10]byte)(b))
	}
}

// Header is the head of the answer.
func (x *exchange) Header() http.Header { return x.w.Header() }

// Unwrap leads http.ResponseController to the client's connection, for WebSocket.
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }

// WriteHeader writes the head of the answer.
func (x *exchange) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		x.status = status
	}
	x.w.WriteHeader(status)
}

// Write writes a part of the answer. A client that takes nothing for a time is cut off.
func (x *exchange) Write(p []byte) (int, error) {
	x.limitWrite()
	n, err := x.w.Write(p)
	x.unlimitWrite()
	x.bytes += int64(n)
	return n, err
}

// FlushError sends what was written.
func (x *exchange) FlushError() error {
	x.limitWrite()
	err := x.control.Flush()
	x.unlimitWrite()
	return err
}

// limitWrite gives the client time to take what is written next.
func (x *exchange) limitWrite() {
	stall := x.gateway.cfg.Limits.Stall
	if now := time.Now(); x.late.Sub(now) < stall*3/4 {
		x.late = now.Add(stall)
		_ = x.control.SetWriteDeadline(x.late) // a recorder of a test has none
	}
}

// unlimitWrite takes the limit away where it would end a stream that is only silent.
func (x *exchange) unlimitWrite() {
	if x.r.ProtoMajor >= 2 {
		x.late = time.Time{}
		_ = x.control.SetWriteDeadline(x.late) // a recorder of a test has none
	}
}
