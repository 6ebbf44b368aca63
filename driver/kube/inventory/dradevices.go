package inventory

import (
	"context"
	"iter"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/dra"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
)

// devicesOf asks for everything that DRA has of the classes of the settings. nil: these name
// none.
func (s *Inventory) devicesOf(ctx context.Context) (*dra.Stock, error) {
	if len(s.terms.Classes) == 0 {
		return nil, nil
	}
	return dra.Read(ctx, s.cluster, s.terms.Classes, func(c *resourcev1.ResourceClaim) bool {
		return s.server != "" && c.Labels[render.LabelServer] == s.server
	})
}

// attachDRADevices puts what DRA has on nodes in the place of what plugins count there: these are the
// same devices. d is nil where the settings name no class.
func attachDRADevices(t *settings.Terms, all []Machine, d *dra.Stock, n dra.Numbers) {
	if d == nil {
		return
	}
	for i := range all {
		if tray := d.Trays[all[i].Node.Name]; tray != nil {
			tray.Settle(all[i].Node.Name, n)
			all[i].addClaimableDevices(t, tray, d.Taken)
		}
	}
}

// addClaimableDevices has the devices of DRA on a node. What pods have of them stands in Others and Ours,
// by the driver.
func (m *Machine) addClaimableDevices(t *settings.Terms, has *dra.Tray, taken map[dra.Handle]bool) {
	blind := m.dropPluginDevices()
	m.Withheld = has.Withheld
	for i := range has.Offers {
		o := &has.Offers[i]
		d := o.Device
		ours, is := taken[dra.HandleOf(o.Piece)]
		if is && ours {
			m.Ours.Devices[o.Piece.Driver]++
		} else if is {
			m.Others.Devices[o.Piece.Driver]++
		}
		if t.Placed && (is && !ours || blind) {
			d.Foreign = 1
		}
		m.Node.Devices, m.Ask, m.Pieces = append(m.Node.Devices, d), append(m.Ask, ""), append(m.Pieces, o.Piece)
		m.Says = append(m.Says, o.Says)
		if o.Driver != "" {
			m.Node.Features = append(m.Node.Features, "driver-"+o.Driver)
		}
	}
	slices.Sort(m.Node.Features)
	m.Node.Features = slices.Compact(m.Node.Features)
}

// dropPluginDevices takes off a node what a plugin counts there: DRA has the same devices. true: pods
// have some of these, and which ones only the kubelet knows.
func (m *Machine) dropPluginDevices() (blind bool) {
	plugin := len(m.Node.Devices)+m.Ill > 0
	for _, u := range []*Use{&m.Others, &m.Ours} {
		for _, k := range u.Devices {
			blind = blind || plugin && k > 0 // with no plugin the resource is one of DRA's, and a claim says which they are
		}
		u.Devices = map[string]int{}
	}
	switch {
	case blind:
		m.Double = "GPUs are counted by a plugin and offered by DRA, and pods have some by count; which ones is not known: none is given by a claim before these pods have ended"
	case plugin:
		m.Double = "GPUs are counted by a plugin and offered by DRA: they are taken for the same, and given by claims"
	}
	m.Node.Devices, m.Ask, m.Ill = nil, nil, 0
	return blind
}

// OfferedDevices are the devices of DRA that nodes have.
func OfferedDevices(all []Machine) iter.Seq[dra.Offer] {
	return func(yield func(dra.Offer) bool) {
		for i := range all {
			for k, p := range all[i].Pieces {
				if !yield(dra.Offer{Piece: p, Device: all[i].Node.Devices[k], Says: all[i].Says[k]}) {
					return
				}
			}
		}
	}
}

// RenderNode is a node as launches have it.
func (m *Machine) RenderNode(t *settings.Terms) render.Node {
	out := render.Node{Node: m.Node, Ask: m.Ask, Pieces: m.Pieces, Strict: m.Strict}
	for i := range m.Taints {
		if m.Pieces != nil && t.IsGPU(m.Taints[i].Key) {
			out.Bears = append(out.Bears, m.Taints[i].Key)
		}
	}
	return out
}
