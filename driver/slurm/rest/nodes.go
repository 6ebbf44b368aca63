package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// machine is a node as slurmrestd shows it.
type machine struct {
	Name       text   `json:"name"`
	Address    text   `json:"address"`
	Host       text   `json:"hostname"`
	State      words  `json:"state"`
	Flags      words  `json:"state_flags"` // v0.0.38's, apart
	Reason     text   `json:"reason"`
	CPUs       number `json:"cpus"`
	Sockets    number `json:"sockets"`
	Memory     number `json:"real_memory"`
	Features   words  `json:"active_features"`
	All        words  `json:"features"`
	Partitions words  `json:"partitions"`
	GRES       text   `json:"gres"`
	Taken      text   `json:"gres_used"`
	UsedCPUs   number `json:"alloc_cpus"`
	UsedMemory number `json:"alloc_memory"`
	Comment    text   `json:"comment"`
	Extra      text   `json:"extra"`
	Instance   text   `json:"instance_id"`
}

// Nodes is site.Site's. Where nodes lie is not told by slurmrestd: the commands say it, if
// there are any.
func (s *Site) Nodes(ctx context.Context) ([]site.Node, error) {
	var a struct {
		response
		Nodes []machine `json:"nodes"`
	}
	if err := s.callAPI(ctx, &request{method: http.MethodGet, base: "slurm", path: "/nodes"}, &a); err != nil {
		return nil, err
	}
	out := make([]site.Node, 0, len(a.Nodes))
	for i := range a.Nodes {
		m := &a.Nodes[i]
		if m.Name == "" {
			return nil, fault.New(fault.Unavailable, "slurmrestd shows a node without a name")
		}
		out = append(out, m.siteNode())
	}
	if s.cfg.Commands == nil {
		return out, nil
	}
	full, err := s.cfg.Commands.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	places := make(map[string][]string, len(full))
	for i := range full {
		places[full[i].Name] = full[i].Path
	}
	for i := range out {
		out[i].Path = places[out[i].Name]
	}
	return out, nil
}

// down and drained are Slurm's words, in lower case, for nodes on which nothing begins.
var (
	down    = []string{"down", "error", "future", "unknown", "not_responding", "powered_down", "power_down", "powering_down", "fail", "invalid_reg"}
	drained = []string{"drain", "drained", "draining", "maintenance", "maint", "reboot_issued", "reboot_requested"}
)

func (m *machine) siteNode() site.Node {
	states := slices.Concat(m.State, m.Flags)
	for i := range states {
		states[i] = strings.ToLower(states[i])
	}
	has := func(some []string) bool {
		return slices.ContainsFunc(states, func(w string) bool { return slices.Contains(some, w) })
	}
	const kib = 1 << 10
	n := site.Node{
		Name: string(m.Name), Address: string(m.Address), Host: string(m.Host), State: strings.Join(states, "+"), Reason: string(m.Reason),
		CPUs: int(m.CPUs.integerBelow(1 << 31)), Sockets: int(m.Sockets.integerBelow(1 << 31)), Memory: m.Memory.integerBelow(1<<43) * kib * kib,
		Features: slices.Clone(m.Features), Parts: m.Partitions, GRES: string(m.GRES), Taken: string(m.Taken),
		UsedCPUs: int(m.UsedCPUs.integerBelow(1 << 31)), UsedBytes: m.UsedMemory.integerBelow(1<<43) * kib * kib,
		Down: has(down), Drained: has(drained), Comment: string(m.Comment), Extra: string(m.Extra), Instance: string(m.Instance),
	}
	if n.Features == nil {
		n.Features = slices.Clone(m.All)
	}
	slices.Sort(n.Features)
	n.Available = !n.Down && !n.Drained
	return n
}
