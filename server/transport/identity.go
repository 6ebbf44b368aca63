package transport

import (
	"context"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/peer"
	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// origin is what a connection says of its other end.
type origin struct {
	socket bool
	cred   peer.Credentials
	err    error
	from   string // "socket", "tcp 127.0.0.1:5123"
	over   bool   // it is one connection too many
	conn   net.Conn
}

type originKey struct{}

// withOrigin asks who is at the other end, once per connection.
func withOrigin(ctx context.Context, c net.Conn) context.Context {
	o := &origin{conn: c}
	if _, ok := c.(*net.UnixConn); ok {
		o.socket, o.from = true, "socket"
		o.cred, o.err = peer.Of(c)
	} else {
		o.from = "tcp " + c.RemoteAddr().String()
	}
	return context.WithValue(ctx, originKey{}, o)
}

// identifyCaller says who asks. A token that is shown is always checked, on the socket
// too; without one the socket's other end is who the kernel says.
func (c *Call) identifyCaller() error {
	o, _ := c.Ctx().Value(originKey{}).(*origin)
	if o == nil {
		o = &origin{from: "tcp " + c.R.RemoteAddr}
	}
	h := c.R.Header["Authorization"]
	switch {
	case len(h) > 0:
		return c.byToken(h[0], o)
	case c.sessionCookie() != "":
		return c.byCookie(c.sessionCookie(), o)
	case !o.socket:
		return auth.Unauthenticated
	case o.err != nil:
		return fault.New(fault.Unavailable, "ask the system who is at the other end of the socket: %w", o.err)
	}
	u := c.s.cfg.Users.ByUID(o.cred.UID)
	c.ID = auth.Identity{Name: u.Name, UID: o.cred.UID, GID: o.cred.GID, Via: "socket", From: o.from}
	c.ID.Admin = c.s.IsAdmin(u.Name, u.UID)
	return nil
}

// IsAdmin reports whether a user of this machine is an administrator.
func (s *Server) IsAdmin(name string, uid uint32) bool {
	return uid == 0 || uid == s.Self.UID || slices.Contains(s.cfg.Admins, name) ||
		s.cfg.Group != "" && s.cfg.Users.In(name, s.cfg.Group)
}

// adminBy reports whether a token gives an administrator's rights. One that somebody
// made for himself does so as long as he has them: who leaves the group of
// administrators does not take them along.
func (s *Server) adminBy(t *state.Token) bool {
	return t.Admin && (t.By.Name != t.Name || t.By.UID != t.UID || s.IsAdmin(t.Name, t.UID))
}

// parentHolds makes sure that the token which a token was made with is not revoked, nor the one which
// that was made with. Revoking a token revokes those made with it; journals of before have some that were not.
func (s *Server) parentHolds(t *state.Token) error {
	for at, depth := t.Parent, 0; at != ""; depth++ {
		parent, ok := s.cfg.Tokens.TokenByID(at)
		if !ok || depth > longestDescent {
			return unauthorizedError(token.Wrong())
		}
		if !parent.Revoked.IsZero() {
			return unauthorizedError(fault.New(fault.Permission, "the access token was made with token %s, which was revoked at %s", parent.ID, parent.Revoked.UTC().Format(time.RFC3339)).
				Advise("make a new one on the server's machine: cox token create"))
		}
		at = parent.Parent
	}
	return nil
}

// longestDescent ends the look at tokens of a damaged journal that were made with each other.
const longestDescent = 1000

// stillHis makes sure that a token's user is still who he was: a number may be given
// to somebody else once its user is removed.
func (s *Server) stillHis(t *state.Token) error {
	if t.UID == s.Self.UID {
		return nil // he runs this server
	}
	u, err := s.cfg.Users.ByName(t.Name)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return unauthorizedError(fault.New(fault.Permission, "the access token is of user %s, whom this machine no longer has", t.Name).
			Advise("make a new one on the server's machine: cox token create"))
	case err != nil:
		return fault.New(fault.Unavailable, "ask the system for user %s: %w", t.Name, err)
	case u.UID != t.UID:
		return unauthorizedError(fault.New(fault.Permission, "the access token is of user %s with number %d, who has number %d now", t.Name, t.UID, u.UID).
			Advise("make a new one on the server's machine: cox token create"))
	}
	return nil
}

func (c *Call) byToken(header string, o *origin) error {
	word, whole, _ := strings.Cut(header, " ")
	if !strings.EqualFold(word, "Bearer") {
		return unauthorizedError(fault.New(fault.Permission, "the header Authorization is not understood%s", schemeOf(word)).
			Advise("send Authorization: Bearer TOKEN, or set COX_TOKEN"))
	}
	whole = strings.TrimSpace(whole)
	id, err := token.ID(whole)
	if err != nil {
		return unauthorizedError(err)
	}
	t, ok := c.s.cfg.Tokens.TokenByID(id)
	if !ok {
		return unauthorizedError(token.Wrong())
	}
	now := c.s.cfg.Now()
	if err := (token.Kept{Hash: t.Hash, Expires: t.Expires, Revoked: t.Revoked}).Check(whole, now); err != nil {
		return unauthorizedError(err)
	}
	if err := c.s.parentHolds(&t); err != nil {
		return err
	}
	if err := c.s.stillHis(&t); err != nil {
		return err
	}
	c.ID = auth.Identity{
		Name: t.Name, UID: t.UID, GID: t.GID, Accounts: t.Accounts, Via: "token", Token: t.ID, From: o.from,
		Admin: c.s.adminBy(&t), Role: auth.Role(t.Role),
	}
	c.s.noteTokenUse(t.ID, now)
	return nil
}

// schemeOf names a scheme of authorization that is not served. Any other word may be
// the secret itself, without a scheme before it, and is neither told nor logged.
func schemeOf(word string) string {
	for _, known := range []string{"Basic", "Digest", "Negotiate", "NTLM"} {
		if strings.EqualFold(word, known) {
			return ": " + known + " is not served here"
		}
	}
	return ""
}

// secretForm is what looks like a token, or its beginning.
var secretForm = regexp.MustCompile(`cox_[0-9A-Za-z]+_[0-9A-Za-z]*`)

// WithoutTokens is a text of a request without what looks like a token: somebody may put
// one where its public part belongs.
func WithoutTokens(text string) string {
	if !strings.Contains(text, "cox_") {
		return text
	}
	return secretForm.ReplaceAllString(text, "cox_…")
}

func unauthorizedError(err error) error { return statusError{http.StatusUnauthorized, err} }

// noteTokenUse notes when a token was used last, to the minute.
func (s *Server) noteTokenUse(id string, now time.Time) {
	v, ok := s.used.Load(id)
	if !ok {
		v, _ = s.used.LoadOrStore(id, new(atomic.Int64))
	}
	if last, minute := v.(*atomic.Int64), now.Unix()/60; last.Load() != minute {
		last.Store(minute)
	}
}

// LastTokenUse is when a token was used last, to the minute; zero: not since the start.
func (s *Server) LastTokenUse(id string) time.Time {
	if v, ok := s.used.Load(id); ok {
		return time.Unix(v.(*atomic.Int64).Load()*60, 0).UTC()
	}
	return time.Time{}
}
