package limit

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
)

// KeyOf is what a policy looks at in a job. Of several partitions the first counts.
func KeyOf(s *job.Spec) Key {
	k := Key{Account: s.Account, User: s.Owner.User, QOS: s.QOS, Licenses: s.Licenses}
	if len(s.Partitions) > 0 {
		k.Partition = s.Partitions[0]
	}
	return k
}

// Door counts the jobs that wait or run, for the limits on submissions (MaxSubmitJobs,
// GrpSubmitJobs and those of QOS).
type Door struct {
	book  *Book
	rules map[Key]*Rules
}

// NewDoor returns a door before which nobody stands.
func NewDoor(p *account.Policy) *Door {
	return &Door{book: New(p, 0), rules: map[Key]*Rules{}}
}

func (d *Door) rulesOf(k Key) *Rules {
	k.Licenses = ""
	r := d.rules[k]
	if r == nil {
		r = d.book.Rules(k)
		d.rules[k] = r
	}
	return r
}

// Add counts n jobs more; negative: less.
func (d *Door) Add(k Key, n int) {
	for _, c := range d.rulesOf(k).atDoor {
		d.book.level[c.counter] += resource.Amount(n)
	}
}

// Refuses returns the limit that n jobs more would exceed; None: they may come.
func (d *Door) Refuses(k Key, n int) reason.Reason {
	r := d.rulesOf(k)
	for i := range r.Door {
		if c := &r.Door[i]; d.book.Exceeds(c, resource.Amount(n)) {
			why := c.Why
			why.Need, why.Used = int64(n), int64(d.book.Used(c))
			return why
		}
	}
	return reason.Reason{}
}

// Alone returns a limit that a job does not pass even if nothing else runs; None:
// there is none, or it is known only when the job is placed.
func (b *Book) Alone(r *Rules, s *job.Spec) reason.Reason {
	u := &Use{Seconds: int64((s.TimeLimit + time.Second - 1) / time.Second), Endless: s.TimeLimit <= 0, AsUsed: s.Endless()}
	b.Table.Clear(u)
	b.Table.Shape(u, class.Compile(s).Common())
	needs := r.Needs(nil, u)
	i := b.BlockedSurely(r, needs, false)
	if i < 0 {
		return reason.Reason{}
	}
	why := r.Checks[i].Why
	why.Need = int64(needs[i])
	return why
}

// Longest is the longest time that a job of these rules may take, and the check that
// says so; nil: any.
func (r *Rules) Longest() (longest time.Duration, by *Check) {
	for i := range r.Checks {
		if c := &r.Checks[i]; c.need == lasting && (by == nil || time.Duration(c.Bound)*time.Second < longest) {
			longest, by = time.Duration(c.Bound)*time.Second, c
		}
	}
	return longest, by
}
