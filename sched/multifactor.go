package sched

import (
	"cmp"
	"math"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/account/priority"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/class"
)

// The order of the queue by the site's rules: Slurm's priority/multifactor
// (model/account/priority) over usage that decays and Fair Tree (model/account/fair);
// Slurm's priority_multifactor.html and fair_tree.html.
//
// Priorities are those of the last tick. All that counts in one beside age is alike
// for the jobs of a class, and is reckoned once for it (jobClass.base); within a class the
// job that waits longest is first, so it has the highest priority there: a tick costs
// a look at each class, not at each job. Nice, and a priority that an operator set,
// are part of a class's key.
//
// The order is: tier, priority, since when it may be considered (where age counts),
// submission, number.

// priorityState is the order of the queue and the usage behind it.
type priorityState struct {
	multifactor  *multifactor // nil: the policy says nothing of order and usage
	usageChanged bool         // usage was brought up to date
	stale        bool         // somebody new has a share: all classes are to be computed anew
}

// multifactor is what orders the queue, and what has been used; nil where the rules say
// nothing of it.
type multifactor struct {
	rules    *priority.Rules // nil: the jobs' own priorities
	book     *fair.Book
	standing []fair.Standing // by number in the book, as of the last tick
	at       int64           // second of the last tick
	period   int64           // seconds between two ticks
	all      map[string]*partitionTotals
	used     bool   // a job was charged since the last Used
	reckoned uint64 // raised when priorities are to be reckoned anew; never 0
}

// jobSize is what a job's size counts, as parts of the cluster.
type jobSize struct {
	job  float64
	tres []float64 // by Rules.Names
}

// ownPriority is what a job says of its priority itself.
type ownPriority struct {
	adjust int64 // added to what is reckoned
	fixed  bool  // nothing is reckoned: adjust is the priority
}

// partitionTotals is what a partition has; "" all nodes.
type partitionTotals struct {
	nodes, cpus float64
	tres        []float64 // by Rules.Names
}

const defaultPeriod = 5 * time.Minute

// newRanks compiles what the rules say of order; nil: nothing.
func newRanks(p *account.Policy) *multifactor {
	if p == nil || p.Priority.Zero() && len(p.Accounts) == 0 && !hasUsageBudget(p) {
		return nil
	}
	r := &multifactor{reckoned: 1, rules: priority.Compile(p), book: fair.NewBook(p, account.NewTree(p), usageNames(p)), period: int64(defaultPeriod / time.Second)}
	if d := time.Duration(p.FairShare.Period); d > 0 {
		r.period = max(int64(d/time.Second), 1)
	}
	return r
}

// setMultifactor takes other rules over. What was used stays used, as far as these know for
// whom. Every job must be put into a class of the new policy then, and reorderQueue called.
func (c *Core) setMultifactor(p *account.Policy, now Instant) {
	old := c.priority.multifactor
	if old != nil {
		c.chargeUsage(wholeSecond(now))
	}
	c.priority.multifactor = newRanks(p)
	if c.priority.multifactor == nil {
		return
	}
	if old != nil {
		c.priority.multifactor.book.Restore(old.book.At(), old.book.Entries())
		c.priority.multifactor.book.SetCharged(old.book.Charged())
		c.priority.multifactor.used = old.used
	}
	c.priority.multifactor.book.Advance(wholeSecond(now))
	c.priority.multifactor.standing, c.priority.multifactor.at = c.priority.multifactor.book.Rank(), c.priority.multifactor.book.At()
	c.priority.usageChanged = true // from here on it is counted
	for _, r := range c.runs.ends.allRuns() {
		r.bill.known = false
	}
}

// priorityTerms is what the rules say of the order of jobs of one policy, and what they are
// billed.
type priorityTerms struct {
	multifactor              *multifactor  // nil: their own priorities order them
	assoc, qos, partQOS      int32         // in the book; -1: none
	association, part, ofQOS float64       // factors
	longest                  time.Duration // limit of the partition; 0: none
	bill                     *priority.Billing
	usageFactor              float64
	threshold                float64 // that the fair-share factor must reach; 0: none
}

// compilePriority works out what the rules say of the order of jobs of one policy.
func (c *Core) compilePriority(t *effectivePolicy) {
	m := &t.priority
	*m = priorityTerms{assoc: -1, qos: -1, partQOS: -1, usageFactor: 1}
	r := c.priority.multifactor
	if r == nil {
		return
	}
	m.assoc = r.book.Find(t.key.account, t.key.user)
	qos := t.key.qos
	if qos == "" {
		qos = r.book.DefaultQOS(m.assoc)
	}
	var part account.Partition
	for _, p := range c.policy.Partitions {
		if p.Name == t.key.partition {
			part = p
		}
	}
	m.qos, m.partQOS, m.longest = r.book.QOS(qos), r.book.QOS(part.QOS), time.Duration(part.MaxTime)
	if pool := c.policy.PoolOf(t.key.pool); pool != nil && len(part.Billing) == 0 {
		part.Billing, part.BillingRule = pool.Billing, pool.BillingRule
	}
	m.bill = priority.CompileBilling(&part)
	priorityOf := uint32(0)
	if m.qos >= 0 {
		q := &c.policy.QOS[m.qos]
		if priorityOf = q.Priority; q.UsageFactor != nil {
			m.usageFactor = max(*q.UsageFactor, 0)
		}
		if q.UsageThreshold != nil {
			m.threshold = *q.UsageThreshold
		}
	}
	if r.rules != nil {
		m.multifactor = r
		m.association, m.part, m.ofQOS = r.rules.Association(r.book.Priority(m.assoc)), r.rules.Partition(part.Priority), r.rules.QOS(priorityOf)
	}
}

// joinShares gives a user who is here for the first time, in an account that is open to
// everybody, a place among its users.
func (c *Core) joinShares(t *effectivePolicy) {
	if c.priority.multifactor == nil {
		return
	}
	before := c.priority.multifactor.book.Len()
	t.priority.assoc = c.priority.multifactor.book.Join(t.key.account, t.key.user)
	for _, x := range t.choices {
		x.priority.assoc = t.priority.assoc
	}
	if c.priority.multifactor.book.Len() > before {
		c.priority.multifactor.standing = c.priority.multifactor.book.Rank()
		c.priority.stale = true
	}
}

// sizeOf reckons the factors of the size of jobs of a shape.
func (c *Core) sizeOf(t *effectivePolicy, shape *class.Shape, limit time.Duration) (out jobSize) {
	r, x := t.priority.multifactor, priority.Size{Limit: limit}
	shape = shape.Common()
	for i := range shape.Groups {
		x.Nodes += float64(shape.Groups[i].MinNodes)
		x.CPUs += float64(shape.Groups[i].All.CPU) / 1000
	}
	if limit == 0 {
		x.Limit = t.priority.longest
	}
	all := c.totalsOf("")
	x.AllNodes, x.AllCPUs = all.nodes, all.cpus
	out.job = r.rules.JobSize(&x)
	if len(r.rules.Names) > 0 {
		all = c.totalsOf(t.key.partition)
		for i, name := range r.rules.Names {
			out.tres = append(out.tres, r.rules.TRES(shapeWants(shape, name), all.tres[i]))
		}
	}
	return out
}

// factorsOf are those of jobs of one policy and size, without age.
func (r *multifactor) factorsOf(t *effectivePolicy, x *jobSize) priority.Factors {
	m := &t.priority
	f := priority.Factors{Association: m.association, JobSize: x.job, Partition: m.part, QOS: m.ofQOS, TRES: x.tres}
	if m.assoc >= 0 {
		f.FairShare = r.standing[m.assoc].Factor
	}
	return f
}

// computeSize works out what the size of a class's jobs counts.
func (c *Core) computeSize(l *jobClass) {
	l.tier, l.multifactor = l.key.policy.tier, l.key.policy.priority.multifactor
	if l.multifactor != nil && !l.key.own.fixed {
		l.size, l.weighed = c.sizeOf(l.key.policy, l.key.shape, l.limit), 0
	}
}

// basePriority is what all jobs of a class have in common in their priority. It is reckoned when
// it is asked for first after a tick: most classes are not.
func (l *jobClass) basePriority(r *multifactor) float64 {
	if l.weighed != r.reckoned {
		l.weighed, l.base = r.reckoned, l.computeBase(r)
	}
	return l.base
}

// computeBase is what basePriority keeps. It writes nothing: who only reads the core asks for it.
func (l *jobClass) computeBase(r *multifactor) float64 {
	f := r.factorsOf(l.key.policy, &l.size)
	return r.rules.Base(&f, l.key.own.adjust)
}

// reorderQueue reckons all classes anew and puts them in order.
func (c *Core) reorderQueue() {
	c.priority.stale = false
	if c.priority.multifactor == nil || c.priority.multifactor.rules == nil {
		return
	}
	c.priority.multifactor.reckoned++
	c.queue.heads.initHeap()
	c.generation++
	if c.quotas != nil {
		c.quotas.ranked++
		for _, q := range c.quotas.queues {
			if q != nil {
				q.heads.initHeap()
				c.wakeStrictQueue(q) // another class may lead it now
			}
		}
	}
	c.planDirty, c.cycleDue = true, true
}

// compareOrder is the order of the queue.
func (e *queuedJob) compareOrder(o *queuedJob) int {
	if n := cmp.Compare(o.class.tier, e.class.tier); n != 0 {
		return n
	}
	r := e.class.multifactor
	if r == nil {
		return cmp.Or(cmp.Compare(o.priority, e.priority), cmp.Compare(e.at, o.at), cmp.Compare(e.id, o.id))
	}
	if e.class != o.class {
		if n := cmp.Compare(o.currentPriority(), e.currentPriority()); n != 0 {
			return n
		}
	}
	if r.rules.Ages() {
		if n := cmp.Compare(e.agesSince(r), o.agesSince(r)); n != 0 {
			return n
		}
	}
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.id, o.id))
}

// queueRank is where a job stands in the queue beside those of other classes: isBefore says the
// same of two rungs as of the two jobs. It pays where one is compared with many.
type queueRank struct {
	tier         int32
	points, ages int64
	at           Instant
	id           job.ID

	of       *queuedJob // whose this is, as of …
	reckoned uint64     // … multifactor.reckoned …
	tick     int64      // … and multifactor.at
}

// firstRank is that of a class's first job. It is reckoned when it is asked for first after a
// tick, or after the class has another first job (firstJobChanged).
func (l *jobClass) firstRank() *queueRank {
	e, r, x := l.jobs.firstJob(), l.multifactor, &l.rank
	if x.of == e && (r == nil || x.reckoned == r.reckoned && x.tick == r.at) {
		return x
	}
	*x = queueRank{tier: l.tier, points: e.currentPriority(), at: e.at, id: e.id, of: e}
	if r != nil {
		x.reckoned, x.tick = r.reckoned, r.at
		if r.rules.Ages() {
			x.ages = e.agesSince(r)
		}
	}
	return x
}

func (x *queueRank) isBefore(y *queueRank) bool {
	switch {
	case x.tier != y.tier:
		return x.tier > y.tier
	case x.points != y.points:
		return x.points > y.points
	case x.ages != y.ages:
		return x.ages < y.ages
	case x.at != y.at:
		return x.at < y.at
	}
	return x.id < y.id
}

// currentPriority is the job's priority.
func (e *queuedJob) currentPriority() int64 {
	l := e.class
	r := l.multifactor
	if r == nil || l.key.own.fixed {
		return e.priority
	}
	return r.rules.Points(l.basePriority(r), r.rules.Age(r.at, e.agesSince(r)))
}

// readPriority is what currentPriority is, for those who only read the core.
func (e *queuedJob) readPriority() int64 {
	l := e.class
	r := l.multifactor
	if r == nil || l.key.own.fixed {
		return e.priority
	}
	return r.rules.Points(l.computeBase(r), r.rules.Age(r.at, e.agesSince(r)))
}

// agesSince is the second since when the job's age counts.
func (e *queuedJob) agesSince(r *multifactor) int64 {
	if r.rules.Always {
		return wholeSecond(e.at)
	}
	if e.aging >= accrueGranted {
		return notYet
	}
	return max(e.eligible, e.grows)
}

// notYet is the second since when those are counted to grow older that do not yet.
const notYet = math.MaxInt64

// stopsAging reports whether a job does not grow older while it is kept from being
// considered for a reason. Slurm's arrays grow older as a whole.
func stopsAging(why reason.Code) bool { return why != reason.ArrayLimit }

// wholeSecond is an instant in whole seconds, as ages and usage are reckoned. It is never 0.
func wholeSecond(t Instant) int64 { return max(int64(t)/int64(time.Second), 1) }

// ownOf is what a job says of its priority, as part of its class.
func ownOf(e *queuedJob, t *effectivePolicy) ownPriority {
	if t.priority.multifactor == nil {
		return ownPriority{}
	}
	return ownPriority{e.priority, e.fixed}
}
