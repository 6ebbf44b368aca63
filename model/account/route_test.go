package account

import (
	"slices"
	"strings"
	"testing"
)

// TestRouteOf: patterns have a host or all below one, and paths from one on; the accounts below have them too.
func TestRouteOf(t *testing.T) {
	p := &Policy{Accounts: []Account{
		{Name: "root", Routes: []string{"all.example.org"}},
		{Name: "team", Parent: "root", Routes: []string{"chat.example.org", "*.team.example.org/api/"}},
		{Name: "apps", Parent: "team"},
		{Name: "ops"},
	}}
	if problems := p.Check(); len(problems) > 1 { // ops has no parent
		t.Fatalf("%+v", problems)
	}
	for _, tt := range []struct {
		account, host, path string
		granted             bool
		accounts            string
	}{
		{"team", "chat.example.org", "", true, "team"},
		{"apps", "chat.example.org", "/v1", true, "team"},
		{"root", "chat.example.org", "", false, "team"},
		{"", "chat.example.org", "", false, "team"},
		{"nobody", "chat.example.org", "", false, "team"},
		{"apps", "all.example.org", "", true, "root"},
		{"ops", "all.example.org", "", true, "root"}, // the root is above what has no parent
		{"team", "a.team.example.org", "/api", true, "team"},
		{"team", "a.b.team.example.org", "/api/v1", true, "team"},
		{"team", "a.team.example.org", "/apis", false, "team"},
		{"team", "a.team.example.org", "", false, "team"},
		{"team", "team.example.org", "/api", false, ""},
		{"team", "xteam.example.org", "/api", false, ""},
		{"team", "chat.example.org.evil.com", "", false, ""},
	} {
		g := p.RouteOf(tt.account, tt.host, tt.path)
		if g.Granted != tt.granted || strings.Join(g.Accounts, " ") != tt.accounts {
			t.Errorf("%s %s%s: %+v", tt.account, tt.host, tt.path, g)
		}
	}
}

// TestTheClosestRouteWins: neither a wider pattern nor a shorter path grants what another account has by name.
func TestTheClosestRouteWins(t *testing.T) {
	p := &Policy{Accounts: []Account{
		{Name: "wide", Routes: []string{"*.example.org", "shared.example.org"}},
		{Name: "team", Routes: []string{"*.team.example.org"}},
		{Name: "chat", Routes: []string{"chat.example.org", "a.team.example.org/v1", "shared.example.org/api"}},
	}}
	for range 2 { // whatever their order
		for _, tt := range []struct{ host, path, has string }{
			{"chat.example.org", "", "chat"},
			{"chat.example.org", "/login", "chat"},
			{"web.example.org", "/login", "wide"},
			{"b.team.example.org", "", "team"},
			{"a.team.example.org", "/v1", "chat"},
			{"a.team.example.org", "/v2", ""},
			{"team.example.org", "", "wide"},
			{"shared.example.org", "", "wide"},
			{"shared.example.org", "/apis", "wide"},
			{"shared.example.org", "/api/v1", "chat"},
		} {
			for _, a := range p.Accounts {
				if g := p.RouteOf(a.Name, tt.host, tt.path); g.Granted != (a.Name == tt.has) || len(g.Accounts) == 0 {
					t.Errorf("%s %s%s: %+v", a.Name, tt.host, tt.path, g)
				}
			}
		}
		slices.Reverse(p.Accounts)
	}
}

func TestPatternsThatAreNoRoutes(t *testing.T) {
	for _, bad := range []string{"", "*", "*.", "https://chat.example.org", "Chat.example.org", "chat.*.org", "chat.example.org:8080", "chat.example.org/../x", "chat.example.org/a b", "/v1"} {
		p := &Policy{Accounts: []Account{{Name: "team", Routes: []string{"ok.example.org", bad}}}}
		if problems := p.Check(); len(problems) != 1 || problems[0].Path != "accounts[0].routes[1]" || problems[0].Remedy == "" {
			t.Errorf("%q: %+v", bad, problems)
		}
	}
	p := &Policy{Accounts: []Account{{Name: "team", Routes: []string{"a.example.org", "a.example.org"}}}}
	if problems := p.Check(); len(problems) != 1 || !slices.ContainsFunc(problems, func(x Problem) bool { return strings.Contains(x.Message, "twice") }) {
		t.Errorf("%+v", problems)
	}
}
