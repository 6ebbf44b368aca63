package policy_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/policy"
)

// TestReservationsLeaveTheRest: a document keeps its comments and what else it says
// when its reservations change.
func TestReservationsLeaveTheRest(t *testing.T) {
	const rest = "# ours\nlicenses:\n  - {name: matlab, count: 2} # two\n"
	r := account.Reservation{Name: "power", Start: "2026-12-01T08:00:00Z", Duration: account.Duration(3600e9)}
	once := policy.WithReservations(rest, []account.Reservation{r})
	p, err := policy.Parse("it", []byte(once))
	if err != nil || len(p.Reservations) != 1 || p.Reservations[0].Name != "power" || len(p.Licenses) != 1 {
		t.Fatalf("%v: %+v of\n%s", err, p, once)
	}
	if !strings.HasPrefix(once, rest) {
		t.Errorf("it begins otherwise now:\n%s", once)
	}
	if none := policy.WithReservations(once, nil); none != rest {
		t.Errorf("without reservations again it is\n%s", none)
	}
	s := r
	s.Name = "water"
	if _, err := policy.Parse("it", []byte(policy.WithReservations(once, []account.Reservation{r, s}))); err == nil || !strings.Contains(err.Error(), "power has nodes of it at 2026-12-01T08:00:00Z") {
		t.Errorf("two that overlap: %v", err)
	}
}
