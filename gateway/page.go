package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// page is the answer of the gateway itself: what is wrong, and what to do.
type page struct {
	status int
	detail string
	remedy string
	again  time.Duration // Retry-After; 0: none
}

// noService is the page for a host or a path that no service has.
func noService(t *table, r *http.Request) page {
	host := hostOf(r.Host)
	p := page{status: http.StatusNotFound, remedy: "`cox service list` shows the services and their addresses"}
	if entries := t.hosts[host]; len(entries) > 0 {
		p.detail = fmt.Sprintf("no service has the path %s of %s; the nearest is %s", r.URL.Path, host, entries[len(entries)-1].path)
		return p
	}
	p.detail = fmt.Sprintf("no service has the host %.*s", mostHost, host)
	if near := t.nearestHost(host); near != "" {
		p.detail += "; the nearest is " + near
	}
	return p
}

var (
	tokenMissing = page{status: http.StatusUnauthorized, detail: "this service wants a token, and the request has none", remedy: "send the header Authorization: Bearer TOKEN"}
	tokenWrong   = page{status: http.StatusUnauthorized, detail: "the request's token is not one of this service", remedy: "ask the owner of the service for a token"}
	noRoutes     = page{status: http.StatusServiceUnavailable, again: time.Second, detail: "this gateway has just started and the server has not told it any service yet", remedy: "ask again; the gateway's log says whether it reaches the server"}
	noMethod     = page{status: http.StatusBadRequest, detail: "the request's method is not a word", remedy: "ask with GET, POST or another method of HTTP"}
	noConnect    = page{status: http.StatusMethodNotAllowed, detail: "the gateway makes no tunnels (CONNECT)", remedy: "ask for the service by its host name"}
)

// tooMany is the page of a service that has as many requests a second as it may have.
func tooMany(s *service, rate float64) page {
	return page{
		status: http.StatusTooManyRequests, again: time.Second,
		detail: fmt.Sprintf("service %s takes %g requests a second at most, and this is one more", s.name, rate), remedy: "ask again in a second, or ask less often",
	}
}

// pageOf is the page of a request that no replica answered.
func pageOf(x *exchange, err error) page {
	s := x.service
	switch {
	case errors.Is(err, errGone):
		return page{status: http.StatusNotFound, detail: fmt.Sprintf("service %s was stopped", s.name), remedy: "`cox service list` shows the services and their addresses"}
	case errors.Is(err, errBusy):
		return page{status: http.StatusServiceUnavailable, again: time.Second, detail: fmt.Sprintf("service %s has %d requests at once, which is the most", s.name, x.gateway.cfg.Limits.Requests), remedy: "ask again when some have ended"}
	case errors.Is(err, errFull):
		return page{status: http.StatusServiceUnavailable, again: time.Second, detail: fmt.Sprintf("%s, and %d requests wait already", s.describeReplicas(), s.settings.Load().mostHeld), remedy: askWhy(s)}
	case errors.Is(err, errWaited):
		return page{status: http.StatusServiceUnavailable, again: 5 * time.Second, detail: fmt.Sprintf("%s; the request waited %s for one", s.describeReplicas(), roundTime(x.held)), remedy: askReach(s)}
	case errors.Is(err, errStalled):
		return page{status: http.StatusRequestTimeout, detail: fmt.Sprintf("the rest of the request's body did not come within %s", x.gateway.cfg.Limits.Stall), remedy: "send the request again, faster"}
	case isRefused(err): // with a body that was begun: it cannot be
		return page{status: http.StatusBadGateway, again: time.Second, detail: fmt.Sprintf("a replica of %s took no connection", s.name), remedy: askWhy(s)}
	case isTimeout(err):
		return page{status: http.StatusGatewayTimeout, detail: fmt.Sprintf("a replica of %s sent no answer within %s", s.name, roundTime(time.Since(x.start)-x.held)), remedy: "route.timeout in the file of the service sets how long that may take"}
	}
	worked := fmt.Sprintf("the request may have been worked on; `cox logs %s` shows what the replica says", s.name)
	switch {
	case errors.Is(err, errLongHead), errors.Is(err, errSwitched):
		return page{status: http.StatusBadGateway, detail: fmt.Sprintf("the answer of a replica of %s cannot be passed on: %v", s.name, err), remedy: worked}
	case isBadAnswer(err):
		return page{status: http.StatusBadGateway, detail: fmt.Sprintf("the answer of a replica of %s is not one of HTTP", s.name), remedy: worked}
	}
	return page{status: http.StatusBadGateway, detail: fmt.Sprintf("a replica of %s ended the connection without an answer", s.name), remedy: worked}
}

func askWhy(s *service) string {
	return fmt.Sprintf("ask again later; `cox why %s` says what it waits for", s.name)
}

// askReach is the remedy where no replica takes connections: they may not be reached from here at all.
func askReach(s *service) string {
	if ready, _ := s.counts(); ready > 0 {
		return fmt.Sprintf("`cox pool check` says whether the addresses of replicas answer from the server's machine; `cox why %s` says how they are", s.name)
	}
	return askWhy(s)
}

// roundTime is a time for people.
func roundTime(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// describeReplicas says how many replicas a service has that is asked in vain.
func (s *service) describeReplicas() string {
	ready, known := s.counts()
	set := s.settings.Load()
	if set.route.Asleep && known == 0 {
		return fmt.Sprintf("service %s is asleep and is being woken", s.name)
	}
	state := "none has an address"
	switch {
	case ready > 0:
		state = fmt.Sprintf("%d of %d with an address should be ready, but take no connections", ready, known)
	case known > 0:
		state = fmt.Sprintf("none of %d with an address is ready", known)
	}
	return fmt.Sprintf("service %s has no replica that answers: %d wanted, %s", s.name, set.route.Want, state)
}

// writeHealth answers a probe: 200 from the first routes on, also while the server is away.
func (g *Server) writeHealth(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if g.version.Load() == 0 {
		w.WriteHeader(noRoutes.status)
		_, _ = io.WriteString(w, noRoutes.detail+"\n") // a client that has gone is no matter
		return
	}
	_, _ = io.WriteString(w, "ready\n") // a client that has gone is no matter
}

// writePage writes a page in the form that the client takes.
func (x *exchange) writePage(p page) {
	h := x.Header()
	clear(h) // what a backend said before its answer broke off
	if p.again > 0 {
		h.Set("Retry-After", strconv.Itoa(int(p.again.Round(time.Second)/time.Second)))
	}
	if p.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	var text []byte
	if strings.Contains(x.r.Header.Get("Accept"), "json") {
		h.Set("Content-Type", "application/problem+json")
		text = jsonPage(p)
	} else {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		text = fmt.Appendf(nil, "%d %s\n%s\n%s\n", p.status, http.StatusText(p.status), p.detail, p.remedy)
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	x.WriteHeader(p.status)
	if x.r.Method != http.MethodHead {
		_, _ = x.Write(text) // a client that has gone is no matter
	}
}

// jsonPage is a page as the server's own errors are.
func jsonPage(p page) []byte {
	text, err := json.Marshal(api.Error{Title: kindOfStatus(p.status).String(), Status: p.status, Detail: p.detail, Remedy: p.remedy})
	if err != nil {
		panic(err) // texts and numbers
	}
	return append(text, '\n')
}

func kindOfStatus(status int) fault.Kind {
	switch status {
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusUnauthorized:
		return fault.Permission
	case http.StatusTooManyRequests:
		return fault.Exhausted
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusRequestTimeout:
		return fault.Invalid
	}
	return fault.Unavailable
}
