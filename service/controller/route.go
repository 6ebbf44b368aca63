package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/service"
)

// HostTaken is the error of a route whose host a service of another user has.
type HostTaken struct{ Host, Service, Owner string }

func (e *HostTaken) Error() string {
	return fmt.Sprintf("service %s of user %s has the host %s", e.Service, e.Owner, e.Host)
}

// checkRoute refuses the route of a specification if another service has it, or the site's rules grant it to
// another account. A host that the rules grant to nobody belongs to the services of one user, whatever their
// paths; a host with a path belongs to one service.
func (c *Controller) checkRoute(name string, spec *service.Spec) error {
	granted, err := c.grantOf(spec)
	if err != nil {
		return aboutRoute(err)
	}
	host, path := spec.HostName(), spec.PathName()
	for _, other := range slices.Sorted(maps.Keys(c.services)) {
		if other == name {
			continue
		}
		for _, has := range c.services[other].doc.Routed() {
			if has.HostName() != host {
				continue
			}
			shares, gone := c.sharesHost(granted, has)
			switch {
			case gone:
			case has.Owner.UID != spec.Owner.UID && !shares:
				return aboutRoute(fault.New(fault.Conflict, "route: %w", &HostTaken{host, other, has.Owner.User}).
					Advise("give this service another host (route: {host: …}), or ask %s", has.Owner.User))
			case has.PathName() == path:
				return aboutRoute(fault.New(fault.Conflict, "route: service %s answers %s%s already", other, host, path).
					Advise("give this one another host or path (route: {host: …, path: …})"))
			}
		}
	}
	return nil
}

// rivalOf is a service that has had the host of a service for longer, and is another user's, or that has had
// its host and path for longer; nil: there is none. checkRoute admits no such two, but documents of before may
// have them, as may rules that change and updates that are undone.
func (c *Controller) rivalOf(m *managed) *managed {
	spec := c.wanted(m)
	granted, _ := c.grantOf(spec) // one that the rules grant to others has no route anyway
	for _, name := range slices.Sorted(maps.Keys(c.services)) {
		other := c.services[name]
		has := c.wanted(other)
		if other == m || has.HostName() != spec.HostName() {
			continue
		}
		shares, gone := c.sharesHost(granted, has)
		shares = shares || has.Owner.UID == spec.Owner.UID
		if gone || shares && has.PathName() != spec.PathName() {
			continue
		}
		if cmp.Or(claimedAt(other.doc, shares).Compare(claimedAt(m.doc, shares)), cmp.Compare(name, m.name)) < 0 {
			return other
		}
	}
	return nil
}

// claimedAt is when a service got the host that it has now; withPath: the host with its path.
func claimedAt(d *service.Document, withPath bool) (at time.Time) {
	now := &d.Revision(d.Target()).Spec
	has := func(s *service.Spec) bool {
		return s.HostName() == now.HostName() && (!withPath || s.PathName() == now.PathName())
	}
	if r := d.Rollout; r != nil && (r.Phase == service.Undoing || r.Phase == service.Undone) {
		if to := d.Revision(r.To); to != nil && !has(&to.Spec) {
			return r.Since // it had another one meanwhile
		}
	}
	for i := range d.Revisions {
		r := &d.Revisions[i]
		switch {
		case r.Number > d.Target():
		case !has(&r.Spec):
			at = time.Time{}
		case at.IsZero():
			at = r.At
		}
	}
	return at
}

// noToken is the hash of no token: a request cannot bear it.
const noToken = "none"

// routeOf is how gateways find a service, without its backends.
func (c *Controller) routeOf(m *managed) api.ServiceRoute {
	spec := c.wanted(m)
	r := &spec.Route
	out := api.ServiceRoute{
		Service: m.name, Host: spec.HostName(), Path: spec.PathName(), Weights: m.last.Weights,
		Timeout: r.Timeout, Sticky: r.Sticky, Rate: r.Rate, Held: r.Held, H2C: r.H2C,
		Want:   m.doc.Want,
		Asleep: m.doc.Want == 0 && spec.Scale != nil && !m.doc.Stopping,
	}
	m.tokenTrouble = ""
	if len(r.Tokens) == 0 {
		return out
	}
	out.Tokens = []string{noToken}
	if c.cfg.Tokens == nil {
		m.tokenTrouble = "this server keeps no secrets, so the route answers nobody"
		return out
	}
	tokens, err := c.cfg.Tokens(spec.Owner, r.Tokens)
	switch {
	case err != nil:
		m.tokenTrouble = "the route answers nobody: " + err.Error()
	case len(tokens) > 0:
		out.Tokens = tokens
	}
	return out
}

// setRoute tells gateways how to find a service. One whose host another user's service has, or that the
// site's rules grant to another account, gets no route.
func (c *Controller) setRoute(m *managed) {
	m.routeTrouble = ""
	if _, err := c.grantOf(c.wanted(m)); err != nil {
		m.routeTrouble = "the service has no route: " + strings.TrimPrefix(err.Error(), "route: ") + ". Submit it with another host (route: {host: …})"
		c.cfg.Hub.RemoveService(m.name)
		return
	}
	if rival := c.rivalOf(m); rival != nil {
		spec, has := c.wanted(m), c.wanted(rival)
		switch {
		case has.Owner.UID == spec.Owner.UID:
			m.routeTrouble = fmt.Sprintf("the service has no route: service %s answers %s%s already. Submit it with another host or path (route: {host: …, path: …})", rival.name, has.HostName(), has.PathName())
		case has.PathName() == spec.PathName(): // who asks may not be allowed to know of the other service: it is not named
			m.routeTrouble = fmt.Sprintf("the service has no route: a service of another user has the host %s%s. Submit it with another host (route: {host: …})", has.HostName(), has.PathName())
		default:
			m.routeTrouble = fmt.Sprintf("the service has no route: a service of another user has the host %s. Submit it with another host (route: {host: …})", has.HostName())
		}
		c.cfg.Hub.RemoveService(m.name)
		return
	}
	c.cfg.Hub.SetService(c.routeOf(m), c.wanted(m).Route.Port)
}
