package control

import (
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
)

// AddedEngine is the engine of a pool that was added while a server ran, for what an engine
// can do beside running work (engine.Logger, engine.Execer). It is not to be closed. nil:
// the pool is of the configuration, or there is none of that name.
func (rd *reader) AddedEngine(pool string) engine.Engine {
	if p := rd.of.pools.ByName(pool); p != nil && p.Own {
		return p.Engine
	}
	return nil
}

// Pools lists the pools that are configured and those that were added. No engine is asked.
func (rd *reader) Pools() []pools.View {
	rd.of.state.RLock()
	defer rd.of.state.RUnlock()
	all := rd.of.pools.AllPools()
	out := make([]pools.View, len(all))
	at := make(map[string]*pools.View, len(all))
	for i, p := range all {
		v := &out[i]
		*v = pools.View{Pool: p.Pool.Pool, Default: i == 0, Answered: p.Known, Gone: p.IsUnconfigured()}
		v.Broken = p.OpenFailure()
		if s, ok := rd.of.state.Pools[p.Name]; ok {
			v.Added = &s
		}
		v.Pulses = p.HasHeartbeat()
		p.Status.FillView(v)
		at[p.Name] = v
	}
	for _, n := range rd.of.state.Nodes.All() {
		if v := at[n.Pool]; v != nil {
			v.Nodes++
			v.Devices += len(n.Devices)
			for k := range n.Devices {
				if n.Devices[k].Declared {
					v.Declared++
				}
			}
		}
	}
	for i, p := range all {
		if v := &out[i]; p.Delegated {
			v.Delegated = true
			v.Nodes, v.Devices = len(p.Real.Nodes), 0
			for k := range p.Real.Nodes {
				v.Devices += len(p.Real.Nodes[k].Devices)
			}
		}
	}
	return out
}
