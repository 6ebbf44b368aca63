package pools

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// SuspectTwins finds nodes of a pool that are taken for other machines than nodes of other pools, and yet have the
// address of one of them, or its name without the domain: one machine under two names is used by both engines. It is
// nil where there are none. Several nodes of a pool with one address say nothing.
func SuspectTwins(pool string, nodes, others []fleet.Node) []engine.Finding {
	at := map[string][]*fleet.Node{} // by hint
	for i := range others {
		if n := &others[i]; n.Pool != pool {
			for _, h := range twinHints(n) {
				at[h] = append(at[h], n)
			}
		}
	}
	if len(at) == 0 {
		return nil
	}
	count := map[string]int{}
	for i := range nodes {
		for _, h := range twinHints(&nodes[i]) {
			count[h]++
		}
	}
	var names []string
	twins := map[string][]string{} // pool → its nodes
	for i := range nodes {
		n := &nodes[i]
		found := false
		for _, h := range twinHints(n) {
			for _, o := range at[h] {
				alone := !slices.ContainsFunc(at[h], func(x *fleet.Node) bool { return x != o && x.Pool == o.Pool })
				if count[h] == 1 && alone && !shareMachine(n, o) {
					twins[o.Pool], found = append(twins[o.Pool], o.Name), true
				}
			}
		}
		if found {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	var whose []string
	for _, p := range slices.Sorted(maps.Keys(twins)) {
		slices.Sort(twins[p])
		whose = append(whose, fmt.Sprintf("%s of pool %s", hostlist.Compress(slices.Compact(twins[p])), p))
	}
	return []engine.Finding{{
		What: "machine names", State: engine.Warning,
		Text: fmt.Sprintf("%s: seem to be the machines of %s, by their addresses or names without a domain, and are taken for others; both engines may start work there at once", hostlist.Compress(names), strings.Join(whose, ", ")),
		Mend: "give each machine one name in both engines (Slurm: NodeHostname), or leave it out of one of the pools",
	}}
}

// twinHints are what two nodes of one machine may have in common: addresses, and names without a domain.
func twinHints(n *fleet.Node) []string {
	if n.Virtual {
		return nil
	}
	var out []string
	for _, text := range append([]string{n.Address, n.Name}, n.Hosts...) {
		text = strings.ToLower(text)
		ip := net.ParseIP(text)
		if ip == nil {
			text, _, _ = strings.Cut(text, ".")
		}
		if text != "" && text != "localhost" && !strings.HasPrefix(text, "@") && (ip == nil || !ip.IsLoopback()) && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// shareMachine reports whether two nodes of different pools are taken for one machine; as state.NewNodesByMachine.
func shareMachine(a, b *fleet.Node) bool {
	return slices.ContainsFunc(a.Machines(), func(m string) bool { return slices.Contains(b.Machines(), m) }) ||
		a.Name == b.Name && (len(a.Hosts) == 0 || len(b.Hosts) == 0)
}
