package admission

import (
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// checkReservation refuses a job that is to run in a reservation which is not there, or
// which its account and user may not use.
func (r *Rules) checkReservation(s *job.Spec) error {
	if s.Reservation == "" {
		return nil
	}
	var have []account.Reservation
	if r.policy != nil {
		have = r.policy.Reservations
	}
	if strings.Contains(s.Reservation, ",") {
		return fault.New(fault.Unsupported, "--reservation=%s: a job can run in one reservation only, not in the first of several that has room", s.Reservation).
			Advise("name one of them")
	}
	i := slices.IndexFunc(have, func(h account.Reservation) bool { return h.Name == s.Reservation })
	switch {
	case len(have) == 0:
		return fault.New(fault.Invalid, "--reservation=%s: this site has no reservations", s.Reservation).Advise("leave it out, or have an administrator make one (cox reserve create)")
	case i < 0:
		var names []string
		for _, h := range have {
			names = append(names, h.Name)
		}
		return fault.New(fault.Invalid, "--reservation=%s: there is no such reservation", s.Reservation).Advise("%s", listChoices("reservations here", names))
	case !have[i].Admits(s.Account, s.Owner.User):
		return fault.New(fault.Permission, "--reservation=%s: neither user %s nor account %q may use it", s.Reservation, s.Owner.User, s.Account).
			Advise("leave it out, name another account, or have an administrator add you (cox reserve list shows who may)")
	}
	return nil
}
