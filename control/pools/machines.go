package pools

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

// Machines tells which pool has a machine, for all pools but one. A machine is known by its name
// (fleet.Node.Machines). Two nodes of one name are taken for one machine unless both say on
// which machines they are.
type Machines struct {
	pool   string
	nodes  *fleet.ByNode[fleet.Node]
	byHost map[string]*fleet.Node // nil: no node says that it is on a machine of another name
}

// MachinesBut lists the machines of all pools but one, for nodes of that one. A node that is left over has
// none: its machine is another pool's; nil: none is.
func MachinesBut(pool string, known *fleet.ByNode[fleet.Node], nodes []fleet.Node, leftover func(fleet.NodeKey) bool) Machines {
	m := Machines{pool: pool, nodes: known}
	said := false
	for i := range nodes {
		said = said || len(nodes[i].Hosts) > 0
	}
	for k, n := range known.All() {
		said = said || k.Pool != pool && len(n.Hosts) > 0
	}
	if !said {
		return m
	}
	m.byHost = map[string]*fleet.Node{}
	for k, n := range known.All() {
		if k.Pool == pool || leftover != nil && leftover(k) {
			continue
		}
		for _, host := range n.Machines() {
			if was := m.byHost[host]; was == nil || k.Compare(was.Key()) < 0 {
				m.byHost[host] = &n
			}
		}
	}
	return m
}

// OtherPoolNode is the first machine of a node that another pool has, and the node that it is
// there; nil: there is none.
func (m Machines) OtherPoolNode(n *fleet.Node) (string, *fleet.Node) {
	if m.byHost != nil {
		for _, host := range n.Machines() {
			if o := m.byHost[host]; o != nil {
				return host, o
			}
		}
	}
	for _, pool := range m.nodes.Pools(n.Name) {
		if o, _ := m.nodes.Get(fleet.NodeKey{Pool: pool, Name: n.Name}); pool != m.pool && (len(n.Hosts) == 0 || len(o.Hosts) == 0) {
			return n.Name, &o
		}
	}
	return "", nil
}

// WhoseMachine says why a node is not used.
func WhoseMachine(host string, o *fleet.Node) string {
	if aggregate.Is(o.Name) {
		return fmt.Sprintf("it is on machine %s, which pool %s has", host, o.Pool)
	}
	return fmt.Sprintf("it is on machine %s, which pool %s has as %s", host, o.Pool, o.Name)
}

// sharedMachines finds nodes of a pool on machines that other pools have: they are left to these. A
// pool of which nothing would be left is not to be added.
func (m Machines) sharedMachines(nodes []fleet.Node) []engine.Finding {
	var names []string
	why := ""
	for i := range nodes {
		if host, o := m.OtherPoolNode(&nodes[i]); o != nil && o.Name != nodes[i].Name {
			if names = append(names, nodes[i].Name); why == "" {
				why = WhoseMachine(host, o)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	f := engine.Finding{
		What: "machines", State: engine.Warning, Text: fmt.Sprintf("%s: %s; a machine is in one pool only", hostlist.Compress(names), why),
		Mend: "give these machines to one of the two pools, or remove the other: cox pool remove",
	}
	if len(names) == len(nodes) {
		f.State = engine.Missing
	}
	return []engine.Finding{f}
}

// EqualNodes reports whether two descriptions of a node are the same to everybody who sees them.
func EqualNodes(a, b *fleet.Node) bool {
	return a.State == b.State && a.Why == b.Why && a.Fence == b.Fence && a.Address == b.Address && a.Sockets == b.Sockets && slices.Equal(a.Hosts, b.Hosts) &&
		slices.Equal(a.Features, b.Features) && slices.Equal(a.Parts, b.Parts) && slices.Equal(a.Path, b.Path) &&
		a.Capacity.Sub(b.Capacity).IsZero() && slices.EqualFunc(a.Devices, b.Devices, equalDevices)
}

func equalDevices(a, b fleet.Device) bool {
	if !slices.Equal(a.Links, b.Links) {
		return false
	}
	return a.Index == b.Index && a.Minor == b.Minor && a.Kind == b.Kind && a.Type == b.Type && a.UUID == b.UUID &&
		a.Memory == b.Memory && a.NUMA == b.NUMA && a.Bus == b.Bus && a.Declared == b.Declared &&
		a.Profile == b.Profile && a.Parent == b.Parent && a.Foreign == b.Foreign
}
