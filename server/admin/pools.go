package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// PoolRemoval is a pool that is to be removed.
type PoolRemoval struct {
	Name  string `path:"name"`
	Force bool   `query:"force" doc:"give away machines that the pool owns and on which another pool has nodes, although nobody has seen that its engine starts nothing there"`
}

// PoolPath names a pool.
type PoolPath struct {
	Name string `path:"name"`
}

func (s *service) registerPools() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/pools", Verb: auth.SeePools, ID: "listPools", Tag: "nodes", Also: []auth.Verb{auth.SetPools},
		Summary: "List pools, their engines, and whether these answer", About: "The first one is where jobs go that name none. Settings are shown to administrators. No engine is asked: what is told is what it answered last.",
	}, func(c *call, _ *transport.Nothing) (*api.Pools, error) { return c.listPools() })
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/pools/{name}/inventory", Verb: auth.SeePools, ID: "poolInventory", Tag: "nodes", Also: []auth.Verb{auth.SetPools},
		Summary: "Show partitions, QOS, associations, reservations, licences and nodes of a pool as its engine found them",
		About:   "Of a pool whose engine drives another system, such as a site's own Slurm; 501 of others. Nobody is asked: it is what was found last, and says when. Associations and jobs of other people are for administrators: others see them summed up, as those of no name.",
	}, func(c *call, in *PoolPath) (*fleet.Inventory, error) { return c.poolInventory(in.Name) })
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/pools", Verb: auth.SetPools, ID: "addPool", Tag: "nodes", Body: transport.TypeOf[api.NewPool](),
		Example: &api.NewPool{Name: "slurm-b", Engine: "slurm", Settings: []byte(`{"ssh":"login1"}`)},
		Summary: "Check a pool and add it", About: "The engine is opened and asked for all that the work will need; where something is missing the pool is not added, unless force is said. With check it is only looked at. It is durable when this is answered; its nodes come as soon as its engine says which it has.",
	}, func(c *call, _ *transport.Nothing) (*api.PoolDone, error) { return c.addPool() })
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/pools/{name}/check", Verb: auth.SetPools, ID: "checkPool", Tag: "nodes",
		Summary: "Check that the engine of a pool has everything that jobs need",
	}, func(c *call, in *PoolPath) (*api.PoolDone, error) {
		found, err := s.cfg.Plane.RecheckPool(c.Ctx(), in.Name)
		if err != nil {
			return nil, err
		}
		out := s.poolDone(in.Name, s.enginesByPool()[in.Name], found)
		return out, s.addRuleFindings(c.Ctx(), out, s.isDelegated(in.Name))
	})
	addRoute(s, transport.Route{
		Method: http.MethodDelete, Path: "/v1/pools/{name}", Verb: auth.SetPools, ID: "removePool", Tag: "nodes",
		Summary: "Remove a pool", About: "Refused as long as a job holds something in it or waits for it, with the jobs, or while it owns machines on which another pool has nodes. Nothing is done to what the engine drives.",
	}, func(c *call, in *PoolRemoval) (*transport.None, error) {
		return nil, s.cfg.Plane.RemovePool(c.Ctx(), c.ID.Actor(), in.Name, in.Force)
	})
}

// poolInventory is what the engine of a pool found last, without what others than the caller
// have, unless that is an administrator.
func (c *call) poolInventory(pool string) (*fleet.Inventory, error) {
	if _, ok := c.s.enginesByPool()[pool]; !ok {
		return nil, fault.New(fault.NotFound, "there is no pool %.70s", pool).Advise("cox pool list")
	}
	k, ok := c.s.cfg.Plane.AddedEngine(pool).(engine.Inventorier)
	if !ok {
		return nil, fault.New(fault.Unsupported, "the engine of pool %s has no inventory beside its nodes", pool).Advise("cox nodes --pool %s", pool)
	}
	inv := k.Inventory()
	if inv == nil {
		return nil, fault.New(fault.Unavailable, "the engine of pool %s has not found anything yet", pool).Advise("try again; cox pool list says whether it answers")
	}
	if c.Allowed(auth.SetPools, auth.Object{}) != nil {
		own := *inv
		own.Associations = slices.DeleteFunc(slices.Clone(inv.Associations), func(a fleet.Association) bool { return a.User != "" && a.User != c.ID.Name })
		own.Use = anonymizeUses(inv.Use, c.ID.Name)
		inv = &own
	}
	return inv, nil
}

// anonymizeUses sums up what others than a user have, by partition.
func anonymizeUses(all []fleet.Use, but string) (out []fleet.Use) {
	for _, u := range all {
		if u.User != but {
			u.User = ""
		}
		i := slices.IndexFunc(out, func(o fleet.Use) bool { return o.User == u.User && o.Partition == u.Partition && o.Ours == u.Ours })
		if i < 0 {
			out = append(out, u)
			continue
		}
		o := &out[i]
		o.Running, o.Waiting, o.Nodes, o.CPUs, o.GPUs = o.Running+u.Running, o.Waiting+u.Waiting, o.Nodes+u.Nodes, o.CPUs+u.CPUs, o.GPUs+u.GPUs
	}
	return out
}

// enginesByPool are the kinds of the pools' engines, by name of the pool.
func (s *service) enginesByPool() map[string]string {
	out := map[string]string{}
	for _, p := range s.cfg.Plane.Pools() {
		out[p.Name] = p.Engine
	}
	return out
}

func (c *call) listPools() (*api.Pools, error) {
	views, err := c.s.cfg.Plane.NodeViews(c.Ctx())
	if err != nil {
		return nil, err
	}
	out := &api.Pools{Pools: c.s.shownPools(), Engines: c.s.cfg.Engines}
	at := map[string]*api.Pool{}
	for i := range out.Pools {
		at[out.Pools[i].Name] = &out.Pools[i]
	}
	jobs := map[string]map[job.ID]bool{}
	for i := range views {
		v := &views[i]
		p := at[v.Node.Pool]
		if p == nil {
			continue // it came or went between the two questions
		}
		p.DevicesUsed += len(v.Held) + int(v.Used.Get(aggregate.Device("gpu")))
		if jobs[p.Name] == nil {
			jobs[p.Name] = map[job.ID]bool{}
		}
		for _, id := range v.Jobs {
			jobs[p.Name][id] = true
		}
		p.Jobs = len(jobs[p.Name])
	}
	if c.Allowed(auth.SetPools, auth.Object{}) == nil {
		for _, v := range c.s.cfg.Plane.Pools() {
			if p := at[v.Name]; p != nil && v.Added != nil {
				p.Settings = v.Added.Settings
			}
		}
	}
	return out, nil
}

// shownPools are the pools with what everybody may know of them.
func (s *service) shownPools() []api.Pool {
	out := []api.Pool{}
	for _, v := range s.cfg.Plane.Pools() {
		p := api.Pool{Name: v.Name, Engine: v.Engine, Default: v.Default, Nodes: v.Nodes, Devices: v.Devices, Heard: v.Heard}
		p.State, p.Why = v.State(s.cfg.Now())
		if v.Added != nil {
			p.Added, p.By = v.Added.At, v.Added.By.Name
		}
		if v.Info != nil {
			p.Version, p.Gang, p.Notes, p.Abilities = v.Info.Version, string(v.Info.Abilities.Gang), v.Info.Notes, abilityWords(&v.Info.Abilities)
		}
		out = append(out, p)
	}
	return out
}

// abilityWords are the abilities in words.
func abilityWords(a *engine.Abilities) (out []string) {
	for _, x := range []struct {
		has  bool
		name string
	}{{a.Placed, "placed"}, {a.Delegated, "delegated"}, {a.Suspend, "suspend"}, {a.Elastic, "elastic"}, {a.Isolates, "isolates"}, {a.Proves, "proves"}} {
		if x.has {
			out = append(out, x.name)
		}
	}
	return out
}

func (s *service) enginesSaid() string {
	if len(s.cfg.Engines) == 0 {
		return "this server has no kind of engine with which a pool could be added"
	}
	return "kinds of engine here: " + strings.Join(s.cfg.Engines, ", ")
}

func (c *call) addPool() (*api.PoolDone, error) {
	req, err := transport.DecodeBody[api.NewPool](c.Call)
	if err != nil {
		return nil, err
	}
	spec := state.PoolSpec{Name: req.Name, Engine: req.Engine, Settings: req.Settings}
	if spec.Engine == "" {
		return nil, fault.New(fault.Invalid, "engine: which kind has the pool?").Advise("%s", c.s.enginesSaid())
	}
	found, err := c.s.cfg.Plane.CheckPool(c.Ctx(), spec)
	if err != nil {
		return nil, err
	}
	out := c.s.poolDone(spec.Name, spec.Engine, found)
	if err := c.s.addRuleFindings(c.Ctx(), out, found.Info.Abilities.Delegated); err != nil {
		return nil, err
	}
	if req.Check {
		return out, nil
	}
	if missing := found.Missing(); len(missing) > 0 && !req.Force {
		return nil, &lackError{spec.Name, missing}
	}
	if err := c.s.cfg.Plane.AddPool(c.Ctx(), c.ID.Actor(), spec); err != nil {
		return nil, err
	}
	out.Added = true
	return out, nil
}

func (s *service) poolDone(name, kind string, found *pools.Check) *api.PoolDone {
	out := &api.PoolDone{Name: name, Engine: kind, Nodes: len(found.Nodes), Findings: []api.Finding{}, Missing: len(found.Missing())}
	for _, f := range found.Findings {
		out.Findings = append(out.Findings, api.Finding{What: f.What, State: string(f.State), Text: f.Text, Mend: f.Mend})
	}
	return out
}

// isDelegated reports whether a pool's own scheduler chooses the nodes.
func (s *service) isDelegated(pool string) bool {
	return slices.ContainsFunc(s.cfg.Plane.Pools(), func(p pools.View) bool { return p.Name == pool && p.Delegated })
}

// addRuleFindings adds to the findings of a pool that the rules of hand-over in force name it in vain.
func (s *service) addRuleFindings(ctx context.Context, out *api.PoolDone, delegated bool) error {
	if !delegated {
		return nil
	}
	p, err := s.cfg.Plane.Policy(ctx, 0)
	if err != nil || p.Rules == nil || p.Rules.Handover.Pool(out.Name) == nil {
		return err
	}
	out.Findings = append(out.Findings, api.Finding{
		What: "hand-over", State: string(engine.Warning), Mend: delegatedRemedy,
		Text: "handover: of the policy in force names the pool, without effect: " + delegatedProblem(out.Name),
	})
	return nil
}

// lackError says that a pool lacks something without which it is not added.
type lackError struct {
	name string
	lack []engine.Finding
}

func (e *lackError) Error() string {
	what := "something is missing"
	if n := len(e.lack); n > 1 {
		what = "several things are missing"
	}
	return "pool " + e.name + ": " + what + ": " + e.lack[0].What + ": " + e.lack[0].Text
}

// Unwrap has kind and remedy.
func (e *lackError) Unwrap() error {
	return fault.New(fault.Conflict, "something is missing").Advise("mend it and add the pool again, or add it all the same: --force (--dry-run shows all that was looked at)")
}

// LocatedProblems are all of them, for the answer.
func (e *lackError) LocatedProblems() (out []api.Located) {
	for _, f := range e.lack {
		out = append(out, api.Located{Message: "pool " + e.name + ": " + f.What + ": " + f.Text, Remedy: f.Mend})
	}
	return out
}
