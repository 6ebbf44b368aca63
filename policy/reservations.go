package policy

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
)

// WithReservations puts reservations in the place of those that a document has, and
// leaves the rest of it as it is.
func WithReservations(text string, list []account.Reservation) string {
	var kept []string
	inside := false
	for _, line := range strings.SplitAfter(text, "\n") {
		if top := line != "" && !strings.ContainsAny(line[:1], " -#\r\n"); top {
			inside = strings.HasPrefix(line, "reservations:")
		}
		if !inside {
			kept = append(kept, line)
		}
	}
	out := strings.Join(kept, "")
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	if len(list) > 0 {
		out += string(Write(&account.Policy{Reservations: list}))
	}
	return out
}
