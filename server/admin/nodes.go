package admin

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func (s *service) registerNodes() {
	type in struct{}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/nodes", Verb: auth.SeeNodes, ID: "listNodes", Tag: "nodes", Summary: "List nodes and how much of them is used",
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
		Summary: "Drain or resume nodes", About: "Running work goes on; nothing new starts on a drained node. All nodes or none.",
	}, func(c *call, _ *in) (*api.Nodes, error) { return s.changeNodes(c) })
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/machines", Verb: auth.SeeNodes, ID: "listMachines", Tag: "nodes",
		Summary: "List machines, which pool owns each, and hand-overs", About: "A machine may be a node of several pools; work starts in the pool that owns it only.",
	}, func(c *call, _ *in) (*api.Machines, error) { return s.listMachines(c) })
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/partitions", Verb: auth.SeeNodes, ID: "listPartitions", Tag: "nodes", Summary: "List partitions",
	}, func(c *call, _ *in) (*api.Partitions, error) { return s.listPartitions(c) })
}

// localEngine is the kind of engine whose nodes are the server's own machine.
const localEngine = "local"

// listNodes lists nodes; names nil: all of them.
func (s *service) listNodes(c *call, names []string) (*api.Nodes, error) {
	views, err := s.cfg.Plane.NodeViews(c.Ctx())
	if err != nil {
		return nil, err
	}
	out, engines := &api.Nodes{Nodes: []api.Node{}}, c.s.enginesByPool()
	var machine *api.System
	if s.cfg.Machine != nil {
		machine = s.cfg.Machine()
	}
	for i := range views {
		if names != nil && !slices.ContainsFunc(names, views[i].Node.Is) {
			continue
		}
		n := c.shownNode(&views[i], engines)
		if n.Engine == localEngine {
			n.System = machine
		}
		out.Nodes = append(out.Nodes, n)
	}
	for _, n := range names {
		if !slices.ContainsFunc(views, func(v query.NodeView) bool { return v.Node.Is(n) }) {
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

func unknownNode(name string, views []query.NodeView) error {
	all := make([]string, 0, len(views))
	for i := range views {
		all = append(all, views[i].Node.Name)
	}
	return fault.New(fault.NotFound, "there is no node %s", name).Advise("nodes here: %s", hostlist.Compress(all))
}

func (s *service) changeNodes(c *call) (*api.Nodes, error) {
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

func (s *service) listPartitions(c *call) (*api.Partitions, error) {
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

// shownNode is a node as the API shows it, without jobs that the caller may not see;
// engines are those of the pools.
func (c *call) shownNode(v *query.NodeView, engines map[string]string) api.Node {
	n := &v.Node
	out := api.Node{
		Name: n.Name, Pool: n.Pool, Engine: engines[n.Pool], State: string(n.State), Why: n.Why, Address: n.Address,
		Virtual: n.Virtual, Hosts: n.Hosts, Features: n.Features, Partitions: n.Parts, Path: n.Path, Sockets: n.Sockets, Fence: n.Fence,
		CPUs: float64(n.Capacity.CPU) / float64(resource.OneCPU), CPUsUsed: float64(v.Used.CPU) / float64(resource.OneCPU),
		Memory: int64(n.Capacity.Memory), MemoryUsed: int64(v.Used.Memory), Disk: int64(n.Capacity.Disk), DiskUsed: int64(v.Used.Disk), Jobs: c.jobNames(v.Jobs),
	}
	if o := v.Owner; o != nil {
		out.Owner = o.Pool
		if o.Moving() {
			out.Handover = o.String()
		}
	}
	if d := v.Drained; d != nil {
		out.Why, out.Since, out.By = d.Reason, d.At, d.By.Name
	}
	out.Fences = v.Health.Fences
	if aggregate.Is(n.Name) {
		out.Counted = countedOf(n, v.Used)
	}
	for _, d := range n.Devices {
		out.Devices = append(out.Devices, api.Device{Device: d, Jobs: c.jobNames(v.Held[d.Index])})
	}
	return out
}

// countedOf are the GPUs of a pool as a whole, all of them and then by type.
func countedOf(n *fleet.Node, used resource.Vector) (out []api.Counted) {
	for _, x := range n.Capacity.Named {
		if name, ok := strings.CutPrefix(x.Name, aggregate.Device("")); ok && (name == "gpu" || strings.HasPrefix(name, "gpu:")) {
			out = append(out, api.Counted{Name: name, All: int64(x.Amount), Used: int64(used.Get(x.Name))})
		}
	}
	slices.SortFunc(out, func(a, b api.Counted) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// jobNames are jobs as they are shown, "7_3", without those that may not be seen.
func (c *call) jobNames(ids []job.ID) (out []string) {
	for _, id := range ids {
		name, seen := strconv.FormatUint(uint64(id), 10), true
		c.s.cfg.Plane.Scan(query.Filter{After: id - 1}, func(v *state.View) bool {
			if v.Job.ID == id {
				name, seen = v.Job.Name(), c.MaySee(v)
			}
			return false
		})
		if seen {
			out = append(out, name)
		}
	}
	return out
}
