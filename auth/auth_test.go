package auth

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// matrix is written by hand, not made from the rules: + may, - may not.
//
// The object is a job of "owner"; "other" is another user, "stranger" is other
// where jobs are private, and "cluster" is the owner asking about no job at all.
const matrix = `
                                       nobody  other  stranger  owner  cluster  admin
ask the health of                        +       +       +        +       +       +
ask about                                +       +       +        +       +       +

submit to                                -       +       +        +       +       +
ask what would be of                     -       +       +        +       +       +
ask advice of                            -       +       +        +       +       +

see                                      -       +       -        +       +       +
watch                                    -       +       -        +       +       +
see the nodes of                         -       +       +        +       +       +
see the pools of                         -       +       +        +       +       +
read the script of                       -       -       -        +       -       +
read the environment of                  -       -       -        +       -       +
read the output of                       -       -       -        +       -       +

cancel                                   -       -       -        +       -       +
renew the lease of                       -       -       -        +       -       +
hold                                     -       -       -        +       -       +
release                                  -       -       -        +       -       +
requeue                                  -       -       -        +       -       +
signal                                   -       -       -        +       -       +
update                                   -       -       -        +       -       +
reorder                                  -       -       -        +       -       +
report a checkpoint of                   -       -       -        +       -       +
run a command in                         -       -       -        +       -       +

hold against its owner's will            -       -       -        -       -       +
release from an administrator's hold     -       -       -        -       -       +
suspend                                  -       -       -        -       -       +
resume                                   -       -       -        -       -       +
raise priority or limits of              -       -       -        -       -       +
drain or resume nodes of                 -       -       -        -       -       +
check the nodes of                       -       -       -        -       -       +
hand over machines of                    -       -       -        -       -       +
add, check or remove pools of            -       -       -        -       -       +
move running jobs of                     -       -       -        -       -       +

manage a secret of                       -       -       -        +       -       +
see the service of                       -       +       -        +       +       +
change the service of                    -       -       -        +       -       +
see the schedule of                      -       +       -        +       +       +
change the schedule of                   -       -       -        +       -       +

manage a token of                        -       -       -        +       -       +
give rights to                           -       -       -        -       -       +
read the audit of                        -       -       -        -       -       +
read the rules of                        -       +       +        +       +       +
open the web console of                 -       +       +        +       +       +
set the rules of                         -       -       -        -       -       +
back up                                  -       -       -        -       -       +
take a snapshot of                      -       -       -        -       -       +
be a gateway of                          -       -       -        -       -       +
read the metrics of                      -       +       +        +       +       +
profile                                  -       -       -        -       -       +
`

func TestMatrix(t *testing.T) {
	owner := Identity{Name: "owner", UID: 1001, Via: "socket", From: "socket"}
	other := Identity{Name: "other", UID: 1002, Via: "token", From: "tcp 127.0.0.1:9"}
	admin := Identity{Name: "admin", UID: 1003, Via: "socket", From: "socket", Admin: true}
	hers := Job("7", owner.UID)
	public, private := Policy{}, Policy{Private: true}
	columns := []struct {
		policy []Policy
		id     Identity
		object Object
	}{
		{[]Policy{public, private}, Identity{}, hers},
		{[]Policy{public}, other, hers},
		{[]Policy{private}, other, hers},
		{[]Policy{public, private}, owner, hers},
		{[]Policy{public}, owner, Object{}},
		{[]Policy{public, private}, admin, hers},
	}
	seen := map[Verb]bool{}
	for line := range strings.Lines(matrix) {
		verb, marks, ok := strings.Cut(strings.TrimRight(line, "\n"), "   ")
		if verb == "" || strings.HasPrefix(line, " ") {
			continue
		}
		cells := strings.Fields(marks)
		if !ok || len(cells) != len(columns) {
			t.Fatalf("the matrix has a broken line: %q", line)
		}
		v := Verb(verb)
		seen[v] = true
		for i, c := range columns {
			for _, p := range c.policy {
				err := p.Allowed(c.id, v, c.object)
				if (err == nil) != (cells[i] == "+") {
					t.Errorf("column %d, %s %+v, private %v: %v", i, v, c.id, p.Private, err)
				}
				if err != nil && (fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "") {
					t.Errorf("%s: %v has kind %s, remedy %q", v, err, fault.KindOf(err), fault.Remedy(err))
				}
				if !c.id.Known() && err != nil && err != Unauthenticated {
					t.Errorf("%s: nobody gets %v", v, err)
				}
			}
		}
	}
	for _, r := range Rules() {
		if !seen[r.Verb] {
			t.Errorf("the matrix has no line for %q", r.Verb)
		}
	}
}

func TestAnUnknownVerbIsForNobody(t *testing.T) {
	if (Policy{}).Allowed(Identity{Via: "socket", Admin: true}, "fly", Object{}) == nil {
		t.Error("an administrator may do what no rule names")
	}
}

// TestRoleOfAToken: a token of a gateway may do what gateways do and what needs no identity.
func TestRoleOfAToken(t *testing.T) {
	id := Identity{Name: "admin", UID: 1001, Via: "token", Role: RoleGateway}
	for _, r := range Rules() {
		want := r.Verb == Gateway || r.Who == Nobody
		if err := (Policy{}).Allowed(id, r.Verb, Job("7", id.UID)); (err == nil) != want {
			t.Errorf("a gateway, %s: %v", r.Verb, err)
		}
	}
	id.Role = "other"
	if (Policy{}).Allowed(id, Gateway, Object{}) == nil {
		t.Error("a token of another role is a gateway")
	}
}

func TestRootIsNotAnOwnerByAccident(t *testing.T) {
	root := Object{} // its UID is 0 as root's is, but nobody owns it
	if (Policy{}).Allowed(Identity{Name: "root", UID: 0, Via: "token"}, Cancel, root) == nil {
		t.Error("a zero object belongs to uid 0")
	}
}

func TestAccountsOfAToken(t *testing.T) {
	free, bound := Identity{}, Identity{Accounts: []string{"a", "b"}}
	if free.MayCharge("x") != nil || bound.MayCharge("b") != nil || bound.MayCharge("") != nil {
		t.Error("refused what is allowed")
	}
	if err := bound.MayCharge("x"); fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
		t.Errorf("%v", err)
	}
}
