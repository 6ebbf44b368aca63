package services

import (
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/transport"
)

type listInput struct {
	transport.ListQuery
}

// serviceList is the list of services. It is not written to.
var serviceList = transport.List[api.Service]{
	Noun:   "services",
	States: []string{"starting", "ready", "degraded", "updating", "paused", "halted", "failed", "asleep", "stopping"},
	Row: func(s *api.Service) transport.ListedRow {
		return transport.ListedRow{Name: s.Name, Account: accountOf(s.Name), Owner: s.Owner, State: s.State}
	},
	Keys: map[string]func(*api.Service) (float64, string){
		"state":               func(s *api.Service) (float64, string) { return 0, s.State },
		"owner":               func(s *api.Service) (float64, string) { return 0, s.Owner },
		"revision":            func(s *api.Service) (float64, string) { return float64(s.Revision), "" },
		"ready":               func(s *api.Service) (float64, string) { return float64(s.Replicas.Ready), "" },
		"requests_per_second": loadKey(func(l *api.Load) float64 { return l.Rate }),
		"failed_per_second":   loadKey(func(l *api.Load) float64 { return l.Failed }),
		"in_flight":           loadKey(func(l *api.Load) float64 { return float64(l.InFlight) }),
		"p50":                 latencyKey(func(l *api.Latency) float64 { return l.P50 }),
		"p95":                 latencyKey(func(l *api.Latency) float64 { return l.P95 }),
		"p99":                 latencyKey(func(l *api.Latency) float64 { return l.P99 }),
		"since":               func(s *api.Service) (float64, string) { return unixOf(s.Since), "" },
	},
}

// unknown is the number by which services are sorted of which a number is not known.
const unknown = -1

func loadKey(number func(*api.Load) float64) func(*api.Service) (float64, string) {
	return func(s *api.Service) (float64, string) {
		if s.Load == nil {
			return unknown, ""
		}
		return number(s.Load), ""
	}
}

func latencyKey(number func(*api.Latency) float64) func(*api.Service) (float64, string) {
	return loadKey(func(l *api.Load) float64 {
		if l.Latency == nil {
			return unknown
		}
		return number(l.Latency)
	})
}

// accountOf is the account of a full name, "" of one that has none.
func accountOf(name string) string {
	account, _, ok := strings.Cut(name, "/")
	if !ok {
		return ""
	}
	return account
}

// unixOf is an instant in seconds; 0: none.
func unixOf(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixNano()) / float64(time.Second)
}
