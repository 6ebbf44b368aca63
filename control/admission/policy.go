package admission

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Under returns the rules with what a policy says of accounts, QOS and partitions. If
// it has accounts, they are the accounts of the site and those of Rules.Accounts are
// not looked at (see Beside). How many jobs somebody may have is counted elsewhere
// (control).
func (r *Rules) Under(p *account.Policy) *Rules {
	out := *r
	out.policy, out.tree, out.book = p, nil, newBook(p)
	if p != nil && len(p.Accounts) > 0 {
		out.tree = account.NewTree(p)
	}
	return &out
}

// Beside says where the accounts of Rules.Accounts differ from a policy's, which are
// the ones that count: each a sentence.
func (r *Rules) Beside(p *account.Policy) (out []string) {
	if p == nil || len(p.Accounts) == 0 {
		return nil
	}
	under := r.Under(p)
	for _, a := range r.Accounts {
		if !under.accountExists(a.Name) {
			out = append(out, fmt.Sprintf("account %s of cox.yaml is not in the policy: it cannot be used any more", a.Name))
			continue
		}
		for _, u := range a.Users {
			if under.tree.Of(a.Name, u) < 0 {
				out = append(out, fmt.Sprintf("%s is in account %s in cox.yaml and not in the policy: he cannot use it any more", u, a.Name))
			}
		}
	}
	return out
}

// treeAccounts lists the accounts that a user may use, his default first, then in the
// order of the policy.
func (r *Rules) treeAccounts(user string) []string {
	var names []string
	if i := r.tree.Of("", user); i >= 0 {
		names = append(names, r.tree.Nodes[i].Account)
	}
	for i := range r.policy.Accounts {
		name := r.policy.Accounts[i].Name
		if r.tree.Of(name, user) >= 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// underPolicy asks whether the job's account may use its QOS and partitions.
func (r *Rules) underPolicy(s *job.Spec) error {
	if err := r.resolveQOS(s); err != nil {
		return err
	}
	if of := r.partsOf(s.QOS); of != "" {
		return fault.New(fault.Permission, "--qos=%s: its limits are parts of partition %s, whose QOS it is (flag relative): no job may name it", s.QOS, of).
			Advise("name another QOS; the limits hold for whatever runs in --partition=%s", of)
	}
	for _, name := range s.Partitions {
		i := slices.IndexFunc(r.policy.Partitions, func(p account.Partition) bool { return p.Name == name })
		if i < 0 {
			continue
		}
		p := &r.policy.Partitions[i]
		switch {
		case len(p.AllowAccts) > 0 && !slices.Contains(p.AllowAccts, s.Account), slices.Contains(p.DenyAccts, s.Account):
			return fault.New(fault.Permission, "--partition=%s: account %s may not use it", name, orNone(s.Account)).Advise("%s", r.partitionUsers(s, name))
		case len(p.AllowQOS) > 0 && !slices.Contains(p.AllowQOS, s.QOS), slices.Contains(p.DenyQOS, s.QOS):
			return fault.New(fault.Permission, "--partition=%s: QOS %s may not be used in it", name, orNone(s.QOS)).Advise("%s", r.partitionUsers(s, name))
		}
	}
	return nil
}

// FillBatch fills in the site's defaults for a batch script (batch in the policy) where the script
// does not set the option itself.
func (r *Rules) FillBatch(s *job.Spec) {
	if r.policy == nil || s.Source.Form != "sbatch" {
		return
	}
	isOpen := func(options ...string) bool {
		return !slices.ContainsFunc(options, func(o string) bool { _, given := s.Source.Given[o]; return given })
	}
	if r.policy.Batch.Requeue == account.RequeueOff && isOpen("requeue", "no-requeue") {
		s.Requeue = false
	}
	s.RequeueExit, s.RequeueExitHold = r.policy.Batch.RequeueExit, r.policy.Batch.RequeueExitHold
	if r.policy.Batch.OpenMode == account.OpenAppend && isOpen("open-mode") {
		s.Output.Append = true
	}
}

// Propagate is which resource limits of the submitter a job gets that does not say it, as --propagate
// has them; empty: all.
func (r *Rules) Propagate() string {
	if r.policy == nil {
		return ""
	}
	return r.policy.Batch.Propagate
}

// Broken says which promise to a job that was taken the rules do not keep: --requeue, where jobs
// of its QOS that make room for others are ended for good. Empty: none. It completes a sentence
// that begins with the option.
func (r *Rules) Broken(s *job.Spec) string {
	if _, given := s.Source.Given["requeue"]; r.policy == nil || !s.Requeue || !given || len(r.policy.Preemption.By) == 0 {
		return ""
	}
	parts := s.Partitions
	if len(parts) == 0 {
		parts = []string{""}
	}
	for _, part := range parts {
		if r.policy.Taken(s.QOS, part) == account.PreemptCancel {
			return fmt.Sprintf("is not kept where the job makes room for others: by the site's rules jobs of QOS %s in partition %s end then as PREEMPTED (preempt_mode: cancel)", orNone(s.QOS), orNone(part))
		}
	}
	return ""
}

// IgnoresQOS reports whether the site has no QOS at all, so that naming one means nothing.
func (r *Rules) IgnoresQOS() bool { return r.policy == nil || len(r.policy.QOS) == 0 }

// partsOf is the partition of which a QOS has parts, as that partition's own; "": none.
func (r *Rules) partsOf(qos string) string {
	if !slices.ContainsFunc(r.policy.QOS, func(q account.QOS) bool { return q.Name == qos && slices.Contains(q.Flags, account.FlagRelative) }) {
		return ""
	}
	for i := range r.policy.Partitions {
		if p := &r.policy.Partitions[i]; p.QOS == qos {
			return p.Name
		}
	}
	return ""
}

// partitionUsers says who may use a partition.
func (r *Rules) partitionUsers(s *job.Spec, name string) string {
	i := slices.IndexFunc(r.policy.Partitions, func(p account.Partition) bool { return p.Name == name })
	p := &r.policy.Partitions[i]
	switch {
	case len(p.AllowAccts) > 0 && !slices.Contains(p.AllowAccts, s.Account):
		return listChoices("accounts that may", p.AllowAccts)
	case len(p.AllowQOS) > 0 && !slices.Contains(p.AllowQOS, s.QOS):
		return listChoices("QOS that may", p.AllowQOS)
	}
	return "name another partition"
}

func orNone(name string) string {
	if name == "" {
		return "(none)"
	}
	return name
}

// resolveQOS fills in the QOS of a job that names none, and asks whether it may be used.
func (r *Rules) resolveQOS(s *job.Spec) error {
	allowed, fallback := r.qosOf(s.Account, s.Owner.User)
	if s.QOS == "" {
		s.QOS = fallback
		return nil
	}
	var known []string
	for i := range r.policy.QOS {
		known = append(known, r.policy.QOS[i].Name)
	}
	switch {
	case len(known) == 0:
		return nil
	case !slices.Contains(known, s.QOS):
		return fault.New(fault.Invalid, "--qos=%s: there is no such QOS", s.QOS).Advise("%s", listChoices("QOS here", known))
	case len(allowed) > 0 && !slices.Contains(allowed, s.QOS):
		return fault.New(fault.Permission, "--qos=%s: %s may not use it in account %s", s.QOS, s.Owner.User, orNone(s.Account)).Advise("%s", listChoices("QOS that may be used", allowed))
	}
	return nil
}

// qosOf is what an association may use and what it gets: what stands nearest to the
// user counts. Nothing allowed: everything is.
func (r *Rules) qosOf(acct, user string) (allowed []string, fallback string) {
	if r.tree == nil {
		return nil, ""
	}
	for i := r.tree.Of(acct, user); i >= 0; i = r.tree.Nodes[i].Parent {
		n := &r.tree.Nodes[i]
		own := []string(nil)
		switch {
		case n.Of != nil:
			own = n.Of.QOS
		case n.Source != nil:
			own = n.Source.QOS
			if fallback == "" {
				fallback = n.Source.Default
			}
		}
		if len(allowed) == 0 {
			allowed = own
		}
	}
	if len(allowed) > 0 && !slices.Contains(allowed, fallback) {
		fallback = allowed[0] // what stands above does not suit what stands below
	}
	return allowed, fallback
}
