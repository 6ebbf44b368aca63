package server

import (
	"context"
	"net/http"
	"time"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// recheck is how often a request that lasts asks whether its caller may still ask. An
// identity that was taken back ends within it, not with the stream.
const recheck = 500 * time.Millisecond

// errShutdown ends what lasts when the server goes.
var errShutdown = fault.New(fault.Unavailable, "the server is shutting down").Advise("ask again")

// watchSession is a context for what lasts: it ends with ctx, with the server, and when the
// caller is no longer who he was: his token has expired or was revoked, its user was
// removed, or he is no administrator any more. context.Cause says which.
func (c *call) watchSession(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		again := time.NewTicker(recheck)
		defer again.Stop()
		for {
			select {
			case <-c.s.ending:
				cancel(errShutdown)
				return
			case <-again.C:
				if err := c.recheckSession(); err != nil {
					c.s.log.Info("a stream ends: its caller may ask no more", "user", c.id.Name, "from", c.id.From, "path", withoutTokens(c.r.URL.Path), "why", err)
					cancel(err)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// recheckSession is nil as long as the caller has the rights that he had when he asked.
func (c *call) recheckSession() error {
	if c.id.Via != "token" {
		if c.id.Admin && !c.s.isAdmin(c.id.Name, c.id.UID) {
			return unauthorizedError(auth.Unauthenticated)
		}
		return nil
	}
	t, ok := c.s.cfg.Plane.TokenByID(c.id.Token)
	if !ok {
		return unauthorizedError(token.Wrong())
	}
	if err := (token.Kept{Expires: t.Expires, Revoked: t.Revoked}).Valid(c.s.cfg.Now()); err != nil {
		return unauthorizedError(err)
	}
	if c.id.Admin && !c.s.adminBy(&t) {
		return unauthorizedError(auth.Unauthenticated)
	}
	err := c.s.stillHis(&t)
	if fault.KindOf(err) == fault.Unavailable {
		return nil // the system does not say just now
	}
	return err
}

// refuseHead answers HEAD, which net/http hands to the route of GET: what streams would
// never end, since nothing of it is sent.
func (c *call) refuseHead() error {
	if c.r.Method != http.MethodHead || c.route.verb == auth.Health || c.route.verb == auth.Info {
		return nil
	}
	c.w.Header().Set("Allow", c.route.method)
	return statusError{http.StatusMethodNotAllowed, fault.New(fault.Invalid, "there is no HEAD %s, only %s", c.r.URL.Path, c.route.method).
		Advise("routes stand in /openapi.json; /healthz has a HEAD")}
}
