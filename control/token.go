package control

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
)

// Token is an access token as the journal keeps it: the secret is there as a hash
// alone, which only who makes and checks tokens interprets.
type Token struct {
	ID       string    `json:"id"`
	Hash     string    `json:"hash"`
	Name     string    `json:"name"` // of the user that it stands for
	UID      uint32    `json:"uid"`
	GID      uint32    `json:"gid"`
	Accounts []string  `json:"accounts,omitempty"`
	Admin    bool      `json:"admin,omitempty"`
	Comment  string    `json:"comment,omitempty"`
	Created  time.Time `json:"created"`
	By       job.Actor `json:"by,omitzero"`      // who made it
	Expires  time.Time `json:"expires,omitzero"` // zero: never
	Revoked  time.Time `json:"revoked,omitzero"` // zero: not revoked
}

// PutToken keeps a token; it is durable when PutToken returns.
func (c *Control) PutToken(context.Context, job.Actor, Token) error {
	return fault.New(fault.Unsupported, "tokens are not built yet")
}

// RevokeToken makes a token invalid for ever.
func (c *Control) RevokeToken(context.Context, job.Actor, string) error {
	return fault.New(fault.Unsupported, "tokens are not built yet")
}

// Tokens lists all tokens by the time of their making, revoked and expired ones too.
func (c *Control) Tokens(context.Context) ([]Token, error) { return nil, nil }

// TokenByID returns a token; false if there is none. No disk is waited for.
func (c *Control) TokenByID(string) (Token, bool) { return Token{}, false }
