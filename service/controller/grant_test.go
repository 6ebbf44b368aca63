package controller_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// grants are rules that give hosts to accounts.
func grants() *account.Policy {
	return &account.Policy{Accounts: []account.Account{
		{Name: "org"},
		{Name: "team", Parent: "org", Routes: []string{"chat.example.org", "shared.example.org/team"}},
		{Name: "apps", Parent: "team"},
		{Name: "ops", Routes: []string{"shared.example.org/ops", "*.ops.example.org"}},
	}}
}

// withRules has controllers follow a site's rules.
func (p *plane) withRules(rules func() *account.Policy) *plane {
	p.rules = rules
	return p
}

func specAt(owner, acct, name, host, path string) service.Spec {
	s := specOf("a", 1)
	s.Name, s.Account, s.Owner = name, acct, job.Owner{User: owner, UID: map[string]uint32{"anna": 2001, "mallory": 2002, "root": 0}[owner]}
	s.Route = service.Route{Host: host, Path: path}
	return s
}

// TestHostsThatTheRulesGrant: a host of an account's routes goes to services of that account, of those below it
// and of administrators alone, also to those of several users; others stay free.
//
// Seen to fail with: no grantOf in checkRoute; the owner compared where the rules grant a host.
func TestHostsThatTheRulesGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPlane().withRules(grants).startController(t)
		defer r.stop()
		for _, tt := range []struct {
			owner, account, name, host, path string
			refused                          string // in the error; empty: it is taken
		}{
			{"mallory", "", "a", "chat.example.org", "", "grant the host chat.example.org to account team, and this service has no account"},
			{"mallory", "ops", "b", "chat.example.org", "/v1", "grant the host chat.example.org to account team, and this service is of account ops"},
			{"anna", "team", "c", "chat.example.org", "", ""},
			{"mallory", "apps", "d", "chat.example.org", "/v2", ""}, // another user, below the account
			{"mallory", "apps", "e", "chat.example.org", "/v2", "service apps/d answers"},
			{"root", "", "f", "chat.example.org", "/root", ""}, // an administrator
			{"anna", "team", "g", "shared.example.org", "/team/v1", ""},
			{"anna", "team", "h", "shared.example.org", "/teams", "grant shared.example.org/team to account team, and not shared.example.org/teams"},
			{"mallory", "ops", "i", "shared.example.org", "/ops", ""},
			{"mallory", "ops", "j", "shared.example.org", "", "and not shared.example.org/"},
			{"mallory", "", "k", "shared.example.org", "/x", "to accounts team, ops"},
			{"anna", "team", "l", "x.y.ops.example.org", "", "to account ops"},
			{"mallory", "", "m", "ops.example.org", "", ""}, // not below itself
			{"mallory", "", "n", "free.localhost", "", ""},
			{"anna", "team", "o", "free.localhost", "/v1", "of user mallory has the host"},
		} {
			_, err := r.Submit(t.Context(), mallory, specAt(tt.owner, tt.account, tt.name, tt.host, tt.path), nil)
			if tt.refused == "" {
				if err != nil {
					t.Errorf("%s: %v", tt.name, err)
				}
				continue
			}
			field, about := err.(*engine.FieldError)
			if !about || field.Fields[0] != "route.host" || !strings.Contains(err.Error(), tt.refused) || fault.Remedy(err) == "" {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	})
}

// TestAHostThatIsGrantedLater is taken from the service that has it, which says so and goes on; the account
// that it is granted to gets it at once. When the rules are gone the first one has it again.
//
// Seen to fail with: no grantOf in setRoute.
func TestAHostThatIsGrantedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Pointer[account.Policy]
		p := newPlane().withRules(now.Load)
		r := p.startController(t)
		defer r.stop()
		if _, err := r.Submit(t.Context(), mallory, specAt("mallory", "", "first", "chat.example.org", ""), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second) // of the bubble
		now.Store(grants())
		time.Sleep(10 * time.Second)
		s, err := r.Get(t.Context(), "first")
		if err != nil || !hasReason(s, "no route: the site's rules grant the host chat.example.org to account team") {
			t.Errorf("%v, %v", s.Reasons, err)
		}
		if _, err := r.Submit(t.Context(), mallory, specAt("anna", "team", "own", "chat.example.org", ""), nil); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if s, err := r.Get(t.Context(), "team/own"); err != nil || hasReason(s, "no route") {
			t.Errorf("%v, %v", s.Reasons, err)
		}
		now.Store(nil)
		time.Sleep(10 * time.Second)
		if s, err := r.Get(t.Context(), "team/own"); err != nil || !hasReason(s, "a service of another user has the host") {
			t.Errorf("%v, %v", s.Reasons, err)
		}
	})
}

// TestAHostThatIsGrantedToBoth: of two services that have one host and path, because the rules granted the
// host to one of them and then to both, the first one has the route.
//
// Seen to fail with: rivalOf that skips all that share the host.
func TestAHostThatIsGrantedToBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Pointer[account.Policy]
		r := newPlane().withRules(now.Load).startController(t)
		defer r.stop()
		for _, x := range []struct {
			owner, account, name string
			granted              []string
		}{{"mallory", "ops", "first", nil}, {"anna", "team", "own", []string{"shared.example.org"}}} {
			now.Store(&account.Policy{Accounts: []account.Account{{Name: "team", Routes: x.granted}, {Name: "ops"}}})
			time.Sleep(10 * time.Second) // of the bubble
			if _, err := r.Submit(t.Context(), mallory, specAt(x.owner, x.account, x.name, "shared.example.org", "/v1"), nil); err != nil {
				t.Fatal(err)
			}
		}
		both := []string{"shared.example.org"}
		now.Store(&account.Policy{Accounts: []account.Account{{Name: "team", Routes: both}, {Name: "ops", Routes: both}}})
		time.Sleep(10 * time.Second)
		if s, err := r.Get(t.Context(), "ops/first"); err != nil || hasReason(s, "no route") {
			t.Errorf("%v, %v", s.Reasons, err)
		}
		if s, err := r.Get(t.Context(), "team/own"); err != nil || !hasReason(s, "no route: a service of another user has the host shared.example.org/v1") {
			t.Errorf("%v, %v", s.Reasons, err)
		}
	})
}
