// Package admission is the site's rules at the door: which partitions and accounts
// there are, what a job gets that asks for none, and what may not be asked for.
//
// It is pure and knows nothing of room or turn: a job that passes may still wait.
// What it changes of a job is said in its result, and only fields that were left
// open are filled in.
package admission

import (
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// Partition is a view of the nodes that jobs name.
type Partition struct {
	Name        string
	Default     bool
	Nodes       []string
	TimeLimit   time.Duration // 0: none
	DefaultTime time.Duration // 0: TimeLimit
}

// Account is an account and who may use it.
type Account struct {
	Name  string
	Users []string
}

// Rules are the rules of one site. The zero value lets everything through.
type Rules struct {
	Partitions []Partition // empty: any name is taken
	Pool       string      // whose partitions these are, with those of jobs that name no pool; empty: all pools'
	Accounts   []Account   // empty: any name is taken
	MaxArray   int         // tasks of one array; 0: no limit
	Levels     []string    // names of the levels of the topology, outermost first

	policy *account.Policy // nil: none; see Under
	tree   *account.Tree   // nil: the policy has no accounts
	book   *book           // nil: there is no policy
}

// AccountsOf lists the accounts that a user may use, his default first.
func (r *Rules) AccountsOf(user string) []string {
	if r.tree != nil {
		return r.treeAccounts(user)
	}
	var names []string
	for _, a := range r.Accounts {
		if slices.Contains(a.Users, user) {
			names = append(names, a.Name)
		}
	}
	return names
}

// Default is the partition of jobs that name none; nil if there are no partitions.
func (r *Rules) Default() *Partition {
	for i := range r.Partitions {
		if r.Partitions[i].Default {
			return &r.Partitions[i]
		}
	}
	if len(r.Partitions) == 0 {
		return nil
	}
	return &r.Partitions[0]
}

// Apply checks a job against the rules and fills in what it left open. The error
// is fault.Invalid, or fault.Permission for somebody else's account.
func (r *Rules) Apply(s *job.Spec) error {
	if s.Array != nil && r.MaxArray > 0 && len(s.Array.Indices) > r.MaxArray {
		return fault.New(fault.Invalid, "--array=%s: %d tasks are more than one array may have here (%d)", s.Array.Text, len(s.Array.Indices), r.MaxArray).
			Advise("split it into several arrays, or let a task do more than one piece of work")
	}
	if err := r.resolveLevels(s); err != nil {
		return err
	}
	if err := r.checkAccount(s); err != nil {
		return err
	}
	if err := r.checkPartition(s); err != nil {
		return err
	}
	if err := r.checkReservation(s); err != nil {
		return err
	}
	if err := r.checkLicenses(s); err != nil || r.policy == nil {
		return err
	}
	if err := r.underPolicy(s); err != nil {
		return err
	}
	return r.checkLimits(s)
}

// Known reports whether there is a list of accounts at all.
func (r *Rules) Known() bool { return r.tree != nil || len(r.Accounts) > 0 }

// accountExists reports whether there is an account.
func (r *Rules) accountExists(name string) bool {
	if r.tree != nil {
		return r.tree.Find(account.Ref{Account: name}) >= 0
	}
	return slices.ContainsFunc(r.Accounts, func(a Account) bool { return a.Name == name })
}

// accountHelp says who adds people to accounts.
func (r *Rules) accountHelp() string {
	if r.tree != nil {
		return "users of an account in queues.yaml; cox apply puts it in force"
	}
	return "accounts in cox.yaml"
}

func (r *Rules) checkAccount(s *job.Spec) error {
	if !r.Known() {
		return nil
	}
	mine := r.AccountsOf(s.Owner.User)
	if s.Account == "" {
		if len(mine) == 0 {
			return fault.New(fault.Permission, "%s has no account here", s.Owner.User).
				Advise("an administrator adds you to one: %s", r.accountHelp())
		}
		s.Account = mine[0]
		return nil
	}
	switch {
	case slices.Contains(mine, s.Account):
		return nil
	case !r.accountExists(s.Account):
		return fault.New(fault.Invalid, "--account=%s: there is no such account", s.Account).Advise("%s", listChoices("your accounts", mine))
	}
	return fault.New(fault.Permission, "--account=%s: %s may not use it", s.Account, s.Owner.User).Advise("%s", listChoices("your accounts", mine))
}

func (r *Rules) checkPartition(s *job.Spec) error {
	if len(r.Partitions) == 0 || s.Pool != "" && r.Pool != "" && s.Pool != r.Pool { // another pool's engine knows its own
		return nil
	}
	if len(s.Partitions) == 0 {
		s.Partitions = []string{r.Default().Name}
	}
	longest, fallback := time.Duration(-1), time.Duration(-1)
	for _, name := range s.Partitions {
		i := slices.IndexFunc(r.Partitions, func(p Partition) bool { return p.Name == name })
		if i < 0 {
			var names []string
			for _, p := range r.Partitions {
				names = append(names, p.Name)
			}
			return fault.New(fault.Invalid, "--partition=%s: there is no such partition", name).Advise("%s", listChoices("partitions here", names))
		}
		p := &r.Partitions[i]
		longest = longerLimit(longest, p.TimeLimit)
		if fallback < 0 {
			fallback = p.DefaultTime
			if fallback == 0 {
				fallback = p.TimeLimit
			}
		}
	}
	if s.TimeLimit == 0 {
		s.TimeLimit = fallback
		return nil
	}
	if least := max(s.TimeMin, 0); longest > 0 && (s.TimeLimit > longest && (least == 0 || least > longest)) {
		return fault.New(fault.Invalid, "--time=%s: partition %s allows at most %s",
			slurmfmt.FormatTimeLimit(s.TimeLimit), strings.Join(s.Partitions, ","), slurmfmt.FormatTimeLimit(longest)).
			Advise("ask for less time, or name another partition (sinfo shows their limits)")
	} else if longest > 0 && s.TimeLimit > longest {
		s.TimeLimit = longest // it said by --time-min that less will do
	}
	return nil
}

// longerLimit treats 0 as no limit and a negative one as not known yet.
func longerLimit(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

func listChoices(what string, names []string) string {
	if len(names) == 0 {
		return what + ": none"
	}
	return what + ": " + strings.Join(names, ", ")
}
