package control

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// PutToken keeps a token; it is durable when PutToken returns.
func (c *Control) PutToken(ctx context.Context, by job.Actor, t state.Token) error {
	if t.ID == "" || t.Hash == "" {
		return fault.New(fault.Invalid, "a token needs an identifier and a hash")
	}
	t.Accounts = slices.Clone(t.Accounts)
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		if _, taken := l.state.Tokens[t.ID]; taken {
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "there is a token %s already", t.ID))
			return
		}
		l.stageFor(&request{answer: answer}, state.KindToken, 0, by, t, nil)
	})
}

// RevokeToken makes a token invalid for ever. Revoking it again is no error.
func (c *Control) RevokeToken(ctx context.Context, by job.Actor, id string) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		t, ok := l.state.Tokens[id]
		switch {
		case !ok:
			l.refuseWhenLeading(answer, fault.New(fault.NotFound, "there is no token %s", id).Advise("cox token list lists them"))
		case !t.Revoked.IsZero():
			l.answerWhenLeading(answer)
		default:
			l.stageFor(&request{answer: answer}, state.KindRevoked, 0, by, state.Revoked{ID: id}, nil)
		}
	})
}
