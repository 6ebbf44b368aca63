package account

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/service"
)

// splitRoute takes a pattern of Account.Routes apart: "*.example.org/api" is every host below example.org, and
// paths from /api on.
func splitRoute(pattern string) (host, path string) {
	host, path, found := strings.Cut(pattern, "/")
	if found {
		path = "/" + path
	}
	return host, strings.TrimRight(path, "/")
}

// CheckRoute reports why a text is no pattern of routes.
func CheckRoute(pattern string) error {
	host, path := splitRoute(pattern)
	if strings.Contains(pattern, "://") {
		return fmt.Errorf("%.70q is a URL; a route is a host, and maybe a path", pattern)
	}
	if err := service.CheckHost(strings.TrimPrefix(host, "*.")); err != nil {
		return err
	}
	return service.CheckPath(path)
}

// routeHas reports whether a pattern has a host, and whether it has a path of it.
func routeHas(pattern, host, path string) (hasHost, hasPath bool) {
	of, from := splitRoute(pattern)
	if parent, ok := strings.CutPrefix(of, "*"); ok {
		hasHost = strings.HasSuffix(host, parent) && len(host) > len(parent)
	} else {
		hasHost = of == host
	}
	return hasHost, hasHost && (path == from || strings.HasPrefix(path, from+"/"))
}

// RouteGrant is what the rules say of a host with a path, for an account.
type RouteGrant struct {
	Granted  bool     // the account has it, or one above it
	Accounts []string // with routes of this host; none: it is free for everybody
	Routes   []string // of the account and those above it, on this host
}

// RouteOf says what the rules say of a host with a path (Spec.HostName, Spec.PathName) for an account.
func (p *Policy) RouteOf(account, host, path string) RouteGrant {
	var out RouteGrant
	above := p.lineOf(account)
	for i := range p.Accounts {
		a := &p.Accounts[i]
		for _, pattern := range a.Routes {
			hasHost, hasPath := routeHas(pattern, host, path)
			if !hasHost {
				continue
			}
			if !slices.Contains(out.Accounts, a.Name) {
				out.Accounts = append(out.Accounts, a.Name)
			}
			if slices.Contains(above, a.Name) {
				out.Routes = append(out.Routes, pattern)
				out.Granted = out.Granted || hasPath
			}
		}
	}
	return out
}

// lineOf is an account and those above it.
func (p *Policy) lineOf(account string) (out []string) {
	for account != "" && !slices.Contains(out, account) {
		out = append(out, account)
		i := slices.IndexFunc(p.Accounts, func(a Account) bool { return a.Name == account })
		if i < 0 {
			return out
		}
		if account = p.Accounts[i].Parent; account == "" && slices.ContainsFunc(p.Accounts, func(a Account) bool { return a.Name == RootName }) {
			account = RootName
		}
	}
	return out
}

// checkRoutes finds patterns that are none.
func (c *check) checkRoutes(path string, routes []string) {
	for i, pattern := range routes {
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := CheckRoute(pattern); err != nil {
			c.addProblem(at, "write chat.example.org, *.team.example.org or chat.example.org/v1", "%v", err)
		} else if slices.Index(routes, pattern) < i {
			c.addProblem(at, "keep one of them", "%s is there twice", pattern)
		}
	}
}
