package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
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
		Summary: "The history of the site's rules", About: "The last hundred revisions, the oldest first, without documents.",
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
	absent, warned := s.absentPartitions(rules)
	wrong, err := s.handoverProblems(c.Ctx(), rules)
	if err != nil {
		return nil, err
	}
	absent = append(absent, wrong...)
	if err := policy.Locate(cmp.Or(req.File, "queues.yaml"), []byte(req.Text), absent); err != nil {
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
	out := &api.PolicyDone{Effects: append(s.policyEffects(now.Rules, rules), late...), Warnings: append(s.cfg.Rules.Beside(rules), warned...)}
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

// handoverProblems finds rules of hand-over that contradict the pools that there are.
func (s *service) handoverProblems(ctx context.Context, rules *account.Policy) ([]account.Problem, error) {
	if len(rules.Handover.Pools) == 0 {
		return nil, nil
	}
	var names []string
	var out []account.Problem
	for _, p := range s.cfg.Plane.Pools() {
		if p.Gone {
			continue
		}
		names = append(names, p.Name)
		if i := slices.IndexFunc(rules.Handover.Pools, func(h account.HandoverPool) bool { return h.Name == p.Name }); i >= 0 && p.Delegated {
			out = append(out, account.Problem{
				Path: fmt.Sprintf("handover.pools[%d].name", i), Message: delegatedProblem(p.Name), Remedy: delegatedRemedy,
			})
		}
	}
	nodes, err := s.cfg.Plane.NodeViews(ctx)
	if err != nil {
		return nil, err
	}
	of, all := map[string]map[string]bool{}, map[string]bool{}
	for i := range nodes {
		n := &nodes[i].Node
		if of[n.Pool] == nil {
			of[n.Pool] = map[string]bool{}
		}
		for _, m := range n.Machines() {
			of[n.Pool][m] = true
			all[m] = all[m] || rules.Handover.Pool(n.Pool) != nil
		}
	}
	machines, total := map[string]int{}, 0
	for pool, list := range of {
		machines[pool] = len(list)
	}
	for _, counts := range all {
		if counts {
			total++
		}
	}
	return append(out, rules.HandoverProblems(names, machines, total)...), nil
}

// delegatedProblem says why no rules of hand-over can speak of a pool.
func delegatedProblem(pool string) string {
	return fmt.Sprintf("the own scheduler of pool %s chooses the nodes of its jobs, so nobody here knows what a machine of it is needed for", pool)
}

const delegatedRemedy = "leave the pool out and move its machines by hand (cox node move), or let Coxswain choose the nodes: cox pool add --placed"

// absentPartitions finds rules of partitions that neither the server nor a pool has. As long as a pool
// has not said which it has, they are only warned of.
func (s *service) absentPartitions(rules *account.Policy) (absent []account.Problem, warnings []string) {
	if len(s.cfg.Rules.Partitions) == 0 {
		return nil, nil // any name is taken
	}
	var have, silent []string
	for i := range s.cfg.Rules.Partitions {
		have = append(have, s.cfg.Rules.Partitions[i].Name)
	}
	for _, p := range s.cfg.Plane.Pools() {
		k, ok := s.cfg.Plane.AddedEngine(p.Name).(engine.Inventorier)
		switch {
		case p.Broken != nil:
			silent = append(silent, p.Name)
			continue
		case !ok:
			continue
		}
		inv := k.Inventory()
		if inv == nil {
			silent = append(silent, p.Name)
			continue
		}
		for i := range inv.Partitions {
			have = append(have, inv.Partitions[i].Name)
		}
	}
	for i := range rules.Partitions {
		name := rules.Partitions[i].Name
		switch {
		case slices.Contains(have, name):
		case len(silent) > 0:
			warnings = append(warnings, fmt.Sprintf("partition %s: the server does not have it, and pool %s has not answered yet: cox pool list", name, strings.Join(silent, ", ")))
		default:
			absent = append(absent, account.Problem{
				Path: fmt.Sprintf("partitions[%d].name", i), Message: fmt.Sprintf("there is no partition %s on this server, which has %s", name, firstNames(have)),
				Remedy: "remove these rules, add the partition to partitions in cox.yaml and restart the server, or add the pool that has it (cox pool add); cox import slurm --config writes the partitions of a slurm.conf",
			})
		}
	}
	return absent, warnings
}

// firstNames lists names for a message, of many the first ones.
func firstNames(names []string) string {
	if len(names) > 8 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:8], ", "), len(names)-8)
	}
	return strings.Join(names, ", ")
}
