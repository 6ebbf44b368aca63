package control

import (
	"context"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// PolicyChange is a document to be set.
type PolicyChange struct {
	Rules      *account.Policy // what Text says; never written again
	Text       string
	File, Note string
	Back       uint64
	Base       *uint64 // the revision that is to be replaced; nil: whichever
}

// SetPolicy puts a document in force, for what waits and what runs. It is durable
// when it returns, and all of it holds or nothing. A document that is in force
// already makes no new revision. Base guards against two who write at the same time:
// the second is refused.
func (c *Control) SetPolicy(ctx context.Context, by job.Actor, ch PolicyChange) (state.Policy, error) {
	if ch.Rules == nil {
		return state.Policy{}, fault.New(fault.Invalid, "a policy needs rules")
	}
	if err := c.checkSuspendMode(ch.Rules); err != nil {
		return state.Policy{}, err
	}
	v := state.Policy{File: ch.File, Note: ch.Note, Back: ch.Back, Hash: store.Hash([]byte(ch.Text)), Text: ch.Text, Rules: ch.Rules}
	err := c.askLoop(ctx, message{bulk: true}, func(l *loop, answer func(error)) { // alone in its batch
		at, cur := l.state.Policies.LastRevision(), l.state.Policies.CurrentPolicy()
		switch {
		case ch.Base != nil && *ch.Base != at:
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "the policy is at revision %d, not at %d: it was changed meanwhile", at, *ch.Base).
				Advise("cox policy show prints it: make your change in that, and apply it again"))
			return
		case cur != nil && cur.Hash == v.Hash:
			v = *cur
			l.answerWhenLeading(answer)
			return
		}
		v.Revision = at + 1
		l.stageFor(&request{answer: answer}, state.KindPolicy, 0, by, v, func() { v = *l.state.Policies.CurrentPolicy() })
	})
	if err != nil {
		return state.Policy{}, err
	}
	return v, nil
}
