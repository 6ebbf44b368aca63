package dra

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// Numbers are those of devices, by node: a device keeps its number as long as this process
// lives and something of ours has it, whatever is published beside it.
type Numbers map[string]map[Handle]int

// numberOf is the number of a device; a new one gets the least that is free.
func (n Numbers) numberOf(node string, h Handle) int {
	all := n[node]
	if all == nil {
		all = map[Handle]int{}
		n[node] = all
	}
	if i, ok := all[h]; ok {
		return i
	}
	used := map[int]bool{}
	for _, i := range all {
		used[i] = true
	}
	i := 0
	for used[i] {
		i++
	}
	all[h] = i
	return i
}

// Remember takes the numbers by which a launch knows its devices.
func (n Numbers) Remember(nodes []render.Node) {
	for i := range nodes {
		for k, p := range nodes[i].Pieces {
			if p.Driver == "" {
				continue
			}
			if n[nodes[i].Name] == nil {
				n[nodes[i].Name] = map[Handle]int{}
			}
			n[nodes[i].Name][HandleOf(p)] = nodes[i].Devices[k].Index
		}
	}
}

// Settle brings the devices of a node into their order, gives them their numbers, and links those
// that are below one root of PCIe.
func (t *Tray) Settle(node string, n Numbers) {
	slices.SortFunc(t.Offers, func(a, b Offer) int {
		return cmp.Or(strings.Compare(a.Piece.Driver, b.Piece.Driver), strings.Compare(a.Piece.Pool, b.Piece.Pool), hostlist.Compare(a.Piece.Device, b.Piece.Device))
	})
	for i := range t.Offers {
		t.Offers[i].Device.Index = n.numberOf(node, HandleOf(t.Offers[i].Piece))
	}
	for i := range t.Offers {
		o := &t.Offers[i]
		o.Device.Links = nil
		for k := range t.Offers {
			if i != k && o.root != "" && o.root == t.Offers[k].root {
				o.Device.Links = append(o.Device.Links, fleet.Link{Peer: t.Offers[k].Device.Index, Kind: fleet.LinkHost})
			}
		}
		slices.SortFunc(o.Device.Links, func(a, b fleet.Link) int { return a.Peer - b.Peer })
	}
}
