package controller

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/service"
)

// aboutRoute says that an error is about the route of a file: its host, or the name from which that comes.
func aboutRoute(err error) error { return engine.About(err, "route.host", "name") }

// siteRules are the rules in force; nil: there are none.
func (c *Controller) siteRules() *account.Policy {
	if c.cfg.Rules == nil {
		return nil
	}
	return c.cfg.Rules()
}

// grantOf says whether the site's rules grant the host of a specification to its account. An error says that
// they grant it to others. Services of administrators have every host. A host of which the rules say nothing
// is not granted, and no error.
func (c *Controller) grantOf(spec *service.Spec) (granted bool, err error) {
	rules := c.siteRules()
	if rules == nil {
		return false, nil
	}
	host, path := spec.HostName(), spec.PathName()
	g := rules.RouteOf(spec.Account, host, path)
	switch {
	case len(g.Accounts) == 0:
		return false, nil
	case g.Granted || c.cfg.IsAdmin != nil && c.cfg.IsAdmin(spec.Owner):
		return true, nil
	case len(g.Routes) > 0:
		return false, fault.New(fault.Permission, "route: the site's rules grant %s to account %s, and not %s%s", strings.Join(g.Routes, ", "), spec.Account, host, cmp.Or(path, "/")).
			Advise("give the route a path of these: route: {host: …, path: …}")
	}
	of := "this service has no account"
	if spec.Account != "" {
		of = fmt.Sprintf("this service is of account %s", spec.Account)
	}
	return false, fault.New(fault.Permission, "route: the site's rules grant the host %s to %s, and %s", host, accountsText(g.Accounts), of).
		Advise("submit the service with account: %s, or give it another host (route: {host: …})", g.Accounts[0])
}

func accountsText(names []string) string {
	if len(names) == 1 {
		return "account " + names[0]
	}
	return "accounts " + strings.Join(names, ", ")
}

// sharesHost reports whether the services of two users may have one host, with different paths: the rules
// grant it to both. gone says that the second one does not count: the rules grant the host to others.
func (c *Controller) sharesHost(granted bool, has *service.Spec) (shares, gone bool) {
	theirs, err := c.grantOf(has)
	return granted && theirs, err != nil
}
