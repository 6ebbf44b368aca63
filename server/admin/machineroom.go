package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// nodeViews keeps what the control plane said of all nodes last, for many who look at the same: a view
// of ten thousand nodes takes a tenth of a second. It is safe for concurrent use.
type nodeViews struct {
	plane Plane
	now   func() time.Time

	mu    sync.Mutex // held while one is made: who waits for it uses it too
	at    time.Time
	event uint64
	views []query.NodeView
}

// viewsAge bounds the age of views where no event has happened: engines report states of nodes without
// one.
const viewsAge = 5 * time.Second

// get returns views that reflect every event so far. They are not to be written to.
func (n *nodeViews) get(ctx context.Context) ([]query.NodeView, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	event, now := n.plane.LastEvent(), n.now()
	if n.views != nil && n.event == event && now.Sub(n.at) < viewsAge && !now.Before(n.at) {
		return n.views, nil
	}
	views, err := n.plane.NodeViews(ctx)
	if err != nil {
		return nil, err
	}
	n.views, n.event, n.at = views, event, now
	return views, nil
}

// keptStats keeps counts of the control plane for a second: to count, every live job is looked at. It is
// safe for concurrent use.
type keptStats struct {
	plane Plane
	now   func() time.Time

	mu    sync.Mutex
	at    time.Time
	event uint64
	stats query.Stats
}

// get returns counts of now, or of the second before; where nothing has happened since, of some seconds
// before. They are not to be written to.
func (k *keptStats) get() query.Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	event, now := k.plane.LastEvent(), k.now()
	if age := now.Sub(k.at); k.stats.Jobs == nil || age < 0 || age >= viewsAge || k.event != event && age >= time.Second {
		k.stats, k.event, k.at = k.plane.Stats(), event, now
	}
	return k.stats
}

// NodeFilter narrows a list of nodes. (It has a capital because parameters in an embedded type are
// found only so.)
type NodeFilter struct {
	Pools      []string `query:"pools"`
	Partitions []string `query:"partitions"`
	States     []string `query:"states" doc:"up, draining, down, unknown; fenced: checks keep something of it from new work"`
	Types      []string `query:"types" doc:"types of devices that nodes have: h100"`
	Match      string   `query:"match" doc:"nodes whose name, address, features or reason has this text in it, in upper or lower case"`
	Path       string   `query:"path" doc:"nodes at this place of the topology or below it: spine1/leaf3"`
}

func (f *NodeFilter) matches(v *query.NodeView) bool {
	n := &v.Node
	among := func(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }
	if !among(f.Pools, n.Pool) || len(f.Partitions) > 0 && !slices.ContainsFunc(f.Partitions, n.In) {
		return false
	}
	if !among(f.States, string(n.State)) && !(slices.Contains(f.States, "fenced") && len(v.Health.Fences) > 0) {
		return false
	}
	if len(f.Types) > 0 && !slices.ContainsFunc(n.Devices, func(d fleet.Device) bool { return slices.Contains(f.Types, d.Type) }) {
		return false
	}
	if f.Path != "" {
		place := strings.Join(n.Path, "/") + "/"
		if !strings.HasPrefix(place, strings.Trim(f.Path, "/")+"/") {
			return false
		}
	}
	if f.Match == "" {
		return true
	}
	text := n.Name + "\n" + n.Address + "\n" + strings.Join(n.Features, "\n") + "\n" + n.Why
	if v.Drained != nil {
		text += "\n" + v.Drained.Reason
	}
	return strings.Contains(strings.ToLower(text), strings.ToLower(f.Match))
}

type rowsInput struct {
	NodeFilter
	Sort   string `query:"sort" doc:"name, pool, state, path, used (devices, else CPUs) or free; with - before it, largest first. Left out: name"`
	Offset int    `query:"offset" minimum:"0" doc:"rows before the page"`
	Limit  int    `query:"limit" minimum:"0" maximum:"10000" doc:"rows of a page; 0: 100"`
}

func (s *service) registerMachineRoom() {
	s.views = &nodeViews{plane: s.cfg.Plane, now: s.cfg.Now}
	s.stats = &keptStats{plane: s.cfg.Plane, now: s.cfg.Now}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/node-rows", Verb: auth.SeeNodes, ID: "listNodeRows", Tag: "nodes",
		Summary: "List nodes in short, sorted and narrowed", About: "A page of rows and the counts of the whole list. Jobs that the caller may not see are left out of rows.",
	}, func(c *call, in *rowsInput) (*api.NodeRows, error) { return s.listNodeRows(c, in) })
	type topologyInput struct {
		NodeFilter
		By string `query:"by" enum:"state,pool,user,account" doc:"what labels are of; left out: state"`
	}
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/topology", Verb: auth.SeeNodes, ID: "topology", Tag: "nodes",
		Summary: "All nodes by their place, in a few bytes each", About: "Nodes of one place are a group. Its lists have an element for each of its nodes, in the order of the host list.",
	}, func(c *call, in *topologyInput) (*api.Topology, error) {
		return s.showTopology(c, &in.NodeFilter, cmp.Or(in.By, "state"))
	})
}

// nodeOrders are what rows of nodes are sorted by, beside their names.
var nodeOrders = map[string]func(a, b *query.NodeView) int{
	"name":  func(_, _ *query.NodeView) int { return 0 },
	"pool":  func(a, b *query.NodeView) int { return strings.Compare(a.Node.Pool, b.Node.Pool) },
	"state": func(a, b *query.NodeView) int { return strings.Compare(string(a.Node.State), string(b.Node.State)) },
	"path":  func(a, b *query.NodeView) int { return slices.Compare(a.Node.Path, b.Node.Path) },
	"used":  func(a, b *query.NodeView) int { return cmp.Compare(usedOf(a), usedOf(b)) },
	"free":  func(a, b *query.NodeView) int { return cmp.Compare(freeOf(a), freeOf(b)) },
}

func usedOf(v *query.NodeView) int64 {
	if len(v.Node.Devices) > 0 {
		return int64(len(v.Held)) << 32
	}
	return int64(v.Used.CPU)
}

func freeOf(v *query.NodeView) int64 {
	if v.Node.State != fleet.Up {
		return -1
	}
	if len(v.Node.Devices) > 0 {
		return int64(strings.Count(deviceLetters(v), "."))<<32 + int64(v.Node.Capacity.CPU-v.Used.CPU)
	}
	return int64(v.Node.Capacity.CPU - v.Used.CPU)
}

func (s *service) listNodeRows(c *call, in *rowsInput) (*api.NodeRows, error) {
	word, down := strings.CutPrefix(cmp.Or(in.Sort, "name"), "-")
	order := nodeOrders[word]
	if order == nil {
		return nil, fault.New(fault.Invalid, "sort: nodes are not sorted by %q", word).Advise("by one of free, name, path, pool, state, used; with - before it, largest first")
	}
	views, err := s.views.get(c.Ctx())
	if err != nil {
		return nil, err
	}
	out := &api.NodeRows{Rows: []api.NodeRow{}, States: map[string]int{}, Devices: map[string]int{}, Change: s.views.lastEvent()}
	list := make([]*query.NodeView, 0, len(views))
	for i := range views {
		if in.matches(&views[i]) {
			list = append(list, &views[i])
			out.States[string(views[i].Node.State)]++
			countLetters(out.Devices, deviceLetters(&views[i]))
		}
	}
	out.Total = len(list)
	slices.SortStableFunc(list, func(a, b *query.NodeView) int { // they are in the order of their names
		if down {
			return order(b, a)
		}
		return order(a, b)
	})
	if down && word == "name" {
		slices.Reverse(list)
	}
	from := min(in.Offset, len(list))
	engines, holders := s.enginesByPool(), &holders{call: c, known: map[job.ID]*holder{}}
	for _, v := range list[from:min(from+cmp.Or(in.Limit, 100), len(list))] {
		out.Rows = append(out.Rows, shownRow(v, engines, holders))
	}
	return out, nil
}

func (n *nodeViews) lastEvent() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.event
}

// holder is who holds something on a node, as far as the caller may know it.
type holder struct {
	name, jobName, user, account string
	seen                         bool
}

// holders looks holders up, each job once.
type holders struct {
	call  *call
	known map[job.ID]*holder
}

func (h *holders) get(id job.ID) *holder {
	if x := h.known[id]; x != nil {
		return x
	}
	x := &holder{}
	h.call.s.cfg.Plane.Scan(query.Filter{After: id - 1}, func(v *state.View) bool {
		if v.Job.ID == id && h.call.MaySee(v) {
			s := v.Job.Spec
			*x = holder{v.Job.Name(), s.Name, s.Owner.User, s.Account, true}
		}
		return false
	})
	h.known[id] = x
	return x
}

func shownRow(v *query.NodeView, engines map[string]string, h *holders) api.NodeRow {
	n := &v.Node
	out := api.NodeRow{
		Name: n.Name, Pool: n.Pool, Engine: engines[n.Pool], State: string(n.State), Why: n.Why, Path: n.Path, Virtual: n.Virtual,
		CPUs: float64(n.Capacity.CPU) / float64(resource.OneCPU), CPUsUsed: float64(v.Used.CPU) / float64(resource.OneCPU),
		Memory: int64(n.Capacity.Memory), MemoryUsed: int64(v.Used.Memory), Devices: deviceLetters(v), Fences: len(v.Health.Fences),
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; !slices.Contains(out.Types, d.Type) {
			out.Types = append(out.Types, d.Type)
		}
	}
	if d := v.Drained; d != nil {
		out.Why = d.Reason
	}
	if o := v.Owner; o != nil {
		out.Owner = o.Pool
		if o.Moving() {
			out.Handover = o.String()
		}
	}
	if aggregate.Is(n.Name) {
		out.Counted = countedOf(n, v.Used)
	}
	for _, id := range v.Jobs {
		x := h.get(id)
		if !x.seen {
			out.Hidden++
			continue
		}
		row := api.NodeHolder{Job: x.name, JobName: x.jobName, User: x.user, Account: x.account}
		for at := range n.Devices {
			if slices.Contains(v.Held[n.Devices[at].Index], id) {
				row.Devices = append(row.Devices, at)
			}
		}
		out.Jobs = append(out.Jobs, row)
	}
	return out
}

// deviceLetters has a letter for each device of a node: . free, u used, f foreign (programs of others
// use it), x fenced, d down.
func deviceLetters(v *query.NodeView) string {
	n := &v.Node
	b := make([]byte, len(n.Devices))
	for i := range n.Devices {
		d := &n.Devices[i]
		switch {
		case len(v.Held[d.Index]) > 0:
			b[i] = 'u'
		case n.State == fleet.Down || n.State == fleet.Unknown:
			b[i] = 'd'
		case d.Foreign > 0:
			b[i] = 'f'
		case d.Fenced != "":
			b[i] = 'x'
		default:
			b[i] = '.'
		}
	}
	return string(b)
}

// letterNames are the words of the letters of devices.
var letterNames = map[byte]string{'u': "used", 'd': "down", 'f': "foreign", 'x': "fenced", '.': "free"}

func countLetters(counts map[string]int, letters string) {
	for i := range len(letters) {
		counts[letterNames[letters[i]]]++
	}
}

func (s *service) showTopology(c *call, f *NodeFilter, by string) (*api.Topology, error) {
	views, err := s.views.get(c.Ctx())
	if err != nil {
		return nil, err
	}
	t := &topologist{
		out: &api.Topology{Groups: []api.TopologyGroup{}, Labels: []string{}, States: map[string]int{}, Devices: map[string]int{}, Change: s.views.lastEvent()},
		by:  by, holders: &holders{call: c, known: map[job.ID]*holder{}}, labels: map[string]int{}, at: map[string]int{},
	}
	for i := range views {
		if f.matches(&views[i]) {
			t.add(&views[i])
		}
	}
	for i := range t.out.Groups {
		t.out.Groups[i].Nodes = orderedHostList(t.names[i])
	}
	slices.SortStableFunc(t.out.Groups, func(a, b api.TopologyGroup) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), slices.CompareFunc(a.Path, b.Path, hostlist.Compare))
	})
	return t.out, nil
}

// orderedHostList is a host list that names nodes in their order.
func orderedHostList(names []string) string {
	short := hostlist.Compress(names)
	if again, err := hostlist.Expand(short); err != nil || !slices.Equal(again, names) {
		return strings.Join(names, ",")
	}
	return short
}

// topologist makes the groups of a topology, of nodes in the order of their names.
type topologist struct {
	out     *api.Topology
	by      string
	holders *holders
	labels  map[string]int // label → its place in out.Labels
	at      map[string]int // pool and path → its place in out.Groups
	names   [][]string     // of the nodes of each group
}

func (t *topologist) add(v *query.NodeView) {
	n := &v.Node
	place := n.Pool + "\x00" + strings.Join(n.Path, "\x00")
	i, ok := t.at[place]
	if !ok {
		i = len(t.out.Groups)
		t.at[place] = i
		t.out.Groups = append(t.out.Groups, api.TopologyGroup{Pool: n.Pool, Path: n.Path})
		t.names = append(t.names, nil)
	}
	g, letters := &t.out.Groups[i], deviceLetters(v)
	t.names[i] = append(t.names[i], n.Name)
	t.out.Total++
	t.out.States[string(n.State)]++
	countLetters(t.out.Devices, letters)
	g.Devices = append(g.Devices, len(letters))
	used := strings.Count(letters, "u")
	if len(letters) == 0 && n.Capacity.CPU > 0 {
		used = int(100 * v.Used.CPU / n.Capacity.CPU)
	}
	g.Used = append(g.Used, used)
	g.Label = append(g.Label, t.label(v))
	if bad := len(letters) - used - strings.Count(letters, "."); len(letters) > 0 && bad > 0 {
		g.Shut += bad
	}
}

// label is the place of a node's label; -1: it has none.
func (t *topologist) label(v *query.NodeView) int {
	var word string
	switch t.by {
	case "pool":
		word = v.Node.Pool
	case "state":
		if word = string(v.Node.State); v.Node.State == fleet.Up && len(v.Health.Fences) > 0 {
			word = "fenced"
		}
	default:
		word = t.largestHolder(v)
	}
	if word == "" {
		return -1
	}
	i, ok := t.labels[word]
	if !ok {
		i = len(t.out.Labels)
		t.labels[word] = i
		t.out.Labels = append(t.out.Labels, word)
	}
	return i
}

// largestHolder is the user or account with the most devices of a node, else with the most jobs there.
func (t *topologist) largestHolder(v *query.NodeView) (best string) {
	count := map[string]int{}
	for _, id := range v.Jobs {
		x := t.holders.get(id)
		if !x.seen {
			continue
		}
		word := x.user
		if t.by == "account" {
			word = x.account
		}
		count[word]++
		for _, ids := range v.Held {
			if slices.Contains(ids, id) {
				count[word] += 1 << 16
			}
		}
	}
	for word, n := range count {
		if word != "" && (best == "" || n > count[best] || n == count[best] && word < best) {
			best = word
		}
	}
	return best
}
