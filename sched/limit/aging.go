package limit

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// How many jobs wait and grow older: GrpJobsAccrue, MaxJobsAccrue and those of QOS.
// The counters are raised and lowered by Age alone.

// BoundsAge reports whether jobs of these rules may have to wait until they grow older.
func (r *Rules) BoundsAge() bool { return r != nil && len(r.ages) > 0 }

// Ageless returns the counter at which one more job of these rules that would grow older
// is stopped; -1: none stops it. why names the limit.
func (b *Book) Ageless(r *Rules) (counter int32, why reason.Reason) {
	for i := range r.ages {
		if c := &r.ages[i]; b.Exceeds(c, 1) {
			why = c.Why
			why.Need, why.Used = 1, int64(b.Used(c))
			return c.Counter, why
		}
	}
	return -1, reason.Reason{}
}

// Age counts n jobs more that grow older; negative: less. It calls f for each counter
// that fell.
func (b *Book) Age(r *Rules, n int64, f func(counter int32)) {
	for _, c := range r.aging {
		b.level[c.counter] += resource.Amount(n)
		if n < 0 {
			f(c.counter)
		}
	}
}

// CheckAge compares the counters of jobs that grow older with those counted anew.
func (b *Book) CheckAge(aging []*Rules) error {
	anew := make([]resource.Amount, len(b.keys))
	for _, r := range aging {
		for _, c := range r.aging {
			anew[c.counter]++
		}
	}
	for c := range b.keys {
		if b.keys[c].measure == accruing && anew[c] != b.level[c] {
			return fmt.Errorf("%v has %d jobs that grow older, %d are counted", b.keys[c].holder, anew[c], b.level[c])
		}
	}
	return nil
}
