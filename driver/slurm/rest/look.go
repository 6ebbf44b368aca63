package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var (
	_ site.Looker = (*Site)(nil)
	_ site.Trier  = (*Site)(nil)

	_ site.StartEstimator = (*Site)(nil)
)

// Look is site.Looker's. Slurm's settings are told by the commands, if there are any.
func (s *Site) Look(ctx context.Context) (*site.Look, error) {
	var d diag
	before := time.Now()
	if err := s.callAPI(ctx, &request{method: http.MethodGet, base: "slurm", path: "/diag"}, &d); err != nil {
		return nil, err
	}
	l := &site.Look{Way: fmt.Sprintf("slurmrestd %s at %s", s.knownVersion("slurm"), s.cfg.URL), Token: s.lookToken(ctx)}
	if d.Statistics.Now.set {
		now := d.Statistics.Now.asTime()
		l.Clock = true
		switch after := time.Now(); {
		case now.Add(time.Second).Before(before):
			l.Ahead = now.Add(time.Second).Sub(before).Round(time.Second)
		case now.After(after):
			l.Ahead = now.Sub(after).Round(time.Second)
		}
	}
	if k, ok := s.cfg.Commands.(site.Looker); ok {
		by, err := k.Look(ctx)
		if err != nil {
			return l, err
		}
		l.Settings = by.Settings
		l.Way += ", and " + by.Way
		return l, nil
	}
	lacks := []string{"suspending jobs", "where nodes lie", "Slurm's settings"}
	if s.knownVersion("slurm") == old {
		lacks = append(lacks, "killing at once", "signals for the script alone", "holding a job", "draining nodes")
	}
	l.Lacks = strings.Join(lacks, ", ")
	return l, nil
}

// lookToken is what is known of the token of whoever asks, which was just used.
func (s *Site) lookToken(ctx context.Context) *site.Token {
	if s.keep == nil {
		return nil
	}
	t, _ := s.keep.cachedFor(s.cfg.User)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil
	}
	out := &site.Token{From: "somebody who made it", Renewed: true}
	switch from := s.cfg.Tokens.(type) {
	case File:
		out.From = "file " + string(from)
	case *Command:
		out.From = "command " + strings.Join(from.Words, " ")
	case *Key:
		out.From = "key " + from.Path
	default:
		out.Renewed = false
	}
	if out.Life, _ = tokenLifetime(t.token); !t.over.IsZero() {
		out.Left = t.over.Sub(s.keep.now())
	}
	return out
}

// EstimateStart is site.StartEstimator's: slurmrestd cannot, the commands can.
func (s *Site) EstimateStart(ctx context.Context, j *site.Submission) (time.Time, error) {
	if t, ok := s.cfg.Commands.(site.StartEstimator); ok {
		return t.EstimateStart(ctx, j)
	}
	return time.Time{}, fault.New(fault.Unsupported, "slurmrestd cannot be asked when a job would start").Advise("give the pool a way to Slurm's commands beside it: --local or --ssh LOGIN")
}

// Try is site.Trier's: slurmrestd cannot, the commands can.
func (s *Site) Try(ctx context.Context, j *site.Submission) error {
	if t, ok := s.cfg.Commands.(site.Trier); ok {
		return t.Try(ctx, j)
	}
	return fault.New(fault.Unsupported, "slurmrestd has no call that tries a job")
}
