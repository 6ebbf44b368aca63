package schedtest

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Limits draws a policy that limits: up to 4 accounts with users in them, 2 QOS, the
// partitions p and q, licences. Most limits are near to what a few jobs of Spec take.
func Limits(t *rapid.T) *account.Policy {
	p := &account.Policy{}
	for i, name := range []string{"root", "a", "b", "c"} {
		if i == 0 && rapid.Bool().Draw(t, "no root") {
			continue
		}
		a := account.Account{Name: name, Limits: someLimits(t, false)}
		if i > 1 {
			a.Parent = rapid.SampledFrom([]string{"", "a", []string{"a", "a", "a", "b"}[i]}).Draw(t, "parent")
		}
		if rapid.Bool().Draw(t, "users") {
			a.Users = []account.User{{Name: "u", Limits: someLimits(t, false)}, {Name: "v"}}
		}
		p.Accounts = append(p.Accounts, a)
	}
	for _, name := range []string{"x", "y"} {
		q := account.QOS{Name: name, Limits: someLimits(t, true)}
		if name == "y" && rapid.IntRange(0, 2).Draw(t, "alike") == 0 {
			q.Limits = p.QOS[0].Limits
		}
		for _, flag := range []string{"over_part_qos", "partition_max_nodes", "partition_min_nodes", "partition_time_limit", account.FlagRelative} {
			if rapid.IntRange(0, 4).Draw(t, flag) == 0 {
				q.Flags = append(q.Flags, flag)
			}
		}
		if rapid.IntRange(0, 4).Draw(t, "factor") == 0 {
			f := rapid.SampledFrom([]float64{0.5, 2, 1.3}).Draw(t, "limit factor")
			q.LimitFactor = &f
		}
		if slices.Contains(q.Flags, account.FlagRelative) {
			inParts(&q.Limits)
		}
		p.QOS = append(p.QOS, q)
	}
	for _, name := range []string{"p", "q"} {
		part := account.Partition{Name: name, QOS: rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "partition's QOS")}
		if rapid.IntRange(0, 5).Draw(t, "bounded") == 0 {
			part.MaxNodes = rapid.IntRange(1, 3).Draw(t, "max nodes")
			part.MaxTime = account.Duration(rapid.IntRange(5, 20).Draw(t, "max time")) * account.Duration(time.Second)
		}
		p.Partitions = append(p.Partitions, part)
	}
	if rapid.Bool().Draw(t, "licences") {
		p.Licenses = []account.License{{Name: "l", Count: int64(rapid.IntRange(1, 3).Draw(t, "l"))}, {Name: "m", Count: 2}}
	}
	return p
}

// inParts makes amounts of a few things parts of a fleet that has a few of each.
func inParts(l *account.Limits) {
	for _, of := range []account.TRES{l.Group, l.GroupRunMinutes, l.Job, l.Node, l.JobMinutes, l.User, l.Account, l.UserRunMinutes, l.AcctRunMinutes, l.Least} {
		for name, a := range of {
			if of[name] = a * 17; name == "memory" {
				of[name] = a / resource.GiB * 9 * resource.MiB
			}
		}
	}
}

// someLimits draws few limits, mostly none.
func someLimits(t *rapid.T, qos bool) (l account.Limits) {
	n := rapid.SampledFrom([]int{0, 0, 1, 3, 6}).Draw(t, "limits")
	for range n {
		things := func(minutes bool) account.TRES { return drawTRES(t, minutes) }
		number := func(label string) *int64 {
			n := int64(rapid.IntRange(0, 3).Draw(t, label))
			return &n
		}
		kinds := 8
		if qos {
			kinds = 15
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "limit") {
		case 0:
			l.Group = things(false)
		case 1:
			l.GroupRunMinutes = things(true)
		case 2:
			l.GroupJobs = number("group jobs")
		case 3:
			l.Jobs = number("jobs")
		case 4:
			l.Job = things(false)
		case 5:
			l.Node = things(false)
		case 6:
			l.JobMinutes = things(true)
		case 7:
			w := account.Duration(rapid.IntRange(1, 20).Draw(t, "wall")) * account.Duration(time.Second)
			l.Wall = &w
		case 8:
			l.User = things(false)
		case 9:
			l.Account = things(false)
		case 10:
			l.UserRunMinutes = things(true)
		case 11:
			l.AcctRunMinutes = things(true)
		case 12:
			l.UserJobs = number("user jobs")
		case 13:
			l.AcctJobs = number("account jobs")
		case 14:
			l.Least = account.TRES{rapid.SampledFrom([]string{"cpu", "gpu", "node"}).Draw(t, "least of"): 1}
		}
	}
	return l
}

func drawTRES(t *rapid.T, minutes bool) account.TRES {
	out := account.TRES{}
	for range rapid.IntRange(1, 2).Draw(t, "things") {
		name := rapid.SampledFrom([]string{"cpu", "cpu", "memory", "node", "gpu", "gpu:a", "gpu:b", "tape", "license/l"}).Draw(t, "thing")
		n := resource.Amount(rapid.IntRange(0, 6).Draw(t, "bound"))
		switch name {
		case "cpu", "gpu", "gpu:a", "gpu:b":
			n *= 1000
		case "memory":
			n *= resource.GiB
		}
		if minutes { // of jobs that take seconds
			n = n * resource.Amount(rapid.IntRange(1, 12).Draw(t, "seconds")) / 30
		}
		out[name] = n
	}
	return out
}

// Whose draws for whom a job is, as Limits knows it, and licences.
func Whose(t *rapid.T, s *job.Spec) {
	s.Account = rapid.SampledFrom([]string{"a", "b", "c", "unknown"}).Draw(t, "account")
	s.Owner.User = rapid.SampledFrom([]string{"u", "v"}).Draw(t, "user")
	s.QOS = rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "QOS")
	if rapid.IntRange(0, 5).Draw(t, "licensed") == 0 {
		s.Licenses = rapid.SampledFrom([]string{"l", "l:2", "l,m", "m:2", "l|m", "m:2|l:2"}).Draw(t, "licences")
	}
}
