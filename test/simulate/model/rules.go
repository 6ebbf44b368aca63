package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// What the rules of a site allow, counted anew for each grant from what the journal
// holds. The model knows the rules that the simulation draws: group limits of accounts,
// limits of a QOS for a job and for a user, licences, quotas of CPUs in a cohort of
// depth one, nodes that are kept for a time, and who may take whose place by QOS or by
// quota.

// recordPolicy is a record of rules.
func (m *Model) recordPolicy(r *store.Record, p *payload) {
	var rules account.Policy
	if err := json.Unmarshal(p.Rules, &rules); err != nil {
		m.addBroken(Account, "durable", "the rules of record %d cannot be read: %v", r.Seq, err)
		return
	}
	m.rules, m.ruling = &rules, p.Text
	m.rulings = append(m.rulings, p.Text)
}

// part is what one job takes of what the rules count.
type part struct {
	spec     *job.Spec
	cpu      int64 // in thousandths
	lends    int64 // of that: it is suspended to make room
	licences int64
}

// partOf is what a job holds. Limits count what it lends, quotas do not.
func partOf(w *work) part {
	p := part{spec: w.spec, licences: licenseCount(w.spec)}
	for _, c := range w.allClaims() {
		p.cpu += int64(c.Take.CPU)
		if w.held.parked {
			p.lends += int64(c.Take.CPU)
		}
	}
	return p
}

// leastPart is what a job takes at least.
func (m *Model) leastPart(s *job.Spec) part {
	p := part{spec: s, licences: licenseCount(s)}
	for _, g := range s.Groups {
		cpu := int64(g.PerTask.CPU) * int64(leastTasks(&g))
		if g.Exclusive {
			for _, n := range m.nodes {
				cpu = max(cpu, int64(n.Capacity.CPU)*int64(max(g.Nodes.Min, 1)))
			}
		}
		p.cpu += cpu
	}
	return p
}

// licenseCount is how many a job holds of the one licence of a simulated site.
func licenseCount(s *job.Spec) int64 {
	name, count, many := strings.Cut(s.Licenses, ":")
	if name == "" {
		return 0
	}
	if !many {
		return 1
	}
	n, _ := strconv.ParseInt(count, 10, 64)
	return n
}

// checkRules checks a new grant against the rules.
func (m *Model) checkRules(a *attempt, r *store.Record, limit time.Duration) {
	if m.rules == nil {
		return
	}
	var others []part
	for _, o := range m.live {
		if o.job != nil && o.job != a.job && o.job.held == o {
			others = append(others, partOf(o.job))
		}
	}
	if rule, text := m.exceededRule(partOf(a.job), others); text != "" {
		m.addBroken(Account, rule, "%s is granted, and with it %s", a.fullName(), text)
	}
	if text := m.tripleDevice(a); text != "" {
		m.addBroken(Account, "preempt", "%s is granted %s", a.fullName(), text)
	}
	if node, text := m.brokenReservation(a, r.At, limit); text != "" {
		m.addBroken(Account, "kept", "%s is granted on %s, %s", a.fullName(), node, text)
	}
}

// exceededRule says which rule a job would break beside others; "" none.
func (m *Model) exceededRule(p part, others []part) (rule, text string) {
	for _, check := range []func(part, []part) (string, string){m.overAccount, m.overQOS, m.overLicences, m.overQuota} {
		if rule, text := check(p, others); text != "" {
			return rule, text
		}
	}
	return "", ""
}

// accountsAbove lists an account and those above it.
func (m *Model) accountsAbove(name string) (list []*account.Account) {
	for name != "" {
		i := slices.IndexFunc(m.rules.Accounts, func(a account.Account) bool { return a.Name == name })
		if i < 0 {
			return list
		}
		list = append(list, &m.rules.Accounts[i])
		name = m.rules.Accounts[i].Parent
	}
	return list
}

func (m *Model) overAccount(p part, others []part) (rule, text string) {
	for _, a := range m.accountsAbove(p.spec.Account) {
		jobs, cpu := int64(1), p.cpu
		for _, o := range others {
			if slices.Contains(m.accountsAbove(o.spec.Account), a) {
				jobs, cpu = jobs+1, cpu+o.cpu
			}
		}
		if most := a.Limits.GroupJobs; most != nil && jobs > *most {
			return "limit", fmt.Sprintf("%d jobs run in account %s, of which %d may", jobs, a.Name, *most)
		}
		if most, ok := a.Limits.Group["cpu"]; ok && cpu > int64(most) {
			return "limit", fmt.Sprintf("account %s holds %d thousandths of a CPU of %d", a.Name, cpu, most)
		}
	}
	return "", ""
}

// qosOf finds the QOS of a job; nil: none.
func (m *Model) qosOf(s *job.Spec) *account.QOS {
	i := slices.IndexFunc(m.rules.QOS, func(q account.QOS) bool { return q.Name == s.QOS })
	if i < 0 {
		return nil
	}
	return &m.rules.QOS[i]
}

func (m *Model) overQOS(p part, others []part) (rule, text string) {
	q := m.qosOf(p.spec)
	if q == nil {
		return "", ""
	}
	jobs := int64(1)
	for _, o := range others {
		if m.qosOf(o.spec) == q && o.spec.Owner.User == p.spec.Owner.User {
			jobs++
		}
	}
	if most := q.Limits.UserJobs; most != nil && jobs > *most {
		return "limit", fmt.Sprintf("%d jobs of %s run with QOS %s, of which %d may", jobs, p.spec.Owner.User, q.Name, *most)
	}
	if most, ok := q.Limits.Job["cpu"]; ok && p.cpu > int64(most) {
		return "limit", fmt.Sprintf("it holds %d thousandths of a CPU, with QOS %s it may hold %d", p.cpu, q.Name, most)
	}
	return "", ""
}

func (m *Model) overLicences(p part, others []part) (rule, text string) {
	if p.licences == 0 || len(m.rules.Licenses) == 0 {
		return "", ""
	}
	sum := p.licences
	for _, o := range others {
		sum += o.licences
	}
	if has := m.rules.Licenses[0].Count; sum > has {
		return "licence", fmt.Sprintf("%d licences are held of %d", sum, has)
	}
	return "", ""
}

// quotaOf is the quota of CPUs of an account; nil: it has none.
func (m *Model) quotaOf(name string) (a *account.Account, q *account.ResourceQuota) {
	for _, a := range m.accountsAbove(name) {
		if a.Quota != nil {
			return a, &a.Quota.Flavors[0].Resources[0]
		}
	}
	return nil, nil
}

// overQuota: nobody holds more than is nominal and what he may borrow, and what all
// hold beyond what they keep for themselves is not more than all lend.
func (m *Model) overQuota(p part, others []part) (rule, text string) {
	mine, quota := m.quotaOf(p.spec.Account)
	if mine == nil {
		return "", ""
	}
	held := map[string]int64{mine.Name: p.cpu - p.lends}
	for _, o := range others {
		if a, _ := m.quotaOf(o.spec.Account); a != nil {
			held[a.Name] += o.cpu - o.lends
		}
	}
	if quota.Borrow != nil && held[mine.Name] > int64(quota.Nominal+*quota.Borrow) {
		return "quota", fmt.Sprintf("account %s holds %d thousandths of a CPU: %d are its quota, and %d it may borrow", mine.Name, held[mine.Name], quota.Nominal, *quota.Borrow)
	}
	lent, beyond, before := int64(0), int64(0), int64(0)
	for i := range m.rules.Accounts {
		a := &m.rules.Accounts[i]
		if a.Quota == nil {
			continue
		}
		q := &a.Quota.Flavors[0].Resources[0]
		lends := int64(q.Nominal)
		if q.Lend != nil {
			lends = min(lends, int64(*q.Lend))
		}
		keeps, has := int64(q.Nominal)-lends, held[a.Name]
		lent += lends
		beyond += max(has-keeps, 0)
		if a == mine {
			has -= p.cpu - p.lends
		}
		before += max(has-keeps, 0)
	}
	if beyond > lent && beyond > before {
		return "quota", fmt.Sprintf("the accounts hold %d thousandths of a CPU beyond what each keeps, and lend %d", beyond, lent)
	}
	return "", ""
}

// brokenReservation says which reservation a grant breaks. When the clock was set, nobody can tell
// from records when a decision was made.
func (m *Model) brokenReservation(a *attempt, at time.Time, limit time.Duration) (node, text string) {
	if m.jumped {
		return "", ""
	}
	s := a.job.spec
	if limit == 0 {
		limit = s.TimeLimit
	}
	for i := range m.rules.Reservations {
		r := &m.rules.Reservations[i]
		begin, err := time.Parse(time.RFC3339, r.Start)
		if err != nil {
			continue
		}
		end := begin.Add(time.Duration(r.Duration))
		if s.Reservation == r.Name {
			if !slices.Contains(r.Accounts, s.Account) {
				return a.nodeNames()[0], "in reservation " + r.Name + ", which is not for account " + s.Account
			}
			if at.Add(time.Millisecond).Before(begin) || at.After(end) {
				return a.nodeNames()[0], "in reservation " + r.Name + ", which does not hold now"
			}
			continue
		}
		if at.Add(time.Millisecond).Before(end) && (limit <= 0 || at.Add(limit).After(begin)) {
			for _, n := range a.nodeNames() {
				if len(r.Nodes) == 0 || slices.Contains(r.Nodes, n) {
					return n, fmt.Sprintf("which reservation %s keeps for others from %s on for %s; it is %s, and its limit %s", r.Name, r.Start, time.Duration(r.Duration), at.UTC().Format(time.RFC3339Nano), limit)
				}
			}
		}
	}
	return "", ""
}

// recordPreempted is a record that asks a job to make room.
func (m *Model) recordPreempted(r *store.Record, p *payload) {
	w := m.workOf(r, job.ID(r.Job))
	if w == nil {
		return
	}
	if !w.state.Holds() {
		m.addBroken(Ledger, "stale", "job %d is to make room for job %d and is %s (record %d)", w.id, p.For, w.state, r.Seq)
	}
	if text := m.mayTake(w, m.jobs[p.For]); text != "" {
		m.addBroken(Account, "preempt", "job %d is to make room for job %d (record %d), %s", w.id, p.For, r.Seq, text)
	}
	if w.taken = p.Mode; m.takeTurns(w, m.jobs[p.For]) {
		m.countSeen("asked to give way to one whose turn it is")
	}
	if w.isPreempted() {
		w.flags |= job.Stopping
	}
	if by := m.jobs[p.For]; by != nil {
		by.awaits = true
	}
}

// mayTake says why a job may not take the place of another; "": it may.
func (m *Model) mayTake(w, by *work) string {
	switch {
	case m.takeTurns(w, by) && (by.state == job.Pending || by.held != nil && by.held.parked):
		return ""
	case m.rules == nil || len(m.rules.Preemption.By) == 0:
		return "and by the rules nobody does"
	case by == nil || by.state != job.Pending:
		return "which does not wait"
	case slices.Contains(m.rules.Preemption.By, "qos"):
		mine, its := m.qosOf(by.spec), m.qosOf(w.spec)
		if mine == nil || its == nil || !slices.Contains(mine.Preempts, its.Name) {
			return fmt.Sprintf("and QOS %q takes nothing from QOS %q", by.spec.QOS, w.spec.QOS)
		}
		return ""
	}
	mine, _ := m.quotaOf(by.spec.Account)
	its, quota := m.quotaOf(w.spec.Account)
	switch {
	case mine == nil || its == nil:
		return "and one of them has no quota"
	case mine == its && mine.Quota.Within == account.NoVictims:
		return "and account " + mine.Name + " takes nothing from itself"
	case mine == its:
		return ""
	case mine.Quota.Reclaim == account.NoVictims:
		return "and account " + mine.Name + " takes nothing from others"
	}
	held := int64(0)
	for _, a := range m.live {
		if a.job != nil && a.job.held == a {
			if o, _ := m.quotaOf(a.job.spec.Account); o == its {
				p := partOf(a.job)
				held += p.cpu - p.lends
			}
		}
	}
	for _, o := range m.jobs { // what is held for those who wait for others' end counts as well
		if o != by && o.awaits && o.state == job.Pending {
			if q, _ := m.quotaOf(o.spec.Account); q == its {
				held += m.leastPart(o.spec).cpu
			}
		}
	}
	if held <= int64(quota.Nominal) {
		return "and account " + its.Name + " has borrowed nothing"
	}
	return ""
}

// takeTurns reports whether two jobs take turns.
func (m *Model) takeTurns(a, b *work) bool {
	return m.rules != nil && a != nil && b != nil && m.hasTimeSlice(a) && m.hasTimeSlice(b)
}

// hasTimeSlice reports whether a job is in the one partition of a simulated site, and that has
// turns.
func (m *Model) hasTimeSlice(w *work) bool {
	return len(w.spec.Partitions) > 0 && len(m.rules.Partitions) > 0 && m.rules.Partitions[0].Name == w.spec.Partitions[0] && m.rules.Partitions[0].TimeSlice > 0
}

// tripleDevice says which device three jobs have at once, where jobs make room by turns alone.
func (m *Model) tripleDevice(a *attempt) string {
	if m.rules == nil || len(m.rulings) > 1 || len(m.rules.Preemption.By) > 0 {
		return ""
	}
	for _, name := range a.nodeNames() {
		for i, n := range m.deviceHolders(name) {
			if n > 2 {
				return fmt.Sprintf("device %d of %s, which %d jobs have", i, name, n)
			}
		}
	}
	return ""
}

// deviceHolders counts the jobs that have each device of a node, or lend it.
func (m *Model) deviceHolders(name string) map[int]int {
	out := map[int]int{}
	for _, a := range m.live {
		for _, c := range a.claims {
			if a.isHeld() && c.Node == name {
				for _, d := range c.Devices {
					out[d.Index]++
				}
			}
		}
	}
	return out
}

// isForbidden reports whether the rules keep a job from running where nothing else runs.
func (m *Model) isForbidden(w *work) bool {
	if m.rules == nil {
		return m.wantsPastReservation(w)
	}
	_, text := m.exceededRule(m.leastPart(w.spec), nil)
	return text != "" || m.wantsPastReservation(w)
}

// isBehindStrict reports whether a job stands in a strict queue in which another never starts.
func (m *Model) isBehindStrict(w *work) bool {
	if m.rules == nil {
		return false
	}
	mine, _ := m.quotaOf(w.spec.Account)
	return mine != nil && mine.Quota.Order == account.Strict && slices.ContainsFunc(m.order, func(o *work) bool {
		its, _ := m.quotaOf(o.spec.Account)
		return o.state == job.Pending && its == mine && m.isForbidden(o)
	})
}

// wantsPastReservation reports whether a job asks for a reservation that never comes. The control
// plane's time never goes back: where the clock was set, a reservation that is yet to come
// may be over for it.
func (m *Model) wantsPastReservation(w *work) bool {
	switch {
	case w.spec.Reservation == "":
		return false
	case m.jumped:
		return true
	}
	for i := 0; m.rules != nil && i < len(m.rules.Reservations); i++ {
		r := &m.rules.Reservations[i]
		begin, err := time.Parse(time.RFC3339, r.Start)
		if err == nil && r.Name == w.spec.Reservation && slices.Contains(r.Accounts, w.spec.Account) && m.now.Before(begin.Add(time.Duration(r.Duration))) {
			return false
		}
	}
	return true
}
