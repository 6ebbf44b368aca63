package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *Server) registerFleet() {
	type in struct{}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/nodes", Verb: auth.SeeNodes, ID: "listNodes", Tag: "nodes", Summary: "List nodes with what is used of them",
	}, func(c *call, _ *in) (*api.Nodes, error) { return s.listNodes(c, nil) })
	type one struct {
		Node string `path:"node"`
	}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/nodes/{node}", Verb: auth.SeeNodes, ID: "getNode", Tag: "nodes", Summary: "Show one node",
	}, func(c *call, in *one) (*api.Node, error) {
		list, err := s.listNodes(c, []string{in.Node})
		if err != nil {
			return nil, err
		}
		if len(list.Nodes) > 1 {
			return nil, sharedName(in.Node, list.Nodes)
		}
		return &list.Nodes[0], nil
	})
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/nodes/change", Verb: auth.Drain, ID: "changeNodes", Tag: "nodes", Body: transport.TypeOf[api.NodeChange](),
		Example: &api.NodeChange{Nodes: []string{"v[1-4]"}, Verb: "drain", Reason: "new firmware"},
		Summary: "Drain nodes or take them back", About: "Running work goes on; nothing new starts on a drained node. All nodes or none.",
	}, func(c *call, _ *in) (*api.Nodes, error) { return s.changeNodes(c) })
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/partitions", Verb: auth.SeeNodes, ID: "listPartitions", Tag: "nodes", Summary: "List partitions",
	}, func(c *call, _ *in) (*api.Partitions, error) { return s.listPartitions(c) })
}

// listNodes lists nodes; names nil: all of them.
func (s *Server) listNodes(c *call, names []string) (*api.Nodes, error) {
	views, err := s.cfg.Plane.NodeViews(c.Ctx())
	if err != nil {
		return nil, err
	}
	out, engines := &api.Nodes{Nodes: []api.Node{}}, c.s.enginesByPool()
	for i := range views {
		if names == nil || slices.ContainsFunc(names, views[i].Node.Is) {
			out.Nodes = append(out.Nodes, c.shownNode(&views[i], engines))
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(views, func(v control.NodeView) bool { return v.Node.Is(n) }) {
			return nil, unknownNode(n, views)
		}
	}
	return out, nil
}

// sharedName refuses a bare name that nodes of several pools have.
func sharedName(name string, nodes []api.Node) error {
	known := fleet.NewByNode[bool]()
	for i := range nodes {
		known.Set(fleet.NodeKey{Pool: nodes[i].Pool, Name: nodes[i].Name}, true)
	}
	_, err := known.Named(name)
	return err
}

func unknownNode(name string, views []control.NodeView) error {
	all := make([]string, 0, len(views))
	for i := range views {
		all = append(all, views[i].Node.Name)
	}
	return fault.New(fault.NotFound, "there is no node %s", name).Advise("nodes here: %s", hostlist.Compress(all))
}

func (s *Server) changeNodes(c *call) (*api.Nodes, error) {
	ch, err := transport.DecodeBody[api.NodeChange](c.Call)
	if err != nil {
		return nil, err
	}
	names, err := hostlist.Expand(strings.Join(ch.Nodes, ","))
	switch {
	case err != nil:
		return nil, fault.New(fault.Invalid, "nodes: %w", err).Advise("names or host lists: v[1-4]")
	case len(names) == 0:
		return nil, fault.New(fault.Invalid, "nodes: none is named").Advise("names or host lists: v[1-4]")
	case ch.Verb != "drain" && ch.Verb != "resume":
		return nil, fault.New(fault.Invalid, "verb: there is no %q for nodes", ch.Verb).Advise("verbs: drain, resume")
	case ch.Verb == "drain" && ch.Reason == "":
		return nil, fault.New(fault.Invalid, "a drained node needs a reason").Advise("cox node drain %s --reason WHY", hostlist.Compress(names))
	}
	if _, err := s.listNodes(c, names); err != nil {
		return nil, err
	}
	if err := s.cfg.Plane.SetNodes(c.Ctx(), c.ID.Actor(), names, ch.Verb == "drain", ch.Reason); err != nil {
		return nil, err
	}
	return s.listNodes(c, names)
}

func (s *Server) listPartitions(c *call) (*api.Partitions, error) {
	out := &api.Partitions{Partitions: []api.Partition{}}
	views, err := s.cfg.Plane.NodeViews(c.Ctx())
	if err != nil {
		return nil, err
	}
	def := s.cfg.Rules.Default()
	for i := range s.cfg.Rules.Partitions {
		p := &s.cfg.Rules.Partitions[i]
		part := api.Partition{
			Name: p.Name, Default: def != nil && def.Name == p.Name, State: "up", Nodes: p.Nodes,
			TimeLimit: p.TimeLimit.Seconds(), DefaultTime: p.DefaultTime.Seconds(),
		}
		for j := range views {
			if slices.Contains(p.Nodes, views[j].Node.Name) {
				part.Pool = views[j].Node.Pool
				break
			}
		}
		out.Partitions = append(out.Partitions, part)
	}
	return out, nil
}
