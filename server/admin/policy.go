package admin

import (
	"cmp"
	"net/http"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *service) registerPolicy() {
	type one struct {
		Revision uint64 `query:"revision" doc:"0: the one in force"`
	}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/policy", Verb: auth.SeePolicy, ID: "getPolicy", Tag: "policy",
		Summary: "The site's rules", About: "The document as it was written, with who set it.",
	}, func(c *call, in *one) (*api.Policy, error) {
		v, err := s.cfg.Plane.Policy(c.Ctx(), in.Revision)
		return shownPolicy(&v), err
	})
	addRoute(s, transport.Route{
		Method: http.MethodPut, Path: "/v1/policy", Verb: auth.SetPolicy, ID: "setPolicy", Tag: "policy", Body: transport.TypeOf[api.SetPolicy](),
		Example: &api.SetPolicy{Text: "accounts:\n  - {name: nlp, limits: {group: {gpu: 64}}}\n", File: "queues.yaml"},
		Summary: "Put the site's rules in force", About: "All of the document or, if anything in it is wrong, nothing. What waits and runs is judged by it at once; nothing that runs is ended. base guards against two who write at the same time.",
	}, func(c *call, _ *transport.Nothing) (*api.PolicyDone, error) { return s.setPolicy(c) })
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/policy/history", Verb: auth.SeePolicy, ID: "policyHistory", Tag: "policy",
		Summary: "What the site's rules were before", About: "The last hundred revisions, the oldest first, without documents.",
	}, func(c *call, _ *transport.Nothing) (*api.PolicyHistory, error) {
		list, err := s.cfg.Plane.Policies(c.Ctx())
		out := &api.PolicyHistory{Policies: []api.Policy{}}
		for i := range list {
			out.Policies = append(out.Policies, *shownPolicy(&list[i]))
		}
		return out, err
	})
}

func shownPolicy(v *state.Policy) *api.Policy {
	return &api.Policy{Revision: v.Revision, At: v.At, By: v.By.Name, File: v.File, Note: v.Note, Back: v.Back, Hash: v.Hash, Text: v.Text}
}

// setPolicy reads a document, checks it, and puts it in force.
func (s *service) setPolicy(c *call) (*api.PolicyDone, error) {
	req, err := transport.DecodeBody[api.SetPolicy](c.Call)
	if err != nil {
		return nil, err
	}
	if req.Back > 0 {
		if req.Text != "" {
			return nil, fault.New(fault.Invalid, "a text and a revision to put back do not go together").Advise("send one of them")
		}
		old, err := s.cfg.Plane.Policy(c.Ctx(), req.Back)
		if err != nil {
			return nil, err
		}
		req.Text, req.File = old.Text, cmp.Or(req.File, old.File)
	}
	rules, err := policy.Parse(cmp.Or(req.File, "queues.yaml"), []byte(req.Text))
	if err != nil {
		return nil, err
	}
	now, err := s.cfg.Plane.Policy(c.Ctx(), 0)
	if err != nil {
		return nil, err
	}
	late, err := c.reservationEffects(now.Rules, rules)
	if err != nil {
		return nil, err
	}
	out := &api.PolicyDone{Effects: append(s.policyEffects(now.Rules, rules), late...), Warnings: s.cfg.Rules.Beside(rules)}
	for _, c := range policy.Diff(now.Rules, rules) {
		out.Changes = append(out.Changes, api.PolicyChange{Text: c.String(), Lines: c.Lines})
	}
	if req.DryRun {
		if req.Base != nil && *req.Base != now.Revision {
			return nil, fault.New(fault.Conflict, "the policy is at revision %d, not at %d: it was changed meanwhile", now.Revision, *req.Base).
				Advise("cox policy show prints it: make your change in that, and apply it again")
		}
		out.Policy, out.Changed = *shownPolicy(&now), now.Text != req.Text
		return out, nil
	}
	v, err := s.cfg.Plane.SetPolicy(c.Ctx(), c.ID.Actor(), control.PolicyChange{
		Rules: rules, Text: req.Text, File: req.File, Note: req.Note, Back: req.Back, Base: req.Base,
	})
	if err != nil {
		return nil, err
	}
	out.Policy, out.Changed = *shownPolicy(&v), v.Revision != now.Revision
	return out, nil
}
