package model

import (
	"encoding/json"
	"time"

	"github.com/coxswain-sched/coxswain/store"
)

// What accounts used. Usage of a simulated site does not decay, so it can only grow, but for
// what attempts were charged that had ended and had not been heard of: what the last record of
// usage has, and what attempts ran that ended since, is shown by every leader, however often
// servers were killed in between. Where the clock was set
// that is not judged: nobody can tell then how long something ran.

// usage is what was used up to a second, in seconds of running jobs.
type usage struct {
	at    time.Time
	kept  map[string]float64 // by account
	since map[string]float64 // of attempts that ended since
	ends  int                // how many these were
}

// roundingSlack is by how much seconds may be rounded.
func (u *usage) roundingSlack() float64 { return float64(2 + 2*u.ends) }

// recordUsage is a record of usage.
func (m *Model) recordUsage(r *store.Record, p *payload) {
	var at int64
	if err := json.Unmarshal(p.At, &at); err != nil {
		m.addBroken(Account, "durable", "the usage of record %d cannot be read: %v", r.Seq, err)
		return
	}
	next := usage{at: time.Unix(at, 0), kept: map[string]float64{}, since: map[string]float64{}}
	for _, e := range p.Entries {
		if e.User == "" && e.QOS == "" {
			next.kept[e.Account] = e.Wall
		}
	}
	m.checkLostUsage(next.kept, "record %d keeps", r.Seq)
	m.used = next
}

// chargeEnd is the end of an attempt, as its engine said, and when it was heard of. What was
// charged beyond it is given back.
func (m *Model) chargeEnd(a *attempt, ended, heard time.Time) {
	if m.rules == nil || m.used.since == nil {
		return
	}
	if ended.IsZero() || ended.After(heard) {
		ended = heard
	}
	seconds := ended.Sub(m.used.at).Seconds()
	if seconds > 0 {
		if a.ran.IsZero() || !ended.After(a.ran) {
			return
		}
		seconds = min(seconds, ended.Sub(a.ran).Seconds())
	}
	m.used.ends++
	for _, acct := range m.accountsAbove(a.job.spec.Account) {
		m.used.since[acct.Name] += seconds
	}
}

// checkLostUsage looks for usage that was lost.
func (m *Model) checkLostUsage(has map[string]float64, format string, by any) {
	if m.jumped {
		return
	}
	for i := range m.rulesAccounts() {
		name := m.rules.Accounts[i].Name
		if want := m.used.kept[name] + m.used.since[name]; has[name]+m.used.roundingSlack() < want {
			m.addBroken(Account, "usage", format+" that account %s used %.0f seconds; it was %.0f before", by, name, has[name], want)
		}
	}
}

func (m *Model) rulesAccounts() int {
	if m.rules == nil {
		return 0
	}
	return len(m.rules.Accounts)
}
