// Package auth says who may do what, in one table: Allowed. Every way in (socket,
// token, web) makes an Identity, and every route asks here.
//
// It is pure: it opens no socket and knows no HTTP. Where identities come from
// stands in the packages below it.
package auth

// Identity is who asks.
type Identity struct {
	Name     string
	UID, GID uint32
	Accounts []string
	Admin    bool
	Via      string // "socket" or "token"
	Token    string // the public part of the token, if any
	From     string // "socket", "tcp 127.0.0.1:5123": for the audit
}
