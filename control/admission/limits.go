package admission

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/sched/limit"
)

// book resolves the limits of a policy for those who come at the same time.
type book struct {
	mu   sync.Mutex
	book *limit.Book
}

func newBook(p *account.Policy) *book {
	if p == nil {
		return nil
	}
	return &book{book: limit.New(p, 0)}
}

// checkLimits refuses a job that is longer than its limits allow, and one that alone exceeds
// a limit where its QOS says that such jobs are refused (deny_on_limit). A job without
// a time limit gets the longest that it may have. How many jobs somebody may have is
// counted where jobs are accepted.
func (r *Rules) checkLimits(s *job.Spec) error {
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	rules := r.book.book.Rules(limit.KeyOf(s))
	if longest, by := rules.Longest(); by != nil {
		switch {
		case s.TimeLimit == 0 || s.TimeLimit > longest && s.TimeMin > 0 && s.TimeMin <= longest:
			s.TimeLimit = longest
		case s.TimeLimit > longest:
			return fault.New(fault.Invalid, "--time=%s: %s may take at most %s (%s)", slurmfmt.FormatTimeLimit(s.TimeLimit), by.Why.Holder, slurmfmt.FormatTimeLimit(longest), by.Why.Code.Limit()).
				Advise("ask for less time, or for a QOS or account that allows more")
		}
	}
	if !rules.Deny || len(s.Groups) == 0 {
		return nil
	}
	if why := r.book.book.Alone(rules, s); why.Code != reason.None && why.Code != reason.Licenses {
		return fault.New(fault.Invalid, "QOS %s refuses what exceeds a limit alone: %s", s.QOS, why.String()).
			Advise("ask for less, or for a QOS or account that allows more")
	}
	return nil
}

// checkLicenses refuses what the site does not have. Of alternatives it has to have all names,
// and as many as asked for of one of them.
func (r *Rules) checkLicenses(s *job.Spec) error {
	if s.Licenses == "" {
		return nil
	}
	choices, err := account.LicenseChoices(s.Licenses)
	if err != nil {
		return fault.New(fault.Invalid, "--licenses=%s: %w", s.Licenses, err).Advise("write NAME or NAME:COUNT, separated by commas for all of them, by | for one of them")
	}
	var few error
	enough := false
	for _, one := range choices {
		lacks, err := r.lacksLicenses(s, one)
		if err != nil {
			return err
		}
		few, enough = cmp.Or(few, lacks), enough || lacks == nil
	}
	if enough {
		return nil
	}
	return few
}

// Elsewhere are the names among a job's licences that the site does not count. What cannot be
// read has none.
func (r *Rules) Elsewhere(licenses string) (out []string) {
	all, _ := account.LicenseChoices(licenses)
	for _, one := range all {
		list, _ := account.ParseLicenses(one)
		for _, l := range list {
			if r.policy == nil || !slices.ContainsFunc(r.policy.Licenses, func(h account.License) bool { return h.Name == l.Name }) {
				out = append(out, l.Name)
			}
		}
	}
	return out
}

// lacksLicenses reports whether the site has fewer licences than one alternative asks for; err:
// it does not know one.
func (r *Rules) lacksLicenses(s *job.Spec, one string) (lacks, err error) {
	var have []account.License
	if r.policy != nil {
		have = r.policy.Licenses
	}
	list, _ := account.ParseLicenses(one)
	for _, l := range list {
		i := slices.IndexFunc(have, func(h account.License) bool { return h.Name == l.Name })
		switch {
		case len(have) == 0:
			return nil, fault.New(fault.Invalid, "--licenses=%s: this site counts no licences", s.Licenses).
				Advise("leave it out, or have an administrator add the licence to the policy (licenses in queues.yaml)")
		case i < 0:
			var names []string
			for _, h := range have {
				names = append(names, h.Name)
			}
			return nil, fault.New(fault.Invalid, "--licenses=%s: there is no licence %s", s.Licenses, l.Name).Advise("%s", listChoices("licences here", names))
		case l.Count > have[i].Count:
			return fault.New(fault.Invalid, "--licenses=%s: the site has %s of %s", s.Licenses, formatAmount(have[i].Count), l.Name).Advise("ask for at most that many"), nil
		}
	}
	return nil, nil
}

func formatAmount(n int64) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}
