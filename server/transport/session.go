package transport

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

// ErrShutdown ends what lasts when the server goes.
var ErrShutdown = fault.New(fault.Unavailable, "the server is shutting down").Advise("ask again")

// WatchSession is a context for what lasts: it ends with ctx, with the server, and when the
// caller is no longer who he was: his token has expired or was revoked, its user was
// removed, or he is no administrator any more. context.Cause says which.
func (c *Call) WatchSession(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		again := time.NewTicker(recheck)
		defer again.Stop()
		for {
			select {
			case <-c.s.ending:
				cancel(ErrShutdown)
				return
			case <-again.C:
				if err := c.recheckSession(); err != nil {
					c.s.Log.Info("a stream ends: its caller may ask no more", "user", c.ID.Name, "from", c.ID.From, "path", WithoutTokens(c.R.URL.Path), "why", err)
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
func (c *Call) recheckSession() error {
	if c.ID.Via != "token" {
		if c.ID.Admin && !c.s.IsAdmin(c.ID.Name, c.ID.UID) {
			return unauthorizedError(auth.Unauthenticated)
		}
		return nil
	}
	t, ok := c.s.cfg.Tokens.TokenByID(c.ID.Token)
	switch {
	case !ok && c.ID.Browser:
		return sessionOver()
	case !ok:
		return unauthorizedError(token.Wrong())
	}
	now := c.s.cfg.Now()
	if err := (token.Kept{Expires: t.Expires, Revoked: t.Revoked}).Valid(now); err != nil {
		return unauthorizedError(err)
	}
	if err := c.s.parentHolds(&t); err != nil {
		return err
	}
	if c.ID.Admin && !c.s.adminBy(&t) {
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
func (c *Call) refuseHead() error {
	if c.R.Method != http.MethodHead || c.route.Verb == auth.Health || c.route.Verb == auth.Info {
		return nil
	}
	c.W.Header().Set("Allow", c.route.Method)
	return statusError{http.StatusMethodNotAllowed, fault.New(fault.Invalid, "there is no HEAD %s, only %s", c.R.URL.Path, c.route.Method).
		Advise("routes stand in /openapi.json; /healthz has a HEAD")}
}
