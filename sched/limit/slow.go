package limit

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Slow answers what a Book and its Rules answer, from the policy and the list of all
// jobs alone. It is the oracle of tests: it keeps nothing and reads like the table of
// limits in docs/reference/limits.md.
type Slow struct {
	Policy  *account.Policy
	Now     int64
	Running []SlowJob
	All     map[string]account.TRES // what there is, by partition and by "" for the cluster

	known []string // names, once they were asked for
}

// SlowJob is a running job: amounts by name.
type SlowJob struct {
	Key     Key
	Held    account.TRES
	Fullest account.TRES // of one that is to start
	Seconds int64        // that it takes at most
	Until   int64
	Endless bool
	Rests   bool // it is suspended, and so many Seconds are left of its time
	AsUsed  bool // of minutes it takes nothing before it has used them
}

// Broken is a limit that a job does not pass.
type Broken struct {
	Limit  string // as the field of account.Limits is called in documents, "licences", or "partition"
	Holder string
	Name   string // of the thing; empty: none
}

// source is somebody who may define limits.
type source struct {
	qos    bool
	name   string // of the QOS, or of the account
	user   string // of an association of a user
	limits *account.Limits
}

// sourcesOf in the order in which the first definition wins.
func (s *Slow) sourcesOf(k Key) (qos, chain []source) {
	find := func(name string) *account.QOS {
		for i := range s.Policy.QOS {
			if s.Policy.QOS[i].Name == name && name != "" {
				return &s.Policy.QOS[i]
			}
		}
		return nil
	}
	part, own := find(s.partitionQOS(k)), find(k.QOS)
	list := []*account.QOS{part, own}
	if own != nil && slices.Contains(own.Flags, "over_part_qos") {
		list = []*account.QOS{own, part}
	}
	if part == own {
		list = list[:1]
	}
	for _, q := range list {
		if q != nil {
			qos = append(qos, source{qos: true, name: q.Name, limits: &q.Limits})
		}
	}
	for i, name := range s.accountPath(k.Account) {
		a := s.accountNamed(name)
		if i == 0 {
			user := source{name: name, user: k.User, limits: &account.Limits{}}
			for u := range a.Users {
				if a.Users[u].Name == k.User {
					user.limits = &a.Users[u].Limits
				}
			}
			chain = append(chain, user)
		}
		chain = append(chain, source{name: name, limits: &a.Limits})
	}
	return qos, chain
}

func (s *Slow) accountNamed(name string) *account.Account {
	for i := range s.Policy.Accounts {
		if s.Policy.Accounts[i].Name == name {
			return &s.Policy.Accounts[i]
		}
	}
	return nil
}

// accountPath is an account and those above it.
func (s *Slow) accountPath(name string) (out []string) {
	for a := s.accountNamed(name); a != nil; a = s.accountNamed(a.Parent) {
		out = append(out, a.Name)
	}
	if n := len(out); n > 0 && out[n-1] != "root" && s.accountNamed("root") != nil {
		out = append(out, "root")
	}
	return out
}

func (s *Slow) partitionQOS(k Key) string {
	for _, p := range s.Policy.Partitions {
		if p.Name == k.Partition {
			return p.QOS
		}
	}
	return ""
}

// coversJob reports whether a running job counts for a source, with the same user or
// account as another where a limit of a QOS counts these apart.
func (s *Slow) coversJob(src source, j, of Key, apart scope) bool {
	switch {
	case src.qos && j.QOS != src.name && s.partitionQOS(j) != src.name:
		return false
	case src.qos:
		return apart == together || apart == ofUser && j.User == of.User || apart == ofAccount && j.Account == of.Account
	case src.user != "" || apart == ofUser: // of an account, each user's jobs in it apart
		return j.Account == of.Account && j.User == of.User
	}
	return slices.Contains(s.accountPath(j.Account), src.name)
}

// sumRunning adds up something of the running jobs that count.
func (s *Slow) sumRunning(src source, of Key, apart scope, what func(*SlowJob) resource.Amount) (total resource.Amount) {
	for i := range s.Running {
		if s.coversJob(src, s.Running[i].Key, of, apart) {
			total = total.Add(what(&s.Running[i]))
		}
	}
	return total
}

// Blocked lists every limit that a job which is to start does not pass, sorted.
func (s *Slow) Blocked(j *SlowJob) []Broken {
	c := &slowly{Slow: s, job: j}
	c.qos, c.chain = s.sourcesOf(j.Key)
	for _, name := range c.allNames() {
		left := func(r *SlowJob) resource.Amount {
			if r.AsUsed {
				return 0
			}
			if r.Rests {
				return overTime(inTime(c.fixedPlace(name), r.Held[name]), r.Seconds, r.Endless)
			}
			return overTime(inTime(c.fixedPlace(name), r.Held[name]), max(r.Until-s.Now, 0), r.Endless)
		}
		holds := func(r *SlowJob) resource.Amount { return r.Held[name] }
		need := overTime(inTime(c.fixedPlace(name), j.Held[name]), j.Seconds, j.Endless)
		if j.AsUsed {
			need = 0
		}
		tres := func(f func(*account.Limits) account.TRES) func(*account.Limits) *resource.Amount {
			return func(l *account.Limits) *resource.Amount {
				if b, ok := f(l)[name]; ok {
					return &b
				}
				return nil
			}
		}
		secs := func(f func(*account.Limits) account.TRES) func(*account.Limits) *resource.Amount {
			return func(l *account.Limits) *resource.Amount {
				if b, ok := f(l)[name]; ok && b != resource.Unlimited {
					b = minutesToSeconds(c.fixedPlace(name), b)
					return &b
				}
				return nil
			}
		}
		for _, q := range []question{
			{"Group", tres(func(l *account.Limits) account.TRES { return l.Group }), j.Held[name], holds, together, true, false},
			{"GroupMinutes", secs(func(l *account.Limits) account.TRES { return l.GroupMinutes }), need, left, together, true, false},
			{"GroupRunMinutes", secs(func(l *account.Limits) account.TRES { return l.GroupRunMinutes }), need, left, together, true, false},
			{"Job", tres(func(l *account.Limits) account.TRES { return l.Job }), j.Held[name], nil, together, false, false},
			{"Node", tres(func(l *account.Limits) account.TRES { return l.Node }), j.Fullest[name], nil, together, false, false},
			{"JobMinutes", secs(func(l *account.Limits) account.TRES { return l.JobMinutes }), need, nil, together, false, false},
			{"User", tres(func(l *account.Limits) account.TRES { return l.User }), j.Held[name], holds, ofUser, false, true},
			{"Account", tres(func(l *account.Limits) account.TRES { return l.Account }), j.Held[name], holds, ofAccount, false, true},
			{"UserRunMinutes", secs(func(l *account.Limits) account.TRES { return l.UserRunMinutes }), need, left, ofUser, false, true},
			{"AcctRunMinutes", secs(func(l *account.Limits) account.TRES { return l.AcctRunMinutes }), need, left, ofAccount, false, true},
		} {
			c.askAmount(q, name)
		}
		if b, who := c.firstDefined(tres(func(l *account.Limits) account.TRES { return l.Least }), true); b != nil {
			if part := c.partOfAll("Least", who, name, *b); part != nil {
				b = part
			}
			if j.Held[name] < *b {
				c.addBroken("Least", who, name)
			}
		}
	}
	c.askJobCounts()
	c.askRest()
	slices.SortFunc(c.out, func(a, b Broken) int {
		return cmp.Or(cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Name, b.Name))
	})
	return c.out
}

// slowly is one call of Blocked.
type slowly struct {
	*Slow
	job        *SlowJob
	qos, chain []source
	out        []Broken
}

// question is one limit on one amount.
type question struct {
	limit   string
	bound   func(*account.Limits) *resource.Amount
	need    resource.Amount
	of      func(*SlowJob) resource.Amount // nil: one job alone
	apart   scope
	every   bool
	qosOnly bool
}

// askAmount notes where an amount does not pass.
func (c *slowly) askAmount(q question, name string) {
	var who []source
	for _, src := range c.qos {
		if b := q.bound(src.limits); b != nil {
			who = append(who, src)
			break
		}
	}
	if len(who) == 0 && !q.qosOnly {
		for _, src := range c.chain {
			if b := q.bound(src.limits); b != nil {
				who = append(who, src)
				if !q.every {
					break
				}
			}
		}
	}
	for _, src := range who {
		b := *q.bound(src.limits)
		if part := c.partOfAll(q.limit, src, name, b); part != nil {
			b = *part
		}
		if f := c.limitFactor(); !src.qos && f != 1 && b != resource.Unlimited && name != "" {
			b = resource.Amount(float64(b) * f)
			if strings.HasSuffix(q.limit, "Minutes") { // the factor is for what was written
				b = minutesToSeconds(c.fixedPlace(name), resource.Amount(float64(c.writtenBound(q.limit, src, name))*f))
			}
		}
		used := resource.Amount(0)
		if q.of != nil {
			used = c.sumRunning(src, c.job.Key, q.apart, q.of)
		}
		if b != resource.Unlimited && used.Add(q.need) > b {
			c.addBroken(q.limit, src, name)
		}
	}
}

// partOfAll is a bound as a part of what there is; nil: it is none.
func (c *slowly) partOfAll(limit string, src source, name string, b resource.Amount) *resource.Amount {
	for _, q := range c.Policy.QOS {
		if !src.qos || q.Name != src.name || !slices.Contains(q.Flags, "relative") || name == "" || b == resource.Unlimited {
			continue
		}
		of := ""
		for _, p := range c.Policy.Partitions {
			if p.QOS == q.Name && of == "" {
				of = p.Name
			}
		}
		minutely := strings.HasSuffix(limit, "Minutes")
		if minutely {
			b = c.writtenBound(limit, src, name)
		}
		percent := new(big.Rat).SetInt64(int64(b))
		whole := int64(1)
		switch {
		case name == "memory" || name == "disk":
			percent.Quo(percent, big.NewRat(int64(resource.MiB), 1))
		case name == "cpu" || strings.HasPrefix(name, "gpu"):
			percent.Quo(percent, big.NewRat(1000, 1))
			whole = 1000
		}
		if percent.Cmp(big.NewRat(100, 1)) > 0 {
			percent.SetInt64(100)
		}
		all := percent.Mul(percent, big.NewRat(int64(c.All[of][name]), 100))
		n := new(big.Int).Quo(all.Num(), all.Denom()).Int64()
		b = resource.Amount(n / whole * whole)
		if minutely {
			b = minutesToSeconds(c.fixedPlace(name), b)
		}
		return &b
	}
	return nil
}

func (c *slowly) writtenBound(limit string, src source, name string) resource.Amount {
	switch limit {
	case "GroupMinutes":
		return src.limits.GroupMinutes[name]
	case "GroupRunMinutes":
		return src.limits.GroupRunMinutes[name]
	case "UserRunMinutes":
		return src.limits.UserRunMinutes[name]
	case "AcctRunMinutes":
		return src.limits.AcctRunMinutes[name]
	}
	return src.limits.JobMinutes[name]
}

// limitFactor multiplies the limits of accounts and users on things.
func (c *slowly) limitFactor() float64 {
	for _, src := range c.qos {
		for i := range c.Policy.QOS {
			if q := &c.Policy.QOS[i]; q.Name == src.name && q.LimitFactor != nil {
				return *q.LimitFactor
			}
		}
	}
	return 1
}

// firstDefined is the first definition of a limit that only QOS have.
func (c *slowly) firstDefined(bound func(*account.Limits) *resource.Amount, _ bool) (*resource.Amount, source) {
	for _, src := range c.qos {
		if b := bound(src.limits); b != nil {
			return b, src
		}
	}
	return nil, source{}
}

func (c *slowly) addBroken(limit string, src source, name string) {
	who := "account " + src.name
	switch {
	case src.qos:
		who = "QOS " + src.name
	case src.user != "":
		who = "user " + src.user + " in account " + src.name
	}
	c.out = append(c.out, Broken{limit, who, name})
}

// allNames lists every name that a job or a limit has.
func (c *slowly) allNames() []string {
	if c.known == nil {
		c.known = newTable(c.Policy).names
	}
	return c.known
}

func (c *slowly) fixedPlace(name string) int { return slices.Index(fixedNames[:], name) }

// askJobCounts asks the limits that count jobs.
func (c *slowly) askJobCounts() {
	number := func(f func(*account.Limits) *int64) func(*account.Limits) *resource.Amount {
		return func(l *account.Limits) *resource.Amount {
			if n := f(l); n != nil {
				a := resource.Amount(*n)
				return &a
			}
			return nil
		}
	}
	one := func(*SlowJob) resource.Amount { return 1 }
	c.askAmount(question{"GroupJobs", number(func(l *account.Limits) *int64 { return l.GroupJobs }), 1, one, together, true, false}, "")
	c.askAmount(question{"AcctJobs", number(func(l *account.Limits) *int64 { return l.AcctJobs }), 1, one, ofAccount, false, true}, "")
	// MaxJobs of associations and MaxJobsPerUser of QOS are one limit.
	qos := number(func(l *account.Limits) *int64 {
		if l.UserJobs != nil {
			return l.UserJobs
		}
		return l.Jobs
	})
	if b, src := c.firstDefined(qos, true); b != nil {
		if c.sumRunning(src, c.job.Key, ofUser, one)+1 > *b {
			c.addBroken("Jobs", src, "")
		}
		return
	}
	for _, src := range c.chain {
		if src.limits.Jobs != nil {
			if c.sumRunning(src, c.job.Key, ofUser, one)+1 > resource.Amount(*src.limits.Jobs) {
				c.addBroken("Jobs", c.chain[0], "")
			}
			return
		}
	}
}

// askRest asks about time, the partition and licences.
func (c *slowly) askRest() {
	long := func(d account.Duration) bool { return c.job.Endless || c.job.Seconds > int64(d)/1e9 }
	for _, src := range slices.Concat(c.qos, c.chain) {
		if src.limits.Wall != nil {
			if long(*src.limits.Wall) {
				c.addBroken("Wall", src, "")
			}
			break
		}
	}
	lifted := func(flag string) bool {
		for _, src := range c.qos {
			for _, q := range c.Policy.QOS {
				if q.Name == src.name && slices.Contains(q.Flags, flag) {
					return true
				}
			}
		}
		return false
	}
	for _, p := range c.Policy.Partitions {
		if p.Name != c.job.Key.Partition {
			continue
		}
		n := int(c.job.Held["node"])
		if p.MaxNodes > 0 && n > p.MaxNodes && !lifted("partition_max_nodes") || p.MinNodes > 0 && n < p.MinNodes && !lifted("partition_min_nodes") {
			c.out = append(c.out, Broken{"PartitionNodes", "partition " + p.Name, ""})
		}
		if p.MaxTime > 0 && long(p.MaxTime) && !lifted("partition_time_limit") {
			c.out = append(c.out, Broken{"PartitionTime", "partition " + p.Name, ""})
		}
	}
	asked, _ := account.ParseLicenses(c.job.Key.Licenses)
	for _, l := range asked {
		most, used := int64(0), int64(0)
		for _, x := range c.Policy.Licenses {
			if x.Name == l.Name {
				most = x.Count
			}
		}
		for i := range c.Running {
			others, _ := account.ParseLicenses(c.Running[i].Key.Licenses)
			for _, x := range others {
				if x.Name == l.Name {
					used += x.Count
				}
			}
		}
		if used+l.Count > most {
			c.out = append(c.out, Broken{"Licenses", "", l.Name})
		}
	}
}
