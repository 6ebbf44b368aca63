package account

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rlimit"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// Problem is something in a policy that contradicts itself.
type Problem struct {
	Path    string // of the field: "accounts[2].users[0].qos[1]"
	Message string // one sentence, without the path
	Remedy  string // what would be right; may be empty
}

// Check finds what the types cannot say: names of nobody, things that are there twice,
// circles, limits that stand where they mean nothing, quotas that cannot be met.
// Problems come in the order of the fields.
func (p *Policy) Check() []Problem {
	c := &check{p: p, accounts: map[string]int{}, qos: map[string]bool{}, licenses: map[string]bool{}, flavors: map[string]bool{}}
	c.checkNames()
	for i := range p.Accounts {
		c.checkAccount(fmt.Sprintf("accounts[%d]", i), &p.Accounts[i])
	}
	c.findCircles()
	c.checkDefaults()
	for i := range p.QOS {
		c.oneQOS(fmt.Sprintf("qos[%d]", i), &p.QOS[i])
	}
	c.findMutualPreemption()
	c.checkBatch()
	c.checkPools()
	c.checkPreemption()
	for i := range p.Partitions {
		c.checkPartition(fmt.Sprintf("partitions[%d]", i), &p.Partitions[i])
	}
	for i := range p.Reservations {
		c.checkReservation(i)
	}
	c.checkHandover()
	c.checkPrices()
	c.checkCompat()
	return c.found
}

func (c *check) checkBatch() {
	for _, x := range []struct {
		name  string
		codes job.ExitCodes
	}{{"batch.requeue_exit", c.p.Batch.RequeueExit}, {"batch.requeue_exit_hold", c.p.Batch.RequeueExitHold}} {
		if err := x.codes.Check(); err != nil {
			c.addProblem(x.name, "write exit codes and ranges of them: 1-9,18", "%s", err)
		}
	}
	if _, err := rlimit.ParsePropagate(c.p.Batch.Propagate); err != nil {
		c.addProblem("batch.propagate", "write ALL, NONE or names of limits: STACK,CORE", "%s", err)
	}
}

// checkCompat finds what is not built where the core decides as another scheduler would.
func (c *check) checkCompat() {
	if c.p.Compat == "" {
		return
	}
	remedy := "leave out compat, or this"
	if len(c.p.Reservations) > 0 {
		c.addProblem("reservations", remedy, "with compat: %s jobs would start on nodes that are reserved", c.p.Compat)
	}
	if len(c.p.Preemption.By) > 0 {
		c.addProblem("preemption.by", remedy, "with compat: %s nobody would be stopped for others", c.p.Compat)
	}
	if c.p.Placement == PlaceLearned {
		c.addProblem("placement", remedy, "with compat: %s jobs would go where that scheduler puts them", c.p.Compat)
	}
	for i := range c.p.Partitions {
		if c.p.Partitions[i].TimeSlice > 0 {
			c.addProblem(fmt.Sprintf("partitions[%d].time_slice", i), remedy, "with compat: %s nobody would take turns", c.p.Compat)
		}
	}
}

// check is what is known of a policy while it is looked at.
type check struct {
	p        *Policy
	found    []Problem
	accounts map[string]int // by position
	qos      map[string]bool
	licenses map[string]bool
	flavors  map[string]bool
}

func (c *check) addProblem(path, remedy, format string, args ...any) {
	c.found = append(c.found, Problem{Path: path, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

// checkNames finds what is there twice or has no name.
func (c *check) checkNames() {
	once := func(kind string, i int, name string, seen func() bool) {
		path := fmt.Sprintf("%s[%d].name", kind, i)
		switch {
		case name == "":
			c.addProblem(path, "give it a name", "has no name")
		case strings.ContainsAny(name, " \t,=|%*'\""):
			c.addProblem(path, "leave out blanks and , = | % * and quotes", "%q cannot be a name", name)
		case seen():
			c.addProblem(path, "keep one of them", "%s is there twice", name)
		}
	}
	for i := range c.p.Accounts {
		name := c.p.Accounts[i].Name
		once("accounts", i, name, func() bool { _, twice := c.accounts[name]; return twice })
		if _, twice := c.accounts[name]; !twice {
			c.accounts[name] = i
		}
	}
	set := func(kind string, i int, name string, m map[string]bool) {
		once(kind, i, name, func() bool { return m[name] })
		m[name] = true
	}
	for i := range c.p.QOS {
		set("qos", i, c.p.QOS[i].Name, c.qos)
	}
	partitions := map[string]bool{}
	for i := range c.p.Partitions {
		set("partitions", i, c.p.Partitions[i].Name, partitions)
	}
	pools := map[string]bool{}
	for i := range c.p.Pools {
		set("pools", i, c.p.Pools[i].Name, pools)
	}
	for i := range c.p.Flavors {
		set("flavors", i, c.p.Flavors[i].Name, c.flavors)
	}
	rates, budgets := map[string]bool{}, map[string]bool{}
	for i := range c.p.Prices.Rates {
		set("prices.rates", i, c.p.Prices.Rates[i].Name, rates)
	}
	for i := range c.p.Budgets {
		set("budgets", i, c.p.Budgets[i].Name, budgets)
	}
	for i := range c.p.Licenses {
		set("licenses", i, c.p.Licenses[i].Name, c.licenses)
	}
	reservations := map[string]bool{}
	for i := range c.p.Reservations {
		set("reservations", i, c.p.Reservations[i].Name, reservations)
	}
}

func (c *check) checkAccount(path string, a *Account) {
	switch _, known := c.accounts[a.Parent]; {
	case a.Parent == "":
		if at, ok := c.accounts[RootName]; ok && a.Name != RootName {
			c.addProblem(path, fmt.Sprintf("write parent: %s", RootName), "%s has no parent, and accounts[%d] is the root", a.Name, at)
		}
	case a.Name == RootName:
		c.addProblem(path+".parent", "leave the parent out", "%s is the root: nothing stands above it", RootName)
	case a.Parent == RootName && !known:
		c.addProblem(path+".parent", "leave the parent out: what has none stands below the root", "there is no account %s here", RootName)
	case !known:
		c.addUnknown(path+".parent", "account", a.Parent)
	}
	c.qosList(path+".qos", a.QOS)
	switch {
	case a.Default != "" && !c.qos[a.Default]:
		c.addUnknown(path+".default_qos", "QOS", a.Default)
	case a.Default != "" && len(a.QOS) > 0 && !slices.Contains(a.QOS, a.Default):
		c.addProblem(path+".default_qos", "add it to qos", "%s is not among the QOS that %s may use", a.Default, a.Name)
	}
	c.checkRoutes(path+".routes", a.Routes)
	c.checkShares(path, a.Shares)
	c.checkLimits(path+".limits", &a.Limits, false)
	users := map[string]bool{}
	for i := range a.Users {
		u, at := &a.Users[i], fmt.Sprintf("%s.users[%d]", path, i)
		switch {
		case u.Name == "":
			c.addProblem(at+".name", "give the user's name", "has no name")
		case users[u.Name]:
			c.addProblem(at+".name", "keep one of them", "%s is in account %s twice", u.Name, a.Name)
		}
		users[u.Name] = true
		c.qosList(at+".qos", u.QOS)
		c.checkShares(at, u.Shares)
		c.checkLimits(at+".limits", &u.Limits, false)
	}
	if a.Quota != nil {
		c.checkQuota(path+".quota", a)
	}
}

func (c *check) checkShares(path string, s Shares) {
	if s < NoShares {
		c.addProblem(path+".shares", "write a number of shares, parent or none", "%d shares are none", s)
	}
}

func (c *check) addUnknown(path, kind, name string) {
	c.addProblem(path, fmt.Sprintf("name one that is defined here, or define %s", name), "there is no %s %q", kind, name)
}

func (c *check) qosList(path string, names []string) {
	for i, n := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case !c.qos[n]:
			c.addUnknown(at, "QOS", n)
		case slices.Index(names, n) < i:
			c.addProblem(at, "keep one of them", "%s is there twice", n)
		}
	}
}

// findCircles finds accounts that stand below themselves.
func (c *check) findCircles() {
	told := map[string]bool{}
	for i := range c.p.Accounts {
		at := i
		way := []string{c.p.Accounts[i].Name}
		for range len(c.p.Accounts) {
			parent, ok := c.accounts[c.p.Accounts[at].Parent]
			if !ok || told[c.p.Accounts[parent].Name] {
				break
			}
			way = append(way, c.p.Accounts[parent].Name)
			if parent == i {
				slices.Reverse(way)
				c.addProblem(fmt.Sprintf("accounts[%d].parent", i), "let one of them have another parent, or none", "the tree is a circle: %s", strings.Join(way, " > "))
				for _, n := range way {
					told[n] = true
				}
				break
			}
			at = parent
		}
	}
}

// checkDefaults finds users with two default accounts.
func (c *check) checkDefaults() {
	of := map[string]string{}
	for i := range c.p.Accounts {
		a := &c.p.Accounts[i]
		for j := range a.Users {
			u := &a.Users[j]
			if !u.Default {
				continue
			}
			if first, twice := of[u.Name]; twice && first != a.Name {
				c.addProblem(fmt.Sprintf("accounts[%d].users[%d].default", i, j), "keep one of them", "%s has %s as the default account already", u.Name, first)
			}
			of[u.Name] = a.Name
		}
	}
}

func (c *check) oneQOS(path string, q *QOS) {
	if slices.Contains(q.Flags, FlagRelative) {
		c.checkRelative(path, q)
	}
	for i, n := range q.Preempts {
		at := fmt.Sprintf("%s.preempts[%d]", path, i)
		switch {
		case !c.qos[n]:
			c.addUnknown(at, "QOS", n)
		case n == q.Name:
			c.addProblem(at, "leave it out; preemption.by: [priority] is what lets jobs of one QOS stop each other", "%s cannot preempt itself", n)
		}
	}
	factor := func(name string, f *float64) {
		if f != nil && *f < 0 {
			c.addProblem(path+"."+name, "write a number from 0 on", "%g is negative", *f)
		}
	}
	factor("usage_factor", q.UsageFactor)
	factor("usage_threshold", q.UsageThreshold)
	factor("limit_factor", q.LimitFactor)
	if f := q.UsageThreshold; f != nil && *f > 1 {
		c.addProblem(path+".usage_threshold", "write a number up to 1", "%g is more than any fair-share factor: its jobs would never start", *f)
	}
	c.checkLimits(path+".limits", &q.Limits, true)
}

// checkRelative finds limits that cannot be parts of what there is.
func (c *check) checkRelative(path string, q *QOS) {
	var parts []string
	for i := range c.p.Partitions {
		if p := &c.p.Partitions[i]; p.QOS == q.Name {
			parts = append(parts, p.Name)
		}
	}
	if len(parts) > 1 {
		c.addProblem(path+".flags", "give each of the partitions a QOS of its own", "%s is the QOS of partitions %s: its limits are parts of one", q.Name, strings.Join(parts, " and "))
	}
	v := reflect.ValueOf(&q.Limits).Elem()
	for i := range v.NumField() {
		if of, ok := v.Field(i).Interface().(TRES); ok && of["billing"] != 0 {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			c.addProblem(path+".limits."+name+".billing", "leave billing out", "there is no whole of billing of which %s could have a part", q.Name)
		}
	}
}

// checkPreemption refuses what is not built: silence would be a promise.
func (c *check) checkPreemption() {
	p := &c.p.Preemption
	for i := range c.p.Partitions {
		if s := c.p.Partitions[i].TimeSlice; s != 0 && s < Duration(time.Second) {
			c.addProblem(fmt.Sprintf("partitions[%d].time_slice", i), "write a second or more, as 30s", "%s is too short: jobs are stopped and continued that often", time.Duration(s))
		}
	}
	if p.Signal != "" {
		if _, err := slurmfmt.ParseSignalName(p.Signal); err != nil {
			c.addProblem("preemption.signal", "write a name or a number, as TERM, USR1 or 10", "%v", err)
		}
	}
	if p.DefragRest < 0 {
		c.addProblem("preemption.defrag_rest", "write a time, as 1h", "%s is negative", time.Duration(p.DefragRest))
	}
}

// findMutualPreemption finds QOS that may stop each other: their jobs would do so for ever.
func (c *check) findMutualPreemption() {
	may := map[string][]string{}
	for i := range c.p.QOS {
		may[c.p.QOS[i].Name] = c.p.QOS[i].Preempts
	}
	for i := range c.p.QOS {
		q := &c.p.QOS[i]
		seen := map[string]bool{}
		var reaches func(from string) bool
		reaches = func(from string) bool {
			if seen[from] {
				return false
			}
			seen[from] = true
			return slices.ContainsFunc(may[from], func(n string) bool { return n == q.Name || reaches(n) })
		}
		for j, n := range q.Preempts {
			if n != q.Name && reaches(n) {
				c.addProblem(fmt.Sprintf("qos[%d].preempts[%d]", i, j), "let only one of them preempt the other", "%s may preempt %s, and %s it: their jobs would stop each other for ever", q.Name, n, n)
				return
			}
		}
	}
}

func (c *check) checkPartition(path string, p *Partition) {
	if p.QOS != "" && !c.qos[p.QOS] {
		c.addUnknown(path+".qos", "QOS", p.QOS)
	}
	if p.MaxNodes > 0 && p.MinNodes > p.MaxNodes {
		c.addProblem(path+".min_nodes", "", "%d is more than max_nodes, %d", p.MinNodes, p.MaxNodes)
	}
	known := func(field string, names []string) {
		for i, n := range names {
			if _, ok := c.accounts[n]; !ok {
				c.addUnknown(fmt.Sprintf("%s.%s[%d]", path, field, i), "account", n)
			}
		}
	}
	known("allow_accounts", p.AllowAccts)
	known("deny_accounts", p.DenyAccts)
	c.qosList(path+".allow_qos", p.AllowQOS)
	c.qosList(path+".deny_qos", p.DenyQOS)
	if len(p.AllowAccts) > 0 && len(p.DenyAccts) > 0 {
		c.addProblem(path+".deny_accounts", "keep allow_accounts alone: nobody else may use the partition", "allow_accounts says already who may")
	}
	if len(p.AllowQOS) > 0 && len(p.DenyQOS) > 0 {
		c.addProblem(path+".deny_qos", "keep allow_qos alone: no other may be used in the partition", "allow_qos says already which may")
	}
	for _, name := range sortedNames(p.Billing) {
		if w := p.Billing[name]; w < 0 {
			c.addProblem(path+".billing."+name, "write a number from 0 on", "%g is negative", w)
		}
	}
}
