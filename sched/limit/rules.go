package limit

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Key is what the policy looks at in a job to say which limits hold for it.
type Key struct {
	Account, User, QOS, Partition string
	Licenses                      string // as written
}

// Rules are the limits that hold for jobs of one key.
type Rules struct {
	Checks []Check // before a start
	Door   []Check // before a submission

	ages []Check // before a waiting job begins to grow older

	charges   []charge // counters of a running job
	atDoor    []charge // counters of a submitted one
	aging     []charge // counters of one that waits and grows older
	licenses  []asked
	NoReserve bool  // a job that cannot start keeps nothing for itself (QOS flag no_reserve)
	LeastPrio int64 // nor one of a smaller priority
	Deny      bool  // what alone exceeds a limit is refused at the door (QOS flag deny_on_limit)
}

// Check is one limit.
type Check struct {
	Counter int32           // of the Book; -1: the job alone is measured
	spent   int32           // a second counter, of what was used before; -1: none
	Bound   resource.Amount // Counter + need must not be more
	need    needOf
	tres    int
	low     bool          // the job must have at least Bound
	fixed   bool          // need does not depend on where it runs
	typed   bool          // it is about a type of device
	part    *part         // Bound is so much of what there is; nil: it is what was written
	Why     reason.Reason // but for what depends on the job and the instant
}

// charge is a counter that a job raises.
type charge struct {
	counter int32
	need    needOf
	tres    int
}

type asked struct {
	tres   int
	amount resource.Amount
}

// needOf says which amount of a job a limit is about.
type needOf uint8

const (
	held    needOf = iota // of a thing
	fullest               // of a thing, on one node
	overall               // of a thing, times the seconds that it takes at most
	once                  // 1
	lasting               // its seconds
)

// what is a kind of limit on a countable thing.
type what uint8

const (
	group what = iota
	groupMinutes
	groupRunMinutes
	perJob
	perNode
	perJobMinutes
	perUser
	perAccount
	userRunMinutes
	accountRunMinutes
	least
	kinds
)

// limitOf is where each of them stands, and how it is counted.
var limitOf = [kinds]struct {
	from    func(*account.Limits) account.TRES
	need    needOf
	scope   scope
	counted bool
	every   bool // of accounts: on every level
}{
	group:             {func(l *account.Limits) account.TRES { return l.Group }, held, together, true, true},
	groupMinutes:      {func(l *account.Limits) account.TRES { return l.GroupMinutes }, overall, together, true, true},
	groupRunMinutes:   {func(l *account.Limits) account.TRES { return l.GroupRunMinutes }, overall, together, true, true},
	perJob:            {func(l *account.Limits) account.TRES { return l.Job }, held, together, false, false},
	perNode:           {func(l *account.Limits) account.TRES { return l.Node }, fullest, together, false, false},
	perJobMinutes:     {func(l *account.Limits) account.TRES { return l.JobMinutes }, overall, together, false, false},
	perUser:           {func(l *account.Limits) account.TRES { return l.User }, held, ofUser, true, false},
	perAccount:        {func(l *account.Limits) account.TRES { return l.Account }, held, ofAccount, true, false},
	userRunMinutes:    {func(l *account.Limits) account.TRES { return l.UserRunMinutes }, overall, ofUser, true, false},
	accountRunMinutes: {func(l *account.Limits) account.TRES { return l.AcctRunMinutes }, overall, ofAccount, true, false},
	least:             {func(l *account.Limits) account.TRES { return l.Least }, held, together, false, false},
}

// qosOnly reports whether accounts do not have such limits.
func (w what) qosOnly() bool { return w >= perUser }

// numberOf is the limits that count jobs.
var numberOf = []struct {
	name  string
	from  func(*account.Limits) *int64
	assoc func(*account.Limits) *int64 // nil: accounts have none
	scope scope
	every bool
	when  when
}{
	{"jobs", func(l *account.Limits) *int64 { return l.GroupJobs }, func(l *account.Limits) *int64 { return l.GroupJobs }, together, true, atStart},
	{"user jobs", func(l *account.Limits) *int64 { return firstSet(l.UserJobs, l.Jobs) }, func(l *account.Limits) *int64 { return l.Jobs }, ofUser, false, atStart},
	{"account jobs", func(l *account.Limits) *int64 { return l.AcctJobs }, nil, ofAccount, false, atStart},
	{"submitted", func(l *account.Limits) *int64 { return l.GroupSubmitted }, func(l *account.Limits) *int64 { return l.GroupSubmitted }, together, true, atDoor},
	{"user submitted", func(l *account.Limits) *int64 { return firstSet(l.UserSubmitted, l.Submitted) }, func(l *account.Limits) *int64 { return l.Submitted }, ofUser, false, atDoor},
	{"account submitted", func(l *account.Limits) *int64 { return l.AcctSubmitted }, nil, ofAccount, false, atDoor},
	{"accruing", func(l *account.Limits) *int64 { return l.GroupAccruing }, func(l *account.Limits) *int64 { return l.GroupAccruing }, together, true, toAge},
	{"user accruing", func(l *account.Limits) *int64 { return firstSet(l.UserAccruing, l.Accruing) }, func(l *account.Limits) *int64 { return l.Accruing }, ofUser, false, toAge},
	{"account accruing", func(l *account.Limits) *int64 { return l.AcctAccruing }, nil, ofAccount, false, toAge},
}

// when says what a limit on numbers of jobs stops.
type when uint8

const (
	atStart when = iota
	atDoor       // a submission
	toAge        // growing older, while it waits
)

func firstSet(a, b *int64) *int64 {
	if a != nil {
		return a
	}
	return b
}

// allTRES lists the limits of countable things.
func (l limits) allTRES() (out []account.TRES) {
	for i := range limitOf {
		out = append(out, limitOf[i].from(l.Limits))
	}
	return out
}

type limits struct{ *account.Limits }

// everyLimits lists all limits of a policy.
func everyLimits(p *account.Policy) iter.Seq[limits] {
	return func(yield func(limits) bool) {
		for i := range p.Accounts {
			a := &p.Accounts[i]
			if !yield(limits{&a.Limits}) {
				return
			}
			for k := range a.Users {
				if !yield(limits{&a.Users[k].Limits}) {
					return
				}
			}
		}
		for i := range p.QOS {
			if !yield(limits{&p.QOS[i].Limits}) {
				return
			}
		}
	}
}

// scope is whose jobs are counted together.
type scope uint8

const (
	together  scope = iota
	ofUser          // each user's apart
	ofAccount       // each account's apart
)

// owner is who has limits: a QOS, a user in an account, or an account.
type owner struct {
	limits *account.Limits
	holder holder
}

// holder is whose a counter is.
type holder struct {
	kind      byte // 'u' user of an account, 'a' account, 'q' QOS, 's' the site
	name      string
	user, acc string // in it
}

// String names the holder in a reason.
func (h holder) String() string {
	switch {
	case h.kind == 'u':
		return fmt.Sprintf("user %s in account %s", h.user, h.name)
	case h.kind == 'a':
		return "account " + h.name
	case h.kind == 's':
		return "the site"
	case h.user != "":
		return fmt.Sprintf("user %s in QOS %s", h.user, h.name)
	case h.acc != "":
		return fmt.Sprintf("account %s in QOS %s", h.acc, h.name)
	}
	return "QOS " + h.name
}

// inScope is the holder for a scope within a QOS.
func (h holder) inScope(s scope, k *Key) holder {
	switch s {
	case ofUser:
		h.user = k.User
	case ofAccount:
		h.acc = k.Account
	}
	return h
}

// Rules resolves the limits for a key.
func (b *Book) Rules(k Key) *Rules {
	r := &resolver{Book: b, key: &k, out: &Rules{}}
	r.findOwners()
	for w := range kinds {
		for n := range b.Table.names {
			r.resolveTRES(w, n)
		}
	}
	for i := range numberOf {
		r.resolveJobCount(i)
	}
	r.resolveWall()
	r.groupWall()
	r.addPartition()
	r.addLicenses()
	for i := range r.qos {
		q := r.qosOf[i]
		r.out.NoReserve = r.out.NoReserve || hasFlag(q, "no_reserve")
		r.out.Deny = r.out.Deny || hasFlag(q, "deny_on_limit")
		if p := q.Limits.LeastPriority; p != nil && r.out.LeastPrio == 0 {
			r.out.LeastPrio = int64(*p)
		}
	}
	for i := range r.chain {
		if p := r.chain[i].limits.LeastPriority; p != nil && r.out.LeastPrio == 0 {
			r.out.LeastPrio = int64(*p)
		}
	}
	return r.out
}

// resolver works out the rules of one key.
type resolver struct {
	*Book
	key    *Key
	out    *Rules
	qos    []owner // the first that defines a limit has it
	qosOf  []*account.QOS
	chain  []owner // the user, the account, the accounts above
	factor float64 // of the accounts' limits
}

func hasFlag(q *account.QOS, flag string) bool { return slices.Contains(q.Flags, flag) }

// findOwners finds who may limit the job.
func (r *resolver) findOwners() {
	names := []string{r.partQOS(), r.key.QOS}
	if q := r.findQOS(r.key.QOS); q != nil && hasFlag(q, "over_part_qos") {
		slices.Reverse(names)
	}
	r.factor = 1
	for i, name := range names {
		q := r.findQOS(name)
		if q == nil || i > 0 && name == names[0] {
			continue
		}
		if q.LimitFactor != nil && r.factor == 1 {
			r.factor = *q.LimitFactor
		}
		r.qos = append(r.qos, owner{&q.Limits, holder{kind: 'q', name: name}})
		r.qosOf = append(r.qosOf, q)
	}
	for name, level := r.key.Account, 0; name != "" && level <= len(r.policy.Accounts); level++ {
		a := r.findAccount(name)
		if a == nil {
			return
		}
		if level == 0 {
			own := owner{&account.Limits{}, holder{kind: 'u', name: name, user: r.key.User}}
			for i := range a.Users {
				if a.Users[i].Name == r.key.User {
					own.limits = &a.Users[i].Limits
				}
			}
			r.chain = append(r.chain, own)
		}
		r.chain = append(r.chain, owner{&a.Limits, holder{kind: 'a', name: name}})
		name = accountLabel(a)
	}
}

// root is the name of the account above all others, where a policy has one.
const root = "root"

func accountLabel(a *account.Account) string {
	if a.Parent == "" && a.Name != root {
		return root
	}
	return a.Parent
}

func (r *resolver) partQOS() string {
	if p := r.findPartition(r.key.Partition); p != nil {
		return p.QOS
	}
	return ""
}

// resolveTRES resolves one kind of limit on one countable thing.
func (r *resolver) resolveTRES(w what, n int) {
	name, of := r.Table.names[n], &limitOf[w]
	found := false
	for _, o := range r.qos {
		bound, ok := of.from(o.limits)[name]
		if !ok {
			continue
		}
		h := o.holder.inScope(of.scope, r.key)
		if of.counted {
			r.addCharge(h, of.need, n)
		}
		if !found {
			r.addCheck(w, n, h, bound, true)
			r.makeRelative(o.holder.name, n, bound)
		}
		found = true
	}
	if w.qosOnly() {
		return
	}
	for _, o := range r.chain {
		bound, ok := of.from(o.limits)[name]
		if !ok {
			continue
		}
		if of.counted {
			r.addCharge(o.holder, of.need, n)
		}
		if !found {
			r.addCheck(w, n, o.holder, r.scaleBound(bound), false)
		}
		found = found || !of.every
	}
}

// scaleBound is a bound of an account under the QOS's factor.
func (r *resolver) scaleBound(bound resource.Amount) resource.Amount {
	if r.factor == 1 || bound == resource.Unlimited {
		return bound
	}
	if x := float64(bound) * r.factor; x < float64(1<<62) {
		return resource.Amount(x)
	}
	return resource.Unlimited
}

func (r *resolver) addCheck(w what, n int, h holder, bound resource.Amount, qos bool) {
	if bound == resource.Unlimited {
		return
	}
	of := &limitOf[w]
	name := r.Table.names[n]
	_, _, typed := strings.Cut(name, ":")
	c := Check{Counter: -1, spent: -1, Bound: bound, need: of.need, tres: n, low: w == least, typed: typed}
	word := words[w][qos][familyOf(name)]
	c.Why = reason.Reason{Code: reason.Limited(word), Resource: name, Holder: h.String(), Most: int64(bound)}
	if of.need == overall {
		c.Bound = minutesToSeconds(n, bound)
		c.Why.Resource, c.Why.Most = c.Why.Resource+reason.Minutes, int64(c.Bound)
	}
	switch {
	case of.counted:
		c.Counter = r.counterNumber(h, of.need, n)
	case w == least:
		c.Why.Code = reason.Least(word)
	case w == perNode:
		c.Why.Code, c.Why.Holder = reason.Single(word), "one node of a job of "+h.String()
	default:
		c.Why.Code, c.Why.Holder = reason.Single(word), "one job of "+h.String()
	}
	if w == groupMinutes {
		c.spent = r.budgetFor(h, name, r.counterNumber(h, spent, n), c.Counter)
	}
	r.out.Checks = append(r.out.Checks, c)
}

// makeRelative makes the check that was resolved last a part of what there is, where the QOS
// says so.
func (r *resolver) makeRelative(qos string, n int, bound resource.Amount) {
	q := r.findQOS(qos)
	if !hasFlag(q, account.FlagRelative) || bound == resource.Unlimited || r.Table.names[n] == "billing" {
		return
	}
	c := &r.out.Checks[len(r.out.Checks)-1]
	c.part = &part{bound, r.basePartition(q)}
	r.scaleCheck(c)
}

func (r *resolver) addCharge(h holder, need needOf, n int) {
	r.out.charges = appendCharge(r.out.charges, charge{r.counterNumber(h, need, n), need, n})
}

func appendCharge(list []charge, c charge) []charge {
	if slices.ContainsFunc(list, func(x charge) bool { return x.counter == c.counter }) {
		return list
	}
	return append(list, c)
}

// resolveJobCount resolves one limit on numbers of jobs.
func (r *resolver) resolveJobCount(i int) {
	of := &numberOf[i]
	checks, charges, measure := &r.out.Checks, &r.out.charges, once
	switch of.when {
	case atDoor:
		checks, charges, measure = &r.out.Door, &r.out.atDoor, submitted
	case toAge:
		checks, charges, measure = &r.out.ages, &r.out.aging, accruing
	}
	found := false
	note := func(h holder, bound int64, qos int, check bool) {
		counter := r.counterNumber(h, measure, 0)
		*charges = appendCharge(*charges, charge{counter, once, 0})
		if check {
			why := reason.Reason{Resource: "jobs", Holder: h.String(), Most: bound}
			if of.when != toAge { // for which no job waits: there is no word
				why.Code = reason.Limited(plainWords[of.name][qos])
			}
			*checks = append(*checks, Check{Counter: counter, spent: -1, Bound: resource.Amount(bound), need: once, fixed: true, Why: why})
		}
	}
	for _, o := range r.qos {
		if bound := of.from(o.limits); bound != nil {
			note(o.holder.inScope(of.scope, r.key), *bound, 1, !found)
			found = true
		}
	}
	if of.assoc == nil {
		return
	}
	for _, o := range r.chain {
		bound := of.assoc(o.limits)
		if bound == nil {
			continue
		}
		h := o.holder
		if of.scope == ofUser {
			h = r.chain[0].holder // it is for each association below
		}
		note(h, *bound, 0, !found)
		if found = found || !of.every; !of.every {
			return
		}
	}
}

// resolveWall resolves the longest time of a job.
func (r *resolver) resolveWall() {
	for i, list := range [][]owner{r.qos, r.chain} {
		for _, o := range list {
			if o.limits.Wall == nil {
				continue
			}
			r.checkSeconds(plainWords["wall"][1-i], "one job of "+o.holder.String(), *o.limits.Wall)
			return
		}
	}
}

func (r *resolver) checkSeconds(word, holder string, d account.Duration) {
	s := int64(d) / 1e9
	r.out.Checks = append(r.out.Checks, Check{Counter: -1, spent: -1, Bound: resource.Amount(s), need: lasting, fixed: true, Why: reason.Reason{
		Code: reason.Single(word), Resource: "seconds", Holder: holder, Most: s,
	}})
}

func wallReason(word, holder string, most int64) reason.Reason {
	return reason.Reason{Code: reason.Limited(word), Resource: "seconds", Holder: holder, Most: most}
}

// addPartition adds the bounds of the partition.
func (r *resolver) addPartition() {
	p := r.findPartition(r.key.Partition)
	if p == nil {
		return
	}
	lifted := func(flag string) bool {
		return slices.ContainsFunc(r.qosOf, func(q *account.QOS) bool { return hasFlag(q, flag) })
	}
	h := "one job in partition " + p.Name
	nodes := func(code reason.Code, bound int, low bool) {
		r.out.Checks = append(r.out.Checks, Check{Counter: -1, spent: -1, Bound: resource.Amount(bound), need: held, tres: node, low: low, Why: reason.Reason{
			Code: code, Resource: "node", Holder: h, Most: int64(bound),
		}})
	}
	if p.MaxNodes > 0 && !lifted("partition_max_nodes") {
		nodes(reason.Single("PartitionNodeLimit"), p.MaxNodes, false)
	}
	if p.MinNodes > 0 && !lifted("partition_min_nodes") {
		nodes(reason.Least("PartitionNodeLimit"), p.MinNodes, true)
	}
	if p.MaxTime > 0 && !lifted("partition_time_limit") {
		r.checkSeconds("PartitionTimeLimit", h, p.MaxTime)
	}
}

// addLicenses adds the site's licences that the job asks for. A text that cannot be
// read, and a licence that nobody has, never start: they are refused at the door.
func (r *resolver) addLicenses() {
	list, err := account.ParseLicenses(r.key.Licenses)
	if err != nil {
		list = []account.License{{Name: r.key.Licenses, Count: 1}}
	}
	for _, l := range list {
		n, most := r.Table.numberOf(license+l.Name), int64(0)
		for i := range r.policy.Licenses {
			if r.policy.Licenses[i].Name == l.Name {
				most = r.policy.Licenses[i].Count
			}
		}
		why := reason.Reason{Code: reason.Licenses, Resource: l.Name, Most: most}
		if n < 0 {
			r.out.Checks = append(r.out.Checks, Check{Counter: -1, spent: -1, need: once, fixed: true, Why: why})
			continue
		}
		h := holder{kind: 's'}
		r.out.licenses = append(r.out.licenses, asked{n, resource.Amount(l.Count)})
		r.addCharge(h, held, n)
		r.out.Checks = append(r.out.Checks, Check{Counter: r.counterNumber(h, held, n), spent: -1, Bound: resource.Amount(most), need: held, tres: n, fixed: true, Why: why})
	}
}
