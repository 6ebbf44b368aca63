package report

import (
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
)

// Spent is a budget and what was spent of it.
type Spent struct {
	Name    string    `json:"name"`
	Account string    `json:"account" doc:"whose jobs count, with those of the accounts below it"`
	Period  string    `json:"period" doc:"daily, weekly, monthly, quarterly or yearly"`
	From    time.Time `json:"from" doc:"beginning of the period, UTC"`
	Until   time.Time `json:"until" doc:"end of the period"`
	Amount  float64   `json:"amount" doc:"in the currency"`
	Spent   float64   `json:"spent" doc:"in the period, up to the end of the window"`
	Percent float64   `json:"spent_percent"`
	Warn    float64   `json:"warn_percent" doc:"from which on there is a warning"`
	State   string    `json:"state" doc:"ok; warn: above warn_percent; over: above the amount"`
}

// States of a Spent.
const (
	SpentOK   = "ok"
	SpentWarn = "warn"
	SpentOver = "over"
)

// Spending adds up what is spent of budgets in the periods that a moment is in. It is not safe for
// concurrent use.
type Spending struct {
	prices account.Prices
	now    int64
	list   []*spending
	above  map[string]string // the account above each
}

type spending struct {
	Spent

	from, to int64
}

// NewSpending begins to add up the budgets of a policy, of the periods that the last second before at is in. Jobs
// count up to at: a window that ends when a period does is of that period, not of the next one.
func NewSpending(p *account.Policy, at, now time.Time) *Spending {
	s := &Spending{prices: p.Prices, now: now.Unix(), above: map[string]string{}}
	for i := range p.Accounts {
		s.above[p.Accounts[i].Name] = p.Accounts[i].Parent
	}
	for i := range p.Budgets {
		b := &p.Budgets[i]
		from, until := fair.LastReset(b.PeriodName(), at.Unix()-1), fair.NextReset(b.PeriodName(), at.Unix()-1)
		s.list = append(s.list, &spending{
			Spent: Spent{
				Name: b.Name, Account: b.Account, Period: b.PeriodName(), From: time.Unix(from, 0).UTC(), Until: time.Unix(until, 0).UTC(),
				Amount: b.Amount, Warn: b.WarnPercent(),
			},
			from: from, to: min(until, at.Unix()),
		})
	}
	return s
}

// Since is the beginning of the first period; ok is false if there are no budgets.
func (s *Spending) Since() (t time.Time, ok bool) {
	for _, x := range s.list {
		if !ok || x.From.Before(t) {
			t, ok = x.From, true
		}
	}
	return t, ok
}

// Add counts a job.
func (s *Spending) Add(r *Record) {
	for _, x := range s.list {
		if !s.isWithin(r.Account, x.Account) {
			continue
		}
		for i := range r.Attempts {
			if in, ok := r.Attempts[i].spanWithin(x.from, x.to, s.now); ok {
				c := costOf(&s.prices, r.Pool, &r.Attempts[i], in)
				x.Spent.Spent += c.gpu + c.cpu + c.memory
			}
		}
	}
}

// isWithin reports whether an account is another one, or below it.
func (s *Spending) isWithin(name, of string) bool {
	for range len(s.above) + 1 {
		if name == of {
			return true
		}
		if name = s.above[name]; name == "" {
			return false
		}
	}
	return false
}

// Of returns the budgets that the jobs of an account count for, those of the account itself first.
func (s *Spending) Of(name string) (out []Spent) {
	for _, x := range s.Budgets() {
		if s.isWithin(name, x.Account) {
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b Spent) int {
		switch {
		case a.Account == name && b.Account != name:
			return -1
		case b.Account == name && a.Account != name:
			return 1
		}
		return 0
	})
	return out
}

// Budgets returns every budget with what was spent, in the order of the rules.
func (s *Spending) Budgets() []Spent {
	out := make([]Spent, 0, len(s.list))
	for _, x := range s.list {
		b := x.Spent
		b.Spent, b.Percent, b.State = *known(b.Spent), *known(100 * b.Spent / b.Amount), SpentOK
		switch {
		case b.Percent >= 100:
			b.State = SpentOver
		case b.Percent >= b.Warn:
			b.State = SpentWarn
		}
		out = append(out, b)
	}
	return out
}

// ShortWarning is Warning without any amount.
func (b *Spent) ShortWarning() string {
	state := ""
	switch b.State {
	case SpentOver:
		state = "spent"
	case SpentWarn:
		state = "nearly spent"
	default:
		return ""
	}
	return "budget " + b.Name + " of account " + b.Account + " is " + state + "; the " + b.Period + " period ends " + b.Until.Format("2006-01-02")
}

// Warning says that a budget is spent, or nearly; "" if it is neither.
func (b *Spent) Warning(currency string) string {
	if b.State == SpentOK {
		return ""
	}
	amount := func(x float64) string { return strings.TrimSpace(moneyText(x) + " " + currency) }
	text := "budget " + b.Name + ": account " + b.Account + " has spent " + amount(b.Spent) + " of " + amount(b.Amount) + ", " + percentText(b.Percent) +
		"; the " + b.Period + " period ends " + b.Until.Format("2006-01-02")
	return text
}
