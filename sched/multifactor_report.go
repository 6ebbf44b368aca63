package sched

import (
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/account/priority"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// What is shown and kept of multifactor.go.

// Breakdown is how the priority of a queued job comes about.
type Breakdown struct {
	Priority int64
	Fixed    bool            // an operator set it, or no rules reckon it: there are no parts
	Parts    []priority.Item // in the order in which they are summed
	Tier     int32           // of its partition; goes before priority
	Eligible int64           // Unix seconds since when its age counts; 0: it does not
	At       int64           // Unix seconds of the tick whose priorities these are; 0: there are none
	Ageless  string          // the limit that keeps it from growing older; empty: none does
	Assoc    account.Ref     // whose share counts; zero: nobody's
}

// Explain says how the priority of a queued job comes about: what is cut of the sum of
// its parts is its priority, the very number that orders it. false: it is not queued.
func (c *Core) Explain(id job.ID) (Breakdown, bool) {
	e := c.queue.jobs[id]
	if e == nil {
		return Breakdown{}, false
	}
	t := e.class.key.policy
	b := Breakdown{Priority: e.readPriority(), Fixed: true, Tier: t.tier}
	r := t.priority.multifactor
	if r == nil {
		return b, true
	}
	b.At, b.Fixed = r.at, e.fixed
	if since := e.agesSince(r); since != 0 && since != notYet {
		b.Eligible = since
	}
	b.Ageless = c.accrueLimitReason(e)
	if t.priority.assoc >= 0 {
		b.Assoc = r.book.Ref(t.priority.assoc)
	}
	if !e.fixed {
		f := r.factorsOf(t, &e.class.size)
		f.Age = r.rules.Age(r.at, e.agesSince(r))
		b.Parts = r.rules.Explain(&f, 0, -e.priority)
	}
	return b, true
}

// Ranked reports whether the rules reckon priorities.
func (c *Core) Ranked() bool {
	return c.priority.multifactor != nil && c.priority.multifactor.rules != nil
}

// Priority is the number that orders a queued job; false: it is not queued. Like Explain
// and Shares it writes nothing, so that several may ask at once while no step is made.
func (c *Core) Priority(id job.ID) (int64, bool) {
	if e := c.queue.jobs[id]; e != nil {
		return e.readPriority(), true
	}
	return 0, false
}

// Rank is the number that orders a queued job, or ordered one that runs when it started; false:
// it is neither.
func (c *Core) Rank(id job.ID) (int64, bool) {
	if r := c.runs.byJob[id]; r != nil {
		return r.rank, true
	}
	return c.Priority(id)
}

// Share is an account or a user, and how he stands.
type Share struct {
	account.Ref
	Parent int            // in the list; -1: the root
	Shares account.Shares // as the rules say
	Guest  bool           // a user whom they do not name
	fair.Standing
	fair.Usage
	Rest []float64 // what its running jobs may still use: amounts of RestNames × seconds
}

// RestNames are the things of which Share.Rest tells. Jobs without a time limit are left
// out there.
var RestNames = []string{"cpu", "memory", "node", "billing", "gpu"}

// Shares lists the accounts and users in the order of the tree, users who are in no
// list last, as of the last tick. tres names what Usage.TRES is of.
func (c *Core) Shares() (list []Share, tres []string) {
	r := c.priority.multifactor
	if r == nil {
		return nil, nil
	}
	for i := range r.book.Len() {
		n := int32(i)
		list = append(list, Share{
			Ref: r.book.Ref(n), Parent: int(r.book.Parent(n)), Shares: r.book.Shares(n), Guest: r.book.Guest(n),
			Standing: r.standing[i], Usage: *r.book.Used(n), Rest: make([]float64, len(RestNames)),
		})
	}
	for _, run := range c.runs.ends.allRuns() {
		if seconds := float64(wholeSecond(run.until) - wholeSecond(c.clock.now)); run.nominee == nil && run.target == nil && run.until != never && seconds > 0 {
			c.addRemaining(list, run, seconds)
		}
	}
	return list, r.book.Names
}

// addRemaining adds what a running job may still use to its user and the accounts above him.
func (c *Core) addRemaining(list []Share, r *run, seconds float64) {
	var billed []resource.Amount
	for _, name := range r.policy.priority.bill.Names {
		billed = append(billed, c.heldAmount(r, name))
	}
	units := r.policy.priority.bill.Units(billed)
	for i := r.policy.priority.assoc; i >= 0; i = c.priority.multifactor.book.Parent(i) {
		for k, name := range RestNames {
			n := units
			if name != "billing" {
				n = float64(c.heldAmount(r, name))
			}
			list[i].Rest[k] += float64(n * seconds)
		}
	}
}

// PriorityMemory is what is known of order and usage beside events.
type PriorityMemory struct {
	At      int64        `json:"at"` // second of the last tick
	Begun   int64        `json:"begun"`
	Before  int64        `json:"before,omitempty"` // second of the tick before, as far as running jobs are charged
	From    int64        `json:"from,omitempty"`   // second before which nobody was charged; 0: not known
	Used    bool         `json:"used,omitempty"`
	Entries []fair.Entry `json:"entries,omitempty"`
	Factors []Factor     `json:"factors,omitempty"` // of users, as of the last tick; guests in the order in which they came
}

// Factor is the fair-share factor of a user.
type Factor struct {
	account.Ref
	Factor float64 `json:"factor"`
}

func (c *Core) priorityMemory() *PriorityMemory {
	r := c.priority.multifactor
	if r == nil {
		return nil
	}
	m := &PriorityMemory{At: r.at, Begun: r.book.At(), Used: r.used, Entries: r.book.Entries()}
	m.Before, m.From = r.book.Charged()
	for i := range r.standing {
		if ref := r.book.Ref(int32(i)); ref.User != "" {
			m.Factors = append(m.Factors, Factor{ref, r.standing[i].Factor})
		}
	}
	return m
}

// restorePriority makes order and usage as they were, for the rules that are set.
func (c *Core) restorePriority(m *PriorityMemory) {
	if c.priority.multifactor = newRanks(c.policy); c.priority.multifactor == nil || m == nil {
		return
	}
	r := c.priority.multifactor
	r.at, r.used = m.At, m.Used
	r.book.Restore(m.Begun, m.Entries)
	r.book.SetCharged(m.Before, m.From)
	at := make([]int32, len(m.Factors))
	for i := range m.Factors {
		at[i] = r.book.Join(m.Factors[i].Account, m.Factors[i].User)
	}
	r.standing = r.book.Rank()
	for i, n := range at {
		if n >= 0 {
			r.standing[n].Factor = m.Factors[i].Factor
		}
	}
}
