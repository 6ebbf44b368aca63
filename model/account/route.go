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

// matchHost reports how closely the host of a pattern is a host: 0 if it is not, most if it is the same one,
// and of those with a wildcard more the longer they are.
func matchHost(of, host string) int {
	parent, wild := strings.CutPrefix(of, "*")
	switch {
	case !wild && of == host:
		return len(host) + 1
	case wild && strings.HasSuffix(host, parent) && len(host) > len(parent):
		return len(parent)
	}
	return 0
}

// matchPath reports how closely the path of a pattern has a path: 0 if it does not.
func matchPath(from, path string) int {
	if path == from || strings.HasPrefix(path, from+"/") {
		return len(from) + 1
	}
	return 0
}

// RouteGrant is what the rules say of a host with a path, for an account.
type RouteGrant struct {
	Granted  bool     // the account has it, or one above it
	Accounts []string // with routes of this host; none: it is free for everybody
	Routes   []string // of the account and those above it, on this host
}

// RouteOf says what the rules say of a host with a path (Spec.HostName, Spec.PathName) for an account. Of the
// patterns of all accounts only those count that name the host most closely, and of these the one with the
// longest path grants it: chat.example.org is of its account, and not of that with *.example.org.
func (p *Policy) RouteOf(account, host, path string) RouteGrant {
	var out RouteGrant
	above := p.lineOf(account)
	closest, longest := 1, 1
	for i := range p.Accounts {
		a := &p.Accounts[i]
		for _, pattern := range a.Routes {
			of, from := splitRoute(pattern)
			near, along := matchHost(of, host), matchPath(from, path)
			if near < closest {
				continue
			}
			if near > closest {
				out, closest, longest = RouteGrant{}, near, 1
			}
			if along > longest {
				out.Granted, longest = false, along
			}
			if !slices.Contains(out.Accounts, a.Name) {
				out.Accounts = append(out.Accounts, a.Name)
			}
			if slices.Contains(above, a.Name) {
				out.Routes = append(out.Routes, pattern)
				out.Granted = out.Granted || along == longest
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
