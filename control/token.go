package control

import (
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
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
func (c *Control) PutToken(ctx context.Context, by job.Actor, t Token) error {
	if t.ID == "" || t.Hash == "" {
		return fault.New(fault.Invalid, "a token needs an identifier and a hash")
	}
	t.Accounts = slices.Clone(t.Accounts)
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		if _, taken := l.state.tokens[t.ID]; taken {
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "there is a token %s already", t.ID))
			return
		}
		l.stageFor(&request{answer: answer}, kindToken, 0, by, t, nil)
	})
}

// RevokeToken makes a token invalid for ever. Revoking it again is no error.
func (c *Control) RevokeToken(ctx context.Context, by job.Actor, id string) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		t, ok := l.state.tokens[id]
		switch {
		case !ok:
			l.refuseWhenLeading(answer, fault.New(fault.NotFound, "there is no token %s", id).Advise("cox token list lists them"))
		case !t.Revoked.IsZero():
			l.answerWhenLeading(answer)
		default:
			l.stageFor(&request{answer: answer}, kindRevoked, 0, by, revoked{id}, nil)
		}
	})
}

// Tokens lists all tokens by the time of their making, revoked and expired ones too.
func (c *Control) Tokens(context.Context) ([]Token, error) {
	c.state.RLock()
	defer c.state.RUnlock()
	out := make([]Token, 0, len(c.state.tokens))
	for _, t := range c.state.tokens {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Token) int {
		if d := a.Created.Compare(b.Created); d != 0 {
			return d
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out, nil
}

// TokenByID returns a token; false if there is none. No disk is waited for.
func (c *Control) TokenByID(id string) (Token, bool) {
	c.state.RLock()
	defer c.state.RUnlock()
	t, ok := c.state.tokens[id]
	return t, ok
}
