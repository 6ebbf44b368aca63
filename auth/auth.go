// Package auth says who may do what, in one table (Rules) that one function reads
// (Policy.Allowed). Every way in makes an Identity, and every route asks here.
//
// It is pure: it opens no socket and knows no HTTP. Where identities come from
// stands in the packages below it: auth/peer for processes of this machine,
// auth/token for everybody else, auth/user for names and groups.
//
// It guards the API, not processes: a task runs with its owner's rights, and what
// the operating system lets it do is not decided here.
package auth

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Identity is who asks. The zero value is nobody.
type Identity struct {
	Name     string
	UID, GID uint32
	Accounts []string // the only ones that may be charged; empty: no bound
	Admin    bool
	Role     Role   // of a token that is for one purpose alone; empty: a person's
	Via      string // "socket" or "token"
	Token    string // the public part of the token, if any
	Browser  bool   // the token came in a cookie: it is a session of the web console
	From     string // "socket", "tcp 127.0.0.1:5123": for the audit
}

// Role is what a token is for that may do nothing else.
type Role string

// RoleGateway is a gateway of services: it reads routes and posts load.
const RoleGateway Role = "gateway"

// Known reports whether somebody proved who he is.
func (id Identity) Known() bool { return id.Via != "" }

// Actor is the identity as a change is recorded.
func (id Identity) Actor() job.Actor { return job.Actor{Name: id.Name, UID: id.UID, From: id.From} }

// Object is what a verb is about. The zero value is the cluster as a whole, which
// nobody owns.
type Object struct {
	Owned bool   // it has an owner
	UID   uint32 // the owner's number: names may be given anew
	Name  string // for messages: "job 7", "node v1"
}

// Job is the object of a job of somebody.
func Job(name string, owner uint32) Object {
	return Object{Owned: true, UID: owner, Name: "job " + name}
}

// Policy is what a site may choose about the table.
type Policy struct {
	Private bool // jobs are shown to their owners and administrators alone
}

// Allowed returns nil if the identity may do that to the object. Otherwise the
// error is fault.Permission and says who could; nobody gets Unauthenticated.
func (p Policy) Allowed(id Identity, v Verb, o Object) error {
	r, ok := ruleOf(v)
	if !ok {
		return fault.New(fault.Permission, "nobody may %q: there is no rule for it", v)
	}
	who := r.Who
	if who == Viewer {
		who = Anyone
		if p.Private {
			who = Owner
		}
	}
	switch {
	case who == Nobody:
		return nil
	case !id.Known():
		return Unauthenticated
	case id.Role != "":
		if who == Gateways && id.Role == RoleGateway {
			return nil
		}
		return roleRefusal(id, v)
	case id.Admin, who == Anyone, who == Owner && o.Owned && o.UID == id.UID:
		return nil
	}
	return refusal(id, r, o, who)
}

// Unauthenticated is the error of a request that proves nobody. HTTP answers it
// with 401.
var Unauthenticated error = fault.New(fault.Permission, "who are you? This request carries no valid access token").
	Advise("on the server's machine use its socket; elsewhere set COX_TOKEN to a token that `cox token create` made")

func roleRefusal(id Identity, v Verb) error {
	return fault.New(fault.Permission, "a token with the role %s may not %s the server", id.Role, v).
		Advise("it is for cox gateway alone; cox token create makes one for a person")
}

func refusal(id Identity, r Rule, o Object, who Who) error {
	what := "the cluster"
	if o.Name != "" {
		what = o.Name
	}
	if who == Owner {
		return fault.New(fault.Permission, "%s may not %s %s: it belongs to somebody else", id.Name, r.Verb, what).
			Advise("ask its owner or an administrator")
	}
	return fault.New(fault.Permission, "%s may not %s %s: that takes an administrator", id.Name, r.Verb, what).
		Advise("administrators are root, the server's own user, and those of auth.admins and auth.admin_group in cox.yaml")
}

// MayCharge returns nil if the identity may charge the account; "" is the default
// account.
func (id Identity) MayCharge(account string) error {
	if account == "" || len(id.Accounts) == 0 || slices.Contains(id.Accounts, account) {
		return nil
	}
	return fault.New(fault.Permission, "this token may not charge account %s", account).
		Advise("its accounts: %v", id.Accounts)
}
