package control

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// SetNodes drains nodes, so that running work goes on and nothing new starts, or
// takes that back. It is durable when it returns, for all of them or for none. A name that nodes
// of several pools have is fault.Invalid without its pool: pool/name.
func (c *Control) SetNodes(ctx context.Context, by job.Actor, names []string, drain bool, why string) error {
	if len(names) == 0 {
		return fault.New(fault.Invalid, "no node is named")
	}
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		var keys []fleet.NodeKey
		for _, name := range names {
			k, err := l.state.NodeNamed(name)
			if err != nil {
				l.refuseWhenLeading(answer, err)
				return
			}
			keys = append(keys, k)
			if was, _, drained := l.state.DrainOf(k); drained && !drain && was.Pool != "" && was != k {
				keys = append(keys, was)
			}
		}
		l.stageFor(&request{answer: answer}, state.KindNodes, 0, by, state.NodesRecord(keys, drain, why), func() {
			for _, k := range keys {
				l.tellNodes(k.Name)
				l.tellTwins(k)
			}
		})
	})
}

// PutToken keeps a token; it is durable when PutToken returns. A token whose parent is revoked is
// fault.Permission. A session ends the oldest ones of its user beyond state.MostSessions.
func (c *Control) PutToken(ctx context.Context, by job.Actor, t state.Token) error {
	if t.ID == "" || t.Hash == "" {
		return fault.New(fault.Invalid, "a token needs an identifier and a hash")
	}
	t.Accounts = slices.Clone(t.Accounts)
	return c.askLoop(ctx, message{bulk: true}, func(l *loop, answer func(error)) { // it sees the tokens of all requests before
		if _, taken := l.state.Tokens[t.ID]; taken {
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "there is a token %s already", t.ID))
			return
		}
		if parent, ok := l.state.Tokens[t.Parent]; t.Parent != "" && (!ok || !parent.Revoked.IsZero()) {
			l.refuseWhenLeading(answer, fault.New(fault.Permission, "token %s, with which this one is made, was revoked", t.Parent).Advise("make a new one on the server's machine: cox token create"))
			return
		}
		req := &request{answer: answer}
		if t.Session {
			for _, id := range l.state.Tokens.Surplus(t.UID, l.cfg.Clock.Now()) {
				l.stageFor(req, state.KindRevoked, 0, by, state.Revoked{ID: id}, nil)
			}
		}
		l.stageFor(req, state.KindToken, 0, by, t, nil)
	})
}

// RevokeToken makes a token invalid for ever, and the tokens that were made with it. Revoking it again
// is no error.
func (c *Control) RevokeToken(ctx context.Context, by job.Actor, id string) error {
	return c.askLoop(ctx, message{bulk: true}, func(l *loop, answer func(error)) {
		t, ok := l.state.Tokens[id]
		switch {
		case !ok:
			l.refuseWhenLeading(answer, fault.New(fault.NotFound, "there is no token %s", id).Advise("cox token list lists them"))
		case !t.Revoked.IsZero():
			l.answerWhenLeading(answer)
		default:
			req := &request{answer: answer}
			for _, each := range append([]string{id}, l.state.Tokens.Under(id)...) {
				l.stageFor(req, state.KindRevoked, 0, by, state.Revoked{ID: each}, nil)
			}
		}
	})
}

// PolicyChange is a document to put in force.
type PolicyChange struct {
	Rules      *account.Policy // what Text says; never written again
	Text       string
	File, Note string
	Back       uint64
	Base       *uint64 // the revision to replace; nil: any
}

// SetPolicy puts a document in force, for waiting and running jobs. When it returns, all of the
// document is durable, or nothing. A document that is in force already makes no new revision.
// Base guards against two writers at the same time: the second one is refused.
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

// SetNodeHealth replaces the fences of a node; it is durable when SetNodeHealth returns. The epoch has to be
// that of the present record and one, or 1 where there is none: otherwise somebody else has changed it
// and the error is fault.Conflict. A node that is not there is fault.NotFound.
func (c *Control) SetNodeHealth(ctx context.Context, by job.Actor, v state.NodeHealth) error {
	v.Fences = slices.Clone(v.Fences)
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		k := v.Key()
		_, known := l.state.Nodes.Get(k)
		switch was := l.state.Health[k]; {
		case !known:
			l.refuseWhenLeading(answer, fault.New(fault.NotFound, "there is no node %s", k).Advise("cox nodes lists them"))
		case v.Epoch != was.Epoch+1 || l.checking[k]:
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "the health of node %s was changed by somebody else", k).Advise("check the node again"))
		default:
			l.checking[k] = true
			done := &request{answer: func(err error) { delete(l.checking, k); answer(err) }}
			l.stageFor(done, state.KindHealth, 0, by, v, func() { l.tellNode(k) })
		}
	})
}
