package reports

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/model/report"
)

// Bounds of what is known of budgets.
const (
	spentKept  = time.Second            // what is spent is added up anew after so long …
	spentShare = 30                     // … and after so many times as long as that took
	spentAwait = 500 * time.Millisecond // who asks first waits so long for it …
	spentAgain = 50 * time.Millisecond  // … and who asks when it is old, so long
)

// spent is what is spent of budgets, as of a moment. It is guarded by Service.mu.
type spent struct {
	revision uint64 // of the rules
	until    time.Time
	latest   *report.Spending // not written to; nil: not known yet
	making   chan struct{}    // closed when it has been made; nil: nobody makes it
}

// Warnings says which budgets that the jobs of an account count for are spent, or nearly. Amounts are the sum of
// everybody's jobs: where jobs are private, administrators alone see them. What is spent is up to some minutes old; it
// waits a moment at most for it, and says nothing where it is not known yet.
func (s *Service) Warnings(ctx context.Context, id auth.Identity, account string) (out []api.Warning) {
	now, currency := s.spendingNow(ctx)
	if now == nil {
		return nil
	}
	for _, b := range now.Of(account) {
		text := b.Warning(currency)
		if s.cfg.Policy.Private && !id.Admin {
			text = b.ShortWarning()
		}
		if text != "" {
			out = append(out, api.Warning{Message: text})
		}
	}
	return out
}

// spendingNow is what is spent of the budgets of the rules in force; nil: there are none, or it is not known.
func (s *Service) spendingNow(ctx context.Context) (latest *report.Spending, currency string) {
	p, err := s.cfg.Plane.Policy(ctx, 0)
	if err != nil || p.Rules == nil || len(p.Rules.Budgets) == 0 {
		return nil, ""
	}
	s.mu.Lock()
	x := &s.spent
	if x.revision != p.Revision { // of other rules
		*x = spent{revision: p.Revision, making: x.making}
	}
	if x.making == nil && (x.latest == nil || s.cfg.Now().After(x.until)) && s.ctx.Err() == nil {
		x.making = make(chan struct{})
		s.work.Go(s.makeSpending)
	}
	latest, making := x.latest, x.making
	s.mu.Unlock()
	if making == nil {
		return latest, p.Rules.Prices.Currency
	}
	patience := spentAwait
	if latest != nil {
		patience = spentAgain
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-making:
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spent.latest, p.Rules.Prices.Currency
}

// makeSpending adds up what is spent.
func (s *Service) makeSpending() {
	begun, now := time.Now(), s.cfg.Now()
	var made *report.Spending
	p, err := s.cfg.Plane.Policy(s.ctx, 0)
	if err == nil && p.Rules != nil {
		made = report.NewSpending(p.Rules, now.Add(time.Second), now)
		since, _ := made.Since()
		err = s.readJobs(s.ctx, &reading{from: since, to: now.Add(time.Second)}, true, made.Add)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && p.Revision == s.spent.revision {
		s.spent.latest = made
	}
	s.spent.until = now.Add(max(spentKept, spentShare*time.Since(begun)))
	close(s.spent.making)
	s.spent.making = nil
}
