package kube

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/engine/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine/kube/render"
	"github.com/coxswain-sched/coxswain/engine/local/discover"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/hostlist"
	amount "github.com/coxswain-sched/coxswain/resource"
)

// Resources of dynamic resource allocation (DRA).
var (
	slicesDRA  = cluster.Resource{Group: resourcev1.GroupName, Version: "v1", Name: "resourceslices", Global: true}
	classesDRA = cluster.Resource{Group: resourcev1.GroupName, Version: "v1", Name: "deviceclasses", Global: true}
	claimsDRA  = cluster.Resource{Group: resourcev1.GroupName, Version: "v1", Name: "resourceclaims"}
)

// class is a DeviceClass of the settings: what is true of its devices.
type class struct {
	name  string
	terms []term
}

// readClass reads a DeviceClass. fault.Unsupported: its selectors say more than is understood.
func readClass(c *resourcev1.DeviceClass) (class, error) {
	out := class{name: c.Name}
	for _, s := range c.Spec.Selectors {
		if s.CEL == nil {
			return out, unreadable(c.Name, errors.New("a selector that is no CEL"))
		}
		t, err := selector(s.CEL.Expression)
		if err != nil {
			return out, unreadable(c.Name, err)
		}
		out.terms = append(out.terms, t)
	}
	return out, nil
}

func unreadable(name string, err error) error {
	return fault.New(fault.Unsupported, "DeviceClass %s: which devices it has is not understood: %w", name, err).
		Advise("name in device_class a class that compares device.driver, device.attributes and device.capacity with literals")
}

func (c *class) has(d *candidate) bool {
	return !slices.ContainsFunc(c.terms, func(t term) bool { return !t.matches(d) })
}

// handle names a device in the whole cluster.
type handle struct{ driver, pool, device string }

func (h handle) String() string { return h.driver + "/" + h.pool + "/" + h.device }

// allocated are the devices that a claim has; with access for an administrator it has none: others
// have them at the same time.
func allocated(c *resourcev1.ResourceClaim) (out []handle) {
	if c.Status.Allocation == nil {
		return nil
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.AdminAccess == nil || !*r.AdminAccess {
			out = append(out, handle{r.Driver, r.Pool, r.Device})
		}
	}
	return out
}

// offer is a device that DRA has on a node and that a claim of ours can have.
type offer struct {
	piece  render.Piece
	device fleet.Device // without its number
	root   string       // of PCIe, below which it is; empty: not known
	driver string       // its version; empty: not known
	says   string       // what tells it from devices of another type, in CEL
}

// tray is what DRA has on a node.
type tray struct {
	offers   []offer
	withheld map[string]int // devices that are not offered, by the reason
}

// stockDRA is what DRA has in a cluster.
type stockDRA struct {
	trays map[string]*tray // by node; of devices that are on none, by ""
	taken map[handle]bool  // held by claims: by ours (true), by others'
	wrong []error          // classes that are not to be had
}

func (d *stockDRA) tray(node string) *tray {
	if d.trays[node] == nil {
		d.trays[node] = &tray{withheld: map[string]int{}}
	}
	return d.trays[node]
}

// devicesOf asks for everything that DRA has of the classes of the settings. nil: these name
// none.
func (s *Survey) devicesOf(ctx context.Context) (*stockDRA, error) {
	if len(s.terms.Classes) == 0 {
		return nil, nil
	}
	out := &stockDRA{trays: map[string]*tray{}, taken: map[handle]bool{}}
	classes, err := s.classes(ctx, out)
	if err != nil || len(classes) == 0 {
		return out, err
	}
	var all []resourcev1.ResourceSlice
	if err := unbroken(func() error {
		all = nil
		_, err := cluster.List(ctx, s.cluster, slicesDRA, cluster.Selection{}, func(x *resourcev1.ResourceSlice) error {
			all = append(all, *x)
			return nil
		})
		return err
	}); err != nil {
		return nil, err
	}
	out.read(all, classes)
	err = unbroken(func() error {
		clear(out.taken)
		_, err := cluster.List(ctx, s.cluster, claimsDRA, cluster.Selection{}, func(c *resourcev1.ResourceClaim) error {
			for _, h := range allocated(c) {
				out.taken[h] = s.server != "" && c.Labels[LabelServer] == s.server
			}
			return nil
		})
		return err
	})
	return out, err
}

// classes are those of the settings, in their order. Those that are not to be had have no
// devices, and stand in d.wrong.
func (s *Survey) classes(ctx context.Context, d *stockDRA) (out []class, err error) {
	for _, name := range s.terms.Classes {
		var c resourcev1.DeviceClass
		err := s.cluster.Get(ctx, classesDRA, "", name, &c)
		switch fault.KindOf(err) {
		case fault.NotFound:
			err = fault.New(fault.NotFound, "there is no DeviceClass %s", name).Advise("kubectl get deviceclasses shows what there is; the setting device_class names them")
		case fault.Unsupported:
			err = fault.New(fault.Unsupported, "the cluster has no devices by DRA (resource.k8s.io/v1)").Advise("leave device_class, or upgrade the cluster to 1.34 or later")
		default:
			if err != nil {
				return nil, err
			}
			var x class
			if x, err = readClass(&c); err == nil {
				out = append(out, x)
				continue
			}
		}
		d.wrong = append(d.wrong, err)
	}
	return out, nil
}

// pool names the devices that a driver manages together.
type pool struct{ driver, name string }

// read takes what drivers have published. Of a pool the newest generation counts, and nothing
// before all of it is there.
func (d *stockDRA) read(all []resourcev1.ResourceSlice, classes []class) {
	newest, parts := map[pool]int64{}, map[pool]int64{}
	of := func(x *resourcev1.ResourceSlice) pool { return pool{x.Spec.Driver, x.Spec.Pool.Name} }
	for i := range all {
		newest[of(&all[i])] = max(newest[of(&all[i])], all[i].Spec.Pool.Generation)
	}
	for i := range all {
		if x := &all[i]; x.Spec.Pool.Generation == newest[of(x)] {
			parts[of(x)]++
		}
	}
	for i := range all {
		x := &all[i]
		if x.Spec.Pool.Generation != newest[of(x)] {
			continue
		}
		for k := range x.Spec.Devices {
			c := &candidate{driver: x.Spec.Driver, device: &x.Spec.Devices[k]}
			j := slices.IndexFunc(classes, func(c2 class) bool { return c2.has(c) })
			if j < 0 {
				continue
			}
			node := cmp.Or(deref(x.Spec.NodeName), deref(c.device.NodeName))
			why := withheld(x, c.device, node)
			if why == "" && parts[of(x)] != x.Spec.Pool.ResourceSliceCount {
				why = "their driver is still publishing its pool " + x.Spec.Pool.Name
			}
			if t := d.tray(node); why != "" {
				t.withheld[why]++
			} else {
				t.offers = append(t.offers, describe(c, render.Piece{Class: classes[j].name, Driver: x.Spec.Driver, Pool: x.Spec.Pool.Name, Device: c.device.Name}))
			}
		}
	}
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// withheld says why a device is not offered; empty: it is.
func withheld(x *resourcev1.ResourceSlice, v *resourcev1.Device, node string) string {
	for _, t := range v.Taints {
		if t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute {
			return "their driver or an administrator has put the taint " + taint(&corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}) + " on them"
		}
	}
	switch {
	case node == "":
		return "they are not of one node"
	case len(v.ConsumesCounters) > 0:
		return "they are parts of a device that is divided when it is claimed (shared counters)"
	case deref(v.AllowMultipleAllocations):
		return "several claims have them at the same time (consumable capacity)"
	case deref(v.BindsToNode) || len(v.BindingConditions) > 0:
		return "they have to be made ready after they are claimed (binding conditions)"
	case stated(v, "type") == "vfio":
		return "they are for virtual machines"
	}
	return ""
}

// attribute is one of a device, by its name in any domain; nil: it has none of that name.
func attribute(v *resourcev1.Device, name string) *resourcev1.DeviceAttribute {
	for _, full := range slices.Sorted(maps.Keys(v.Attributes)) {
		if f := string(full); f[strings.LastIndexByte(f, '/')+1:] == name {
			a := v.Attributes[full]
			return &a
		}
	}
	return nil
}

// stated is the first of attributes that is a text or a version; empty: none is.
func stated(v *resourcev1.Device, names ...string) string {
	for _, n := range names {
		if a := attribute(v, n); a != nil {
			if s := cmp.Or(deref(a.StringValue), deref(a.VersionValue)); s != "" {
				return s
			}
		}
	}
	return ""
}

// products are the attributes that may say what a device is, the first of which says it.
var products = []string{"productName", "model", "product", "family"}

// describe reads a device's attributes. Drivers of GPUs have names of their own for the same.
func describe(c *candidate, p render.Piece) offer {
	v := c.device
	o := offer{piece: p, root: stated(v, "pcieRoot"), driver: stated(v, "driverVersion"), device: fleet.Device{
		Minor: -1, Kind: "gpu", NUMA: -1, Type: discover.TypeName(stated(v, products...)),
		UUID: stated(v, "uuid"), Bus: stated(v, "pciBusID", "pcieBusID", "pciAddr"), Parent: stated(v, "parentUUID"), Profile: strings.ToLower(stated(v, "profile")),
	}}
	if o.device.Profile == "" && stated(v, "type") == "mig" {
		o.device.Profile = "mig"
	}
	for _, n := range []string{"numaNode", "numa"} {
		if a := attribute(v, n); a != nil && a.IntValue != nil && *a.IntValue >= 0 {
			o.device.NUMA = int(*a.IntValue)
		}
	}
	o.says = told(c)
	for name, amt := range v.Capacity {
		if f := string(name); f[strings.LastIndexByte(f, '/')+1:] == "memory" {
			o.device.Memory = amount.Amount(amt.Value.Value())
		}
	}
	return o
}

// numbers are those of devices, by node: a device keeps its number as long as this process
// lives and something of ours has it, whatever is published beside it.
type numbers map[string]map[handle]int

// of is the number of a device; a new one gets the least that is free.
func (n numbers) of(node string, h handle) int {
	all := n[node]
	if all == nil {
		all = map[handle]int{}
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

// remember takes the numbers by which a launch knows its devices.
func (n numbers) remember(nodes []render.Node) {
	for i := range nodes {
		for k, p := range nodes[i].Pieces {
			if p.Driver == "" {
				continue
			}
			if n[nodes[i].Name] == nil {
				n[nodes[i].Name] = map[handle]int{}
			}
			n[nodes[i].Name][handle{p.Driver, p.Pool, p.Device}] = nodes[i].Devices[k].Index
		}
	}
}

// attach puts what DRA has on nodes in the place of what plugins count there: these are the
// same devices.
func (d *stockDRA) attach(t *Terms, all []Machine, n numbers) {
	if d == nil {
		return
	}
	for i := range all {
		if tray := d.trays[all[i].Node.Name]; tray != nil {
			all[i].claimable(t, tray, d.taken, n)
		}
	}
}

// claimable has the devices of DRA on a node. What pods have of them stands in Others and Ours,
// by the driver.
func (m *Machine) claimable(t *Terms, has *tray, taken map[handle]bool, n numbers) {
	blind := m.uncount()
	m.Withheld = has.withheld
	slices.SortFunc(has.offers, func(a, b offer) int {
		return cmp.Or(strings.Compare(a.piece.Driver, b.piece.Driver), strings.Compare(a.piece.Pool, b.piece.Pool), hostlist.Compare(a.piece.Device, b.piece.Device))
	})
	for _, o := range has.offers {
		h := handle{o.piece.Driver, o.piece.Pool, o.piece.Device}
		o.device.Index = n.of(m.Node.Name, h)
		ours, is := taken[h]
		if is && ours {
			m.Ours.Devices[h.driver]++
		} else if is {
			m.Others.Devices[h.driver]++
		}
		if t.Placed && (is && !ours || blind) {
			o.device.Foreign = 1
		}
		m.Node.Devices, m.Ask, m.Pieces = append(m.Node.Devices, o.device), append(m.Ask, ""), append(m.Pieces, o.piece)
		m.Says = append(m.Says, o.says)
		if o.driver != "" {
			m.Node.Features = append(m.Node.Features, "driver-"+o.driver)
		}
	}
	m.near(has.offers)
	slices.Sort(m.Node.Features)
	m.Node.Features = slices.Compact(m.Node.Features)
}

// uncount takes off a node what a plugin counts there: DRA has the same devices. true: pods
// have some of these, and which ones only the kubelet knows.
func (m *Machine) uncount() (blind bool) {
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

// near links devices that are below one root of PCIe.
func (m *Machine) near(offers []offer) {
	for i := range offers {
		for k := range offers {
			if i != k && offers[i].root != "" && offers[i].root == offers[k].root {
				m.Node.Devices[i].Links = append(m.Node.Devices[i].Links, fleet.Link{Peer: m.Node.Devices[k].Index, Kind: fleet.LinkHost})
			}
		}
		slices.SortFunc(m.Node.Devices[i].Links, func(a, b fleet.Link) int { return a.Peer - b.Peer })
	}
}

// deviceRights are what the classes of the settings take in the whole cluster.
func (t *Terms) deviceRights() (out []Right) {
	for _, c := range t.Classes {
		out = append(out, Right{Resource: classesDRA, Verbs: []string{"get"}, Name: c, All: true, Why: "which devices are the pool's GPUs"})
	}
	if len(t.Classes) > 0 {
		out = append(out, Right{Resource: claimsDRA, Verbs: []string{"list"}, All: true, Why: "which devices others have"})
	}
	if len(t.Classes) > 0 && t.Placed {
		out = append(out, Right{Resource: claimsDRA, Part: "binding", Verbs: []string{"patch"}, All: true, Why: "claims are given the devices that were chosen, from Kubernetes 1.36 on"})
	}
	return out
}

// claimRights are what they take in a namespace of jobs.
func (t *Terms) claimRights() []Right {
	if len(t.Classes) == 0 {
		return nil
	}
	out := []Right{
		{Resource: claimsDRA, Verbs: []string{"create", "get"}, Why: "pods claim their devices"},
		{Resource: cluster.Events, Verbs: []string{"list"}, Why: "why a kubelet cannot prepare devices"},
	}
	if t.Placed {
		out = append(out, Right{Resource: claimsDRA, Part: "status", Verbs: []string{"patch"}, Why: "claims are given the devices that were chosen"})
	}
	return out
}
