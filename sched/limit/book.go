package limit

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// More things that are counted, beside those of needOf.
const (
	submitted needOf = iota + 100 // jobs that wait or run
	spent                         // seconds used before, decayed
	spentWall                     // seconds of wall time, the same
	accruing                      // jobs that wait and grow older
)

// Book has the counters of one policy. A counter is made when the first rules need
// it.
//
// Invariants: level is what the holds that are in the book add up to, as of second
// now; of what becomes less by itself, rate is how much in a second.
type Book struct {
	Table  *Table
	policy *account.Policy

	accounts   map[string]*account.Account
	qos        map[string]*account.QOS
	partitions map[string]*account.Partition

	byKey   map[counterKey]int32
	keys    []counterKey
	level   []resource.Amount
	rate    []resource.Amount // of those in timed
	endless []int32           // holds without an end, which need more than there is
	timed   []int32           // counters of what becomes less by itself
	now     int64             // second
	holds   draining
	budgets []Budget
	wholes  map[string]Whole // by base; of what parts are

	fell   []int32 // since Fell was asked
	marked []bool  // those in fell
}

type counterKey struct {
	holder  holder
	measure needOf
	tres    int
}

// New returns a book of no holds at a second.
func New(p *account.Policy, now int64) *Book {
	b := &Book{
		Table: newTable(p), policy: p, now: now, byKey: map[counterKey]int32{},
		accounts: map[string]*account.Account{}, qos: map[string]*account.QOS{}, partitions: map[string]*account.Partition{},
	}
	for i := range p.Accounts {
		b.accounts[p.Accounts[i].Name] = &p.Accounts[i]
	}
	for i := range p.QOS {
		b.qos[p.QOS[i].Name] = &p.QOS[i]
	}
	for i := range p.Partitions {
		b.partitions[p.Partitions[i].Name] = &p.Partitions[i]
	}
	return b
}

func (b *Book) findAccount(name string) *account.Account     { return b.accounts[name] }
func (b *Book) findQOS(name string) *account.QOS             { return b.qos[name] }
func (b *Book) findPartition(name string) *account.Partition { return b.partitions[name] }

// counterNumber returns the number of a counter.
func (b *Book) counterNumber(h holder, measure needOf, tres int) int32 {
	key := counterKey{h, measure, tres}
	if c, ok := b.byKey[key]; ok {
		return c
	}
	c := int32(len(b.keys))
	b.byKey[key] = c
	b.keys = append(b.keys, key)
	b.level, b.rate, b.endless, b.marked = append(b.level, 0), append(b.rate, 0), append(b.endless, 0), append(b.marked, false)
	if measure == overall {
		b.timed = append(b.timed, c)
	}
	return c
}

// Counters is how many there are; numbers below it are valid.
func (b *Book) Counters() int { return len(b.keys) }

// Needs returns what a job of that use needs of each check, in dst if that is large
// enough. The use is given the licences that the rules know of.
func (r *Rules) Needs(dst []resource.Amount, u *Use) []resource.Amount {
	r.License(u)
	dst = dst[:0]
	for i := range r.Checks {
		dst = append(dst, u.amountOf(r.Checks[i].need, r.Checks[i].tres))
	}
	return dst
}

// License enters the licences that a job of these rules holds.
func (r *Rules) License(u *Use) {
	for _, l := range r.licenses {
		u.Held[l.tres], u.Fullest[l.tres] = l.amount, l.amount
	}
}

func (u *Use) amountOf(need needOf, tres int) resource.Amount {
	switch need {
	case held:
		return u.Held[tres]
	case fullest:
		return u.Fullest[tres]
	case overall:
		if u.AsUsed {
			return 0
		}
		return overTime(inTime(tres, u.Held[tres]), u.Seconds, u.Endless)
	case lasting:
		if u.Endless {
			return resource.Unlimited
		}
		return resource.Amount(u.Seconds)
	}
	return 1
}

// tooMuch is more than any limit in seconds allows, and small enough for sums of it.
const tooMuch = resource.Amount(1) << 52

func overTime(a resource.Amount, seconds int64, endless bool) resource.Amount {
	if a == 0 {
		return 0
	}
	if x := a.Mul(int(seconds)); !endless && x < tooMuch {
		return x
	}
	return resource.Unlimited
}

// Blocked returns the first check that a job with these needs does not pass; -1: it
// passes all of them.
func (b *Book) Blocked(r *Rules, needs []resource.Amount) int {
	for i := range r.Checks {
		if b.Exceeds(&r.Checks[i], needs[i]) {
			return i
		}
	}
	return -1
}

// BlockedSurely is Blocked for needs that are the least that the job may take, unless
// they are exact: a check that more might pass is left out.
func (b *Book) BlockedSurely(r *Rules, needs []resource.Amount, exact bool) int {
	for i := range r.Checks {
		if c := &r.Checks[i]; (exact || c.Sure()) && b.Exceeds(c, needs[i]) {
			return i
		}
	}
	return -1
}

// Exceeds reports whether a need does not pass a check now.
func (b *Book) Exceeds(c *Check, need resource.Amount) bool {
	if c.low {
		return need < c.Bound
	}
	return need > c.Bound-b.Used(c)
}

// Used is what a check's counter has now; 0 for one job alone.
func (b *Book) Used(c *Check) resource.Amount {
	if c.Counter < 0 {
		return 0
	}
	used := b.level[c.Counter]
	if b.endless[c.Counter] > 0 {
		used = resource.Unlimited
	}
	if c.spent >= 0 {
		used = used.Add(b.level[c.spent])
	}
	return used
}

// Crowds reports whether a job of one kind, if it started, would keep one of another
// kind from passing its checks, which it passes now. What becomes less by itself is
// left out.
func (b *Book) Crowds(r *Rules, raises []resource.Amount, other *Rules, needs []resource.Amount) bool {
	for i := range other.Checks {
		c := &other.Checks[i]
		if c.Counter < 0 || c.need == overall {
			continue
		}
		for k, x := range r.charges {
			if x.counter == c.Counter && needs[i] > c.Bound-b.Used(c).Add(raises[k]) {
				return true
			}
		}
	}
	return false
}

// Raises returns by how much a job of that use raises each counter of its rules, in
// dst if that is large enough.
func (r *Rules) Raises(dst []resource.Amount, u *Use) []resource.Amount {
	r.License(u)
	dst = dst[:0]
	for _, c := range r.charges {
		dst = append(dst, u.amountOf(c.need, c.tres))
	}
	return dst
}

// Asks reports whether a check is about one node, and whether one is about a type of
// device.
func (r *Rules) Asks() (perNode, perType bool) {
	for i := range r.Checks {
		perNode = perNode || r.Checks[i].need == fullest
		perType = perType || r.Checks[i].typed
	}
	return perNode, perType
}

// Sure reports whether a check that does not pass with the least that a job takes
// does not pass with more either.
func (c *Check) Sure() bool { return !c.low || c.fixed }

// Timed lists the counters of what becomes less by itself.
func (b *Book) Timed() []int32 { return b.timed }

// Check adds up holds anew and reports a counter that is another.
func (b *Book) Check(holds []*Hold) error {
	anew := &Book{level: make([]resource.Amount, len(b.level)), rate: make([]resource.Amount, len(b.rate)), endless: make([]int32, len(b.endless)), now: b.now}
	for _, h := range holds {
		if over := !h.endless && h.until <= b.now; over != h.drained && h.place >= 0 {
			return fmt.Errorf("a hold until %d is drained: %v, at %d", h.until, h.drained, b.now)
		}
		anew.raiseCounters(h, 1)
	}
	for c := range b.keys {
		if m := b.keys[c].measure; m == spent || m == spentWall || m == accruing {
			continue // told, not added up
		}
		if b.level[c] != anew.level[c] || b.rate[c] != anew.rate[c] || b.endless[c] != anew.endless[c] {
			return fmt.Errorf("counter %+v: level %d, rate %d, endless %d; what runs makes %d, %d, %d", b.keys[c], b.level[c], b.rate[c], b.endless[c], anew.level[c], anew.rate[c], anew.endless[c])
		}
	}
	return nil
}

// Passes returns the second from which on a need passes a check if nothing starts and
// nothing ends before its time, or an earlier one; 0: time alone does not help.
func (b *Book) Passes(c *Check, need resource.Amount) int64 {
	if c.Counter < 0 || b.rate[c.Counter] == 0 || b.endless[c.Counter] > 0 || need > c.Bound {
		return 0
	}
	over := b.Used(c).Add(need) - c.Bound
	return b.now + max(int64(over.DivUp(b.rate[c.Counter])), 1)
}

// PassesLater is Passes for what a job that runs would hold until its end, which is not
// among the holds: of what is counted in time its own need becomes less as well.
func (b *Book) PassesLater(c *Check, u *Use) int64 {
	need, rate := u.amountOf(c.need, c.tres), resource.Amount(0)
	if c.need != overall || u.Endless || need == resource.Unlimited {
		return 0
	}
	if rate = inTime(c.tres, u.Held[c.tres]); c.Counter >= 0 {
		if b.endless[c.Counter] > 0 {
			return 0
		}
		rate += b.rate[c.Counter]
	}
	if rate == 0 {
		return 0 // neither it nor what runs holds any: what was used is too much already
	}
	over := b.Used(c).Add(need) - c.Bound
	return b.now + max(int64(over.DivUp(rate)), 1)
}

// Falls reports whether a check's counter becomes less by itself.
func (b *Book) Falls(c *Check) bool { return c.Counter >= 0 && b.rate[c.Counter] > 0 }

// Hold is what one running job has raised.
type Hold struct {
	rules   *Rules
	amounts []resource.Amount // by charge; in a second where that is counted, unless it rests
	until   int64             // second
	endless bool
	rests   bool // its time waits
	drained bool // its time is over: what becomes less by itself has become nothing
	place   int  // in Book.holds; -1: not there
}

// Charges reports whether a job of these rules raises any counter.
func (r *Rules) Charges() bool { return len(r.charges) > 0 }

// Hold raises the counters by a running job that ends at a second by its limit; by one
// that rests for the seconds that are left of it.
func (b *Book) Hold(r *Rules, u *Use, until int64) *Hold {
	r.License(u)
	h := &Hold{rules: r, amounts: make([]resource.Amount, len(r.charges)), until: max(until, b.now), endless: u.Endless, place: -1}
	if u.Rests && !u.Endless {
		h.endless = slices.ContainsFunc(r.charges, func(c charge) bool { return c.need == overall && u.amountOf(overall, c.tres) == resource.Unlimited })
		h.rests = !h.endless
	}
	timed := false
	for i, c := range r.charges {
		switch {
		case c.need == overall && u.AsUsed: // nothing ahead of time
		case c.need == overall && h.rests:
			h.amounts[i] = u.amountOf(overall, c.tres)
		case c.need == overall:
			h.amounts[i] = inTime(c.tres, u.Held[c.tres])
			timed = timed || h.amounts[i] > 0
			h.endless = h.endless || overTime(h.amounts[i], h.until-b.now, false) == resource.Unlimited
		default:
			h.amounts[i] = u.amountOf(c.need, c.tres)
		}
	}
	b.raiseCounters(h, 1)
	if timed && !h.endless {
		heap.Push(&b.holds, h)
		b.dropExpired()
	}
	return h
}

// Release lowers them again.
func (b *Book) Release(h *Hold) {
	if h.place >= 0 {
		heap.Remove(&b.holds, h.place)
	}
	b.raiseCounters(h, -1)
}

func (b *Book) raiseCounters(h *Hold, sign int) {
	for i, c := range h.rules.charges {
		a := h.amounts[i]
		switch {
		case a == 0:
			continue
		case c.need != overall || h.rests:
			b.level[c.counter] += a.Mul(sign)
		case h.endless:
			b.endless[c.counter] += int32(sign)
		case !h.drained:
			b.level[c.counter] += a.Mul(sign).Mul(int(h.until - b.now))
			b.rate[c.counter] += a.Mul(sign)
		}
		if sign < 0 {
			b.noteFallen(c.counter)
		}
	}
}

func (b *Book) noteFallen(c int32) {
	if !b.marked[c] {
		b.marked[c] = true
		b.fell = append(b.fell, c)
	}
}

// Fell lists the counters that fell since it was asked last. The list is valid until
// the next call of a method.
func (b *Book) Fell() []int32 {
	list := b.fell
	for _, c := range list {
		b.marked[c] = false
	}
	b.fell = b.fell[:0]
	return list
}

// HasFallen reports whether Fell would list any.
func (b *Book) HasFallen() bool { return len(b.fell) > 0 }

// Marks is how many counters Fell would list, and Unmark forgets those that fell since then:
// all of it was raised again.
func (b *Book) Marks() int { return len(b.fell) }

// Unmark forgets which counters fell since there were so many.
func (b *Book) Unmark(n int) {
	for _, c := range b.fell[n:] {
		b.marked[c] = false
	}
	b.fell = b.fell[:n]
}

// Advance goes on to a second.
func (b *Book) Advance(now int64) {
	if now <= b.now {
		return
	}
	from := b.now
	b.now = now
	for len(b.holds) > 0 && b.holds[0].until <= now { // these used their rest within the time
		h := b.holds[0]
		heap.Pop(&b.holds)
		h.drained = true
		for i, c := range h.rules.charges {
			if c.need == overall {
				b.level[c.counter] -= h.amounts[i].Mul(int(h.until - from))
				b.rate[c.counter] -= h.amounts[i]
				b.noteFallen(c.counter)
			}
		}
	}
	for _, c := range b.timed {
		if b.rate[c] > 0 {
			b.level[c] -= b.rate[c].Mul(int(now - from))
			b.noteFallen(c)
		}
	}
}

// dropExpired takes out holds whose time is over already.
func (b *Book) dropExpired() {
	for len(b.holds) > 0 && b.holds[0].until <= b.now {
		h := b.holds[0]
		heap.Pop(&b.holds)
		h.drained = true
		for i, c := range h.rules.charges {
			if c.need == overall {
				b.rate[c.counter] -= h.amounts[i]
			}
		}
	}
}

// draining is a heap of holds by their ends.
type draining []*Hold

func (d draining) Len() int           { return len(d) }
func (d draining) Less(i, j int) bool { return d[i].until < d[j].until }
func (d draining) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}

func (d *draining) Push(x any) {
	h := x.(*Hold)
	h.place = len(*d)
	*d = append(*d, h)
}

func (d *draining) Pop() any {
	old := *d
	h := old[len(old)-1]
	h.place = -1
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return h
}
