package console

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// Tokens are the access tokens; a session is one of them.
type Tokens interface {
	PutToken(context.Context, job.Actor, state.Token) error
	RevokeToken(ctx context.Context, by job.Actor, id string) error
	TokenByID(id string) (state.Token, bool)
}

// Bounds of links and sessions.
const (
	linkTime    = 60 * time.Second
	sessionTime = 12 * time.Hour
	mostLinks   = 16 // of one user that wait to be opened; the oldest makes way
)

// link is a one-time link that nobody has opened yet.
type link struct {
	hash    string // of its code
	id      auth.Identity
	expires time.Time
}

// links are the one-time links that wait to be opened. They are in memory alone: a restart forgets
// them. It is safe for concurrent use.
type links struct {
	mu   sync.Mutex
	open []link
}

// add keeps a link, without those that are over.
func (l *links) add(n link, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(o link) bool { return !now.Before(o.expires) })
	own, first := 0, -1
	for i := range l.open {
		if l.open[i].id.UID == n.id.UID {
			if own++; first < 0 {
				first = i
			}
		}
	}
	if own >= mostLinks {
		l.open = slices.Delete(l.open, first, first+1)
	}
	l.open = append(l.open, n)
}

// take removes the link of a code; false: there is none, or it is over.
func (l *links) take(code string, now time.Time) (link, bool) {
	hash := token.Hash(code)
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.open, func(o link) bool { return o.hash == hash })
	if i < 0 {
		return link{}, false
	}
	found := l.open[i]
	l.open = slices.Delete(l.open, i, i+1)
	return found, now.Before(found.expires)
}

func (s *service) registerSessions() {
	transport.AddRoute(s.Server, transport.Route{
		Method: http.MethodPost, Path: "/v1/web-links", Verb: auth.Browse, ID: "newWebLink", Tag: "tokens", Status: http.StatusCreated,
		Summary: "Make a one-time link to the web console",
		About: "The first browser that opens it within a minute is signed in as the caller, with the caller's rights and no more, for at most 12 hours. " +
			"The session is a token: it is listed and revoked as one. A user has at most " + strconv.Itoa(state.MostSessions) + " sessions: the oldest ends when another begins.",
	}, func(c *transport.Call, _ *transport.Nothing) (*api.WebLink, error) { return s.newLink(c) })
	transport.AddRoute(s.Server, transport.Route{
		Method: http.MethodDelete, Path: "/v1/session", Verb: auth.Browse, ID: "signOut", Tag: "tokens", Status: http.StatusNoContent,
		Summary: "Sign a browser out", About: "Revokes and forgets the session's token, and removes the cookie.",
	}, func(c *transport.Call, _ *transport.Nothing) (*transport.None, error) { return nil, s.signOut(c) })
}

func (s *service) newLink(c *transport.Call) (*api.WebLink, error) {
	if c.ID.Browser {
		return nil, fault.New(fault.Permission, "a session of the web console makes no links").Advise("cox web makes one")
	}
	made, err := token.New()
	if err != nil {
		return nil, err
	}
	code := made.Secret[strings.LastIndexByte(made.Secret, '_')+1:]
	now := s.cfg.Now()
	s.links.add(link{hash: token.Hash(code), id: c.ID, expires: now.Add(linkTime)}, now)
	out := &api.WebLink{Path: "/login?code=" + code, Expires: now.Add(linkTime)}
	switch {
	case strings.HasPrefix(c.ID.From, "tcp"): // as the caller reaches it, so does his browser
		out.URL = "http://" + c.R.Host + out.Path
		if isSecure(c.R) {
			out.URL = "https://" + c.R.Host + out.Path
		}
	case s.cfg.Listen != "":
		out.URL = "http://" + s.cfg.Listen + out.Path
	}
	return out, nil
}

// signIn answers GET /login: it makes a session of a one-time link.
func (s *service) signIn(c *transport.Call) {
	if site := c.R.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		writePage(c, http.StatusForbidden, &fromElsewhere)
		return
	}
	if c.R.Method != http.MethodGet { // HEAD must not use the link up
		writePage(c, http.StatusMethodNotAllowed, &linkOver)
		return
	}
	now := s.cfg.Now()
	l, ok := s.links.take(c.R.URL.Query().Get("code"), now)
	if !ok {
		writePage(c, http.StatusForbidden, &linkOver)
		return
	}
	made, t, err := s.newSession(&l.id, now)
	if err == nil {
		err = s.cfg.Tokens.PutToken(c.Ctx(), l.id.Actor(), t)
	}
	if err != nil {
		writePage(c, fault.KindOf(err).HTTPStatus(), &page{"You are not signed in", []paragraph{{err.Error() + ".", ""}, {"Ask for another link.", "cox web"}}})
		return
	}
	http.SetCookie(c.W, sessionCookie(c.R, made.Secret, int(t.Expires.Sub(now).Seconds())))
	setPageHeaders(c.W.Header(), stylePolicy)
	c.W.Header().Set("Cache-Control", "no-store")
	http.Redirect(c.W, c.R, "/", http.StatusSeeOther)
}

// newSession makes the token of a session: its rights are those of the caller who asked for the link,
// and end when his token does.
func (s *service) newSession(id *auth.Identity, now time.Time) (token.Made, state.Token, error) {
	made, err := token.New()
	t := state.Token{
		ID: made.ID, Hash: made.Hash, Name: id.Name, UID: id.UID, GID: id.GID, Accounts: id.Accounts, Admin: id.Admin,
		Comment: "web console", Session: true, Created: now, By: id.Actor(), Expires: now.Add(sessionTime),
	}
	if err != nil || id.Token == "" {
		return made, t, err
	}
	from, ok := s.cfg.Tokens.TokenByID(id.Token)
	if !ok {
		return made, t, token.Wrong()
	}
	if err := (token.Kept{Expires: from.Expires, Revoked: from.Revoked}).Valid(now); err != nil {
		return made, t, err
	}
	t.Parent = from.ID
	t.By.Name, t.By.UID = from.By.Name, from.By.UID // who gave the rights
	if !from.Expires.IsZero() && from.Expires.Before(t.Expires) {
		t.Expires = from.Expires
	}
	return made, t, nil
}

// sessionCookie is the cookie of a session; seconds below 0 remove it.
func sessionCookie(r *http.Request, secret string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: transport.CookieName(r), Value: secret, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: isSecure(r),
	}
}

// isSecure reports whether a request came over TLS, to this server or to a proxy before it.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

func (s *service) signOut(c *transport.Call) error {
	if !c.ID.Browser {
		return fault.New(fault.Invalid, "the request is of no session of the web console").Advise("cox token revoke ID ends any token")
	}
	if err := s.cfg.Tokens.RevokeToken(c.Ctx(), c.ID.Actor(), c.ID.Token); err != nil {
		return err
	}
	http.SetCookie(c.W, sessionCookie(c.R, "", -1))
	return nil
}

// Pages about links.
var (
	linkOver = page{"This link no longer works", []paragraph{
		{"A link to the web console works once, and for one minute.", ""},
		{"Ask for another one in a terminal.", "cox web"},
	}}
	fromElsewhere = page{"Open the link yourself", []paragraph{
		{"Another page sent your browser here. It could have signed you in as somebody else, so the link was not used.", ""},
		{"If the link is yours, copy it into the address bar of your browser, or ask for another one.", "cox web"},
	}}
)
