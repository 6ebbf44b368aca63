package transport

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth/token"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// CookieName is the name of a browser's session at the address that it asked. Browsers send the
// cookies of a host to all of its ports, so two servers on one machine need two names.
func CookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil || strings.Trim(port, "0123456789") != "" {
		port = "0"
	}
	return "cox_session_" + port
}

// sessionCookie is the browser's session; empty: it has none.
func (c *Call) sessionCookie() string {
	if len(c.R.Header["Cookie"]) == 0 {
		return ""
	}
	k, err := c.R.Cookie(CookieName(c.R))
	if err != nil {
		return ""
	}
	return k.Value
}

// byCookie says who asks by the session of a browser: a token in a cookie. A browser sends cookies
// whoever made it ask, so the request has to come from the console's own pages.
func (c *Call) byCookie(secret string, o *origin) error {
	if err := checkSameOrigin(c.R); err != nil {
		return err
	}
	if id, err := token.ID(secret); err == nil {
		if _, ok := c.s.cfg.Tokens.TokenByID(id); !ok {
			return sessionOver()
		}
	}
	if err := c.byToken("Bearer "+secret, o); err != nil {
		return err
	}
	c.ID.Browser = true
	return nil
}

// sessionOver is the error of a session that is kept no more.
func sessionOver() error {
	return unauthorizedError(fault.New(fault.Permission, "this browser's session has ended: it was signed out or revoked, has expired, or made way for one of %d newer ones", state.MostSessions).
		Advise("cox web signs in again"))
}

// checkSameOrigin refuses a request that another site may have made a browser send. Browsers say
// in Sec-Fetch-Site where a request comes from, and other sites cannot set it; a change needs
// VersionHeader too, which a form or a picture of another site cannot send.
func checkSameOrigin(r *http.Request) error {
	site, changes := r.Header.Get("Sec-Fetch-Site"), r.Method != http.MethodGet && r.Method != http.MethodHead
	switch {
	case site == "same-origin", site == "none" && !changes, site == "" && !changes:
	case site != "":
		return otherSite("it comes from another site (" + strings.ToValidUTF8(shortenLogged(site, 16), "") + ")")
	case !isOwnOrigin(r):
		return otherSite("it does not say that it comes from the console")
	}
	if changes && r.Header.Get(api.VersionHeader) == "" {
		return otherSite("it has no header " + api.VersionHeader)
	}
	return nil
}

// isOwnOrigin reads Origin, for browsers without Sec-Fetch-Site.
func isOwnOrigin(r *http.Request) bool {
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && u.Host != "" && u.Host == r.Host
}

func otherSite(why string) error {
	return fault.New(fault.Permission, "the request is not of the web console: %s", why).
		Advise("use the console's own pages; scripts send a token: Authorization: Bearer TOKEN")
}
