package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/service/nodehealth"
)

// Health checks nodes; *nodehealth.Monitor is one.
type Health interface {
	// Nodes lists the nodes that can be checked, by pool and name.
	Nodes(context.Context) ([]fleet.NodeKey, error)
	Check(ctx context.Context, nodes []fleet.NodeKey) ([]nodehealth.Result, error)
	Last(k fleet.NodeKey) nodehealth.Result
	Failures() map[string]uint64
}

func (s *service) registerNodeChecks() {
	type in struct {
		Pool string `query:"pool" doc:"of this pool alone"`
	}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/node-checks", Verb: auth.SeeNodes, ID: "listNodeChecks", Tag: "nodes", Summary: "List what the last checks of nodes saw",
		About: "Nodes whose engine has checks; those that were not checked since the server began have no results. No check is run.",
	}, func(c *call, in *in) (*api.NodeChecks, error) {
		keys, err := s.checkable(c.Ctx(), nil, in.Pool)
		if err != nil {
			return nil, err
		}
		out := &api.NodeChecks{Nodes: make([]api.NodeCheck, 0, len(keys))}
		for _, k := range keys {
			r := s.cfg.Health.Last(k)
			out.Nodes = append(out.Nodes, s.shownCheck(&r))
		}
		return out, nil
	})
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/node-checks", Verb: auth.Check, ID: "checkNodes", Tag: "nodes", Lasts: true, Body: transport.TypeOf[api.CheckNodes](),
		Example: &api.CheckNodes{Nodes: []string{"v[1-4]"}},
		Summary: "Check nodes now", About: "Answers when all checks have ended. A fence of a check that passes is removed at once.",
	}, func(c *call, _ *struct{}) (*api.NodeChecks, error) { return s.checkNodes(c) })
}

func (s *service) checkNodes(c *call) (*api.NodeChecks, error) {
	in, err := transport.DecodeBody[api.CheckNodes](c.Call)
	if err != nil {
		return nil, err
	}
	names, err := hostlist.Expand(strings.Join(in.Nodes, ","))
	if err != nil {
		return nil, fault.New(fault.Invalid, "nodes: %w", err).Advise("names or host lists: v[1-4]")
	}
	keys, err := s.checkable(c.Ctx(), names, in.Pool)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, fault.New(fault.Unsupported, "no node here can be checked").Advise("docs/explanation/health.md says which pools have checks")
	}
	results, err := s.cfg.Health.Check(c.Ctx(), keys)
	if err != nil {
		return nil, err
	}
	out := &api.NodeChecks{Nodes: make([]api.NodeCheck, 0, len(keys))}
	for i := range results {
		out.Nodes = append(out.Nodes, s.shownCheck(&results[i]))
	}
	return out, nil
}

// checkable lists the named nodes, or all, of a pool, or of all, that can be checked.
func (s *service) checkable(ctx context.Context, names []string, pool string) ([]fleet.NodeKey, error) {
	if s.cfg.Health == nil {
		return nil, nil
	}
	all, err := s.cfg.Health.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	if pool != "" {
		if _, known := s.enginesByPool()[pool]; !known {
			return nil, fault.New(fault.NotFound, "there is no pool %s", pool).Advise("cox pool list lists them")
		}
		all = slices.DeleteFunc(all, func(k fleet.NodeKey) bool { return k.Pool != pool })
	}
	if len(names) == 0 {
		return all, nil
	}
	known := fleet.NewByNode[bool]()
	for _, k := range all {
		known.Set(k, true)
	}
	var out []fleet.NodeKey
	for _, name := range names {
		k, err := known.Named(name)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			return nil, fault.New(fault.NotFound, "there is no node %s that can be checked", name).Advise("cox nodes lists all nodes; docs/explanation/health.md says which pools have checks")
		case err != nil:
			return nil, err
		case !slices.Contains(out, k):
			out = append(out, k)
		}
	}
	return out, nil
}

func (s *service) shownCheck(r *nodehealth.Result) api.NodeCheck {
	h, _ := s.cfg.Plane.Health(r.Key)
	out := api.NodeCheck{Node: r.Key.Name, Pool: r.Key.Pool, At: r.At, Results: r.Results, Fences: h.Fences}
	if out.Results == nil {
		out.Results = []fleet.CheckResult{}
	}
	if r.Failure != nil {
		out.Error = r.Failure.Error()
	}
	return out
}

// NodeHealth is what checks have left of nodes.
type NodeHealth interface {
	Health(k fleet.NodeKey) (h state.NodeHealth, known bool)
}
