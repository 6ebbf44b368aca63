package gateway

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// table finds services by host and path. It is not written to.
type table struct {
	hosts map[string][]entry // by host; "" is every host. Longest path first
	known []string           // the hosts, sorted, without ""
	named map[string]*service
}

type entry struct {
	path    string // without a slash at its end; "" is every path
	service *service
}

// newTable makes a table. Of two services with one host and path that has it which had it in the table
// of before; else the first by name.
func newTable(named map[string]*service, before *table) (t *table, doubled []string) {
	t = &table{hosts: map[string][]entry{}, named: named}
	names := slices.Sorted(maps.Keys(named))
	had := func(name string) bool {
		host, path := named[name].routed()
		return slices.Contains(before.hosts[host], entry{path, named[name]})
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch x, y := had(a), had(b); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
	for _, name := range names {
		host, path := named[name].routed()
		if slices.ContainsFunc(t.hosts[host], func(e entry) bool { return e.path == path }) {
			doubled = append(doubled, name)
			continue
		}
		t.hosts[host] = append(t.hosts[host], entry{path, named[name]})
	}
	for _, host := range slices.Sorted(maps.Keys(t.hosts)) {
		if host != "" {
			t.known = append(t.known, host)
		}
	}
	for _, entries := range t.hosts {
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(len(b.path), len(a.path)) })
	}
	return t, doubled
}

// routed is the host and the path of a service.
func (s *service) routed() (host, path string) {
	route := &s.settings.Load().route
	return hostOf(route.Host), strings.TrimRight(route.Path, "/")
}

// findService returns the service of a request; nil: there is none.
func (t *table) findService(r *http.Request) *service {
	if s := findPath(t.hosts[hostOf(r.Host)], r.URL.Path); s != nil {
		return s
	}
	return findPath(t.hosts[""], r.URL.Path)
}

func findPath(entries []entry, path string) *service {
	for i := range entries {
		e := &entries[i]
		if e.path == "" || strings.HasPrefix(path, e.path) && (len(path) == len(e.path) || path[len(e.path)] == '/') {
			return e.service
		}
	}
	return nil
}

// hostOf is a host without port and without a dot at its end, in lower case.
func hostOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	host = strings.TrimSuffix(host, ".")
	for i := range len(host) {
		if host[i] >= 'A' && host[i] <= 'Z' {
			return strings.ToLower(host)
		}
	}
	return host
}

// Bounds of what is compared for a suggestion.
const (
	mostHost     = 253 // bytes of a name of a host
	mostCompared = 100 // hosts
)

// nearestHost is the host that is most like one that no service has; "" if none is. It looks at the
// first hosts of about the same length.
func (t *table) nearestHost(host string) string {
	if len(host) > mostHost {
		return ""
	}
	best, least, compared := "", len(host)/2+1, 0
	for _, known := range t.known {
		if len(known)-len(host) >= least || len(host)-len(known) >= least {
			continue
		}
		if compared++; compared > mostCompared {
			break
		}
		if d := editDistance(host, known); d < least {
			best, least = known, d
		}
	}
	return best
}

// editDistance is how many letters have to be changed, put in or left out.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := last
			if a[i] != b[j] {
				d = 1 + min(last, row[j], row[j+1])
			}
			last, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

// Apply takes over routes: all, or what has changed. It is called with what a Source says, in order.
func (g *Server) Apply(r api.GatewayRoutes) {
	g.applying.Lock()
	defer g.applying.Unlock()
	old := g.table.Load()
	named := map[string]*service{}
	if !r.Reset {
		maps.Copy(named, old.named)
	}
	for i := range r.Services {
		name := r.Services[i].Service
		s := old.named[name]
		if s == nil {
			s = g.leaving[name] // it comes again while requests of before are in flight
			delete(g.leaving, name)
		}
		if s == nil {
			s = newService(g, name)
		}
		s.setRoute(&r.Services[i])
		named[name] = s
	}
	for _, name := range r.Gone {
		delete(named, name)
	}
	t, doubled := newTable(named, old)
	for _, name := range doubled {
		g.cfg.Log.Warn("two services have one host and path; the second gets no requests", "service", name, "host", named[name].settings.Load().route.Host)
	}
	g.table.Store(t)
	for name, s := range old.named {
		if named[name] == nil {
			s.removeRoute()
			g.leaving[name] = s
		}
	}
	g.forgetIdle()
	g.version.Store(r.Version)
	g.postSoon()
}

// forgetIdle forgets services that have gone and have nothing in flight. The caller has applying.
func (g *Server) forgetIdle() {
	for name, s := range g.leaving {
		if s.isIdle() {
			s.settings.Load().transport.dispose()
			g.metrics.forgetService(name)
			delete(g.leaving, name)
		}
	}
}
