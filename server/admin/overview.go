package admin

import (
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// mostRecent is how many events an overview has at most.
const mostRecent = 200

func (s *service) registerOverview() {
	type in struct {
		Recent int `query:"recent" minimum:"0" maximum:"200" doc:"events that changed something last; 0: 20"`
	}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/overview", Verb: auth.SeeNodes, ID: "overview", Tag: "nodes",
		Summary: "The cluster at a glance", About: "Counts of jobs are of all users, as the metrics are. Events are those that a watch of the caller shows.",
	}, func(c *call, in *in) (*api.Overview, error) {
		n := in.Recent
		if n == 0 {
			n = 20
		}
		return s.showOverview(c, min(n, mostRecent))
	})
}

func (s *service) showOverview(c *call, recent int) (*api.Overview, error) {
	views, err := s.views.get(c.Ctx())
	if err != nil {
		return nil, err
	}
	stats := s.stats.get()
	out := &api.Overview{
		Jobs: withoutZeros(stats.Jobs), Waiting: withoutZeros(stats.Waiting), Nodes: withoutZeros(stats.Nodes),
		Use: useByPool(views, s.enginesByPool()), Recent: []api.Event{}, Change: s.views.lastEvent(),
	}
	if s.cfg.Recent != nil {
		out.Recent = append(out.Recent, s.cfg.Recent(c.Call, recent)...)
	}
	return out, nil
}

func withoutZeros(counts map[string]int) map[string]int {
	out := map[string]int{}
	for name, n := range counts {
		if n != 0 {
			out[name] = n
		}
	}
	return out
}

// useByPool sums nodes by pool, in the order in which pools come first.
func useByPool(views []query.NodeView, engines map[string]string) []api.PoolUse {
	out := []api.PoolUse{}
	at := map[string]int{}
	for i := range views {
		v := &views[i]
		n := &v.Node
		k, ok := at[n.Pool]
		if !ok {
			k = len(out)
			at[n.Pool] = k
			out = append(out, api.PoolUse{Pool: n.Pool, Engine: engines[n.Pool]})
		}
		p := &out[k]
		p.Nodes++
		if n.State == fleet.Up {
			p.Up++
		}
		p.CPUs += float64(n.Capacity.CPU) / float64(resource.OneCPU)
		p.CPUsUsed += float64(v.Used.CPU) / float64(resource.OneCPU)
		p.Memory += int64(n.Capacity.Memory)
		p.MemoryUsed += int64(v.Used.Memory)
		addDevices(p, v)
	}
	slices.SortFunc(out, func(a, b api.PoolUse) int { return strings.Compare(a.Pool, b.Pool) })
	for i := range out {
		slices.SortFunc(out[i].Devices, func(a, b api.DeviceUse) int { return strings.Compare(a.Kind+a.Type, b.Kind+b.Type) })
	}
	return out
}

func addDevices(p *api.PoolUse, v *query.NodeView) {
	use := func(kind, typ string) *api.DeviceUse {
		for i := range p.Devices {
			if d := &p.Devices[i]; d.Kind == kind && d.Type == typ {
				return d
			}
		}
		p.Devices = append(p.Devices, api.DeviceUse{Kind: kind, Type: typ})
		return &p.Devices[len(p.Devices)-1]
	}
	if aggregate.Is(v.Node.Name) {
		for _, x := range countedOf(&v.Node, v.Used) {
			kind, typ, _ := strings.Cut(x.Name, ":")
			if d := use(kind, typ); typ != "" || !hasTypes(v) {
				d.All += int(x.All)
				d.Used += int(x.Used)
			}
		}
		p.Devices = slices.DeleteFunc(p.Devices, func(d api.DeviceUse) bool { return d.All == 0 })
		return
	}
	letters := deviceLetters(v)
	for i := range v.Node.Devices {
		d := use(v.Node.Devices[i].Kind, v.Node.Devices[i].Type)
		d.All++
		switch letters[i] {
		case 'u':
			d.Used++
		case 'f':
			d.Foreign++
		case 'x':
			d.Fenced++
		case 'd':
			d.Down++
		}
	}
}

// hasTypes reports whether a pool as a whole counts its GPUs by type too.
func hasTypes(v *query.NodeView) bool {
	return slices.ContainsFunc(countedOf(&v.Node, v.Used), func(x api.Counted) bool { return strings.Contains(x.Name, ":") })
}
