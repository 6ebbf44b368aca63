package pools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// SharedMachines finds nodes of a pool on machines that other pools own, or report: no work starts there before
// they are handed over. It is nil where there are none. The caller holds the lock of the state.
func SharedMachines(pool string, s *state.State, nodes []fleet.Node) []engine.Finding {
	var names, several []string
	of := map[string][]string{} // pool → its machines
	for i := range nodes {
		shared := false
		for _, m := range nodes[i].Machines() {
			if owner := otherOwner(pool, s, m); owner != "" {
				of[owner], shared = append(of[owner], m), true
			}
		}
		if shared {
			names = append(names, nodes[i].Name)
			if all := nodes[i].Machines(); len(all) > 1 {
				several = append(several, nodes[i].Name+" on "+strings.Join(all, " and "))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	var whose []string
	for _, owner := range slices.Sorted(maps.Keys(of)) {
		slices.Sort(of[owner])
		whose = append(whose, fmt.Sprintf("%s of pool %s", hostlist.Compress(slices.Compact(of[owner])), owner))
	}
	found := []engine.Finding{{
		What: "machines", State: engine.Warning,
		Text: fmt.Sprintf("%s: on %s; nothing starts there until the machine is handed over to pool %s", hostlist.Compress(names), strings.Join(whose, ", "), pool),
		Mend: "hand the machines over: cox node move",
	}}
	if len(several) > 0 {
		found = append(found, engine.Finding{
			What: "machine names", State: engine.Warning,
			Text: "nodes on several machines cannot be handed over: " + strings.Join(several, ", "),
			Mend: "if these are two names of one machine, have the kubelet's host name be the node's name: --hostname-override",
		})
	}
	return found
}

// otherOwner is the pool that owns a machine, or would with a second pool; empty: it is none but this one.
func otherOwner(pool string, s *state.State, machine string) string {
	if o := s.Owners.Of(machine); o != nil {
		if o.Pool == pool {
			return ""
		}
		return o.Pool
	}
	for _, k := range s.OnMachines.On(machine) {
		if k.Pool != pool {
			return k.Pool
		}
	}
	return ""
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
