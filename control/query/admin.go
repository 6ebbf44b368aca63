package query

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Policy returns a revision of the site's rules; 0: the one in force, which is
// revision 0 where none was ever set.
func (rd *Reader) Policy(ctx context.Context, rev uint64) (state.Policy, error) {
	rd.of.State.RLock()
	found := rd.of.State.Policies.ByRevision(rev)
	rd.of.State.RUnlock()
	switch {
	case found == nil && rev == 0:
		return state.Policy{Rules: &account.Policy{}}, nil
	case found == nil:
		return state.Policy{}, fault.New(fault.NotFound, "there is no revision %d of the policy", rev).
			Advise("cox policy history lists those that are kept (the last %d)", state.PoliciesKept)
	case found.Rules != nil:
		return *found, nil
	}
	return state.PolicyDoc(ctx, rd.of.Store, rev)
}

// Rules are the site's rules in force, not to be written to; nil: none were ever set.
func (rd *Reader) Rules() *account.Policy {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	if p := rd.of.State.Policies.CurrentPolicy(); p != nil {
		return p.Rules
	}
	return nil
}

// Policies lists the revisions that are kept, the oldest first, without documents.
func (rd *Reader) Policies(context.Context) ([]state.Policy, error) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	return rd.of.State.Policies.WithoutDocuments(), nil
}

// Tokens lists all tokens by the time of their making, revoked and expired ones too.
func (rd *Reader) Tokens(context.Context) ([]state.Token, error) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	out := make([]state.Token, 0, len(rd.of.State.Tokens))
	for _, t := range rd.of.State.Tokens {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b state.Token) int {
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
func (rd *Reader) TokenByID(id string) (state.Token, bool) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	t, ok := rd.of.State.Tokens[id]
	return t, ok
}
