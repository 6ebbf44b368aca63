package schedules

import (
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/transport"
)

type listInput struct {
	transport.ListQuery
}

// scheduleList is the list of schedules. It is not written to.
var scheduleList = transport.List[api.Schedule]{
	Noun:   "schedules",
	States: []string{"waiting", "running", "suspended"},
	Row: func(s *api.Schedule) transport.ListedRow {
		account, _, ok := strings.Cut(s.Name, "/")
		if !ok {
			account = ""
		}
		return transport.ListedRow{Name: s.Name, Account: account, Owner: s.Owner, State: s.State}
	},
	Keys: map[string]func(*api.Schedule) (float64, string){
		"state": func(s *api.Schedule) (float64, string) { return 0, s.State },
		"owner": func(s *api.Schedule) (float64, string) { return 0, s.Owner },
		"next":  func(s *api.Schedule) (float64, string) { return unixOf(s.Next), "" },
		"last": func(s *api.Schedule) (float64, string) {
			if s.Last == nil {
				return 0, ""
			}
			return unixOf(s.Last.Time), ""
		},
	},
}

// unixOf is an instant in seconds; 0: none.
func unixOf(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixNano()) / float64(time.Second)
}
