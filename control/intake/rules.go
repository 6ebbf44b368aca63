package intake

import (
	"context"
	"sync/atomic"

	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/state"
)

// Rules are the site's rules under the policy that is in force.
type Rules struct {
	policy func(ctx context.Context, revision uint64) (state.Policy, error)
	base   *admission.Rules
	last   atomic.Pointer[revisedRules]
}

// revisedRules are the rules under one revision of the policy.
type revisedRules struct {
	revision uint64
	rules    *admission.Rules
}

// NewRules lays the policy that is in force over the rules of the configuration. policy returns
// the one of a revision, for 0 the newest.
func NewRules(base *admission.Rules, policy func(ctx context.Context, revision uint64) (state.Policy, error)) *Rules {
	return &Rules{policy: policy, base: base}
}

// Now are the rules at this moment.
func (r *Rules) Now(ctx context.Context) (*admission.Rules, error) {
	v, err := r.policy(ctx, 0)
	if err != nil {
		return nil, err
	}
	if f := r.last.Load(); f != nil && f.revision == v.Revision {
		return f.rules, nil
	}
	f := &revisedRules{v.Revision, r.base}
	if v.Revision > 0 {
		f.rules = r.base.Under(v.Rules)
	}
	r.last.Store(f)
	return f.rules, nil
}
