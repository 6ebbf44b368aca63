package query

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// Moves is the proposed moves of running jobs, and the jobs that are moving.
type Moves struct {
	Mode     string    // account.DefragOff, DefragAsk or DefragAutomatic
	Idle     string    // the rule for which nothing is moved all the same; empty: there is none
	Proposal *Proposal // nil: none
	Moving   []Moved   // by job
}

// Proposal is a set of running jobs that would move so that a waiting one starts.
type Proposal struct {
	ID     string // of these moves to these places; the same after a restart
	For    state.View
	At     time.Time // when it would start otherwise; zero: nobody knows
	Claims []fleet.Claim
	Moves  []Moved
}

// Moved is a job that moves, or would move.
type Moved struct {
	state.View
	For  job.ID
	Home []fleet.Claim // where to
	Lost time.Duration // of its work that it does again; of proposals alone
}

// ProposalID names a proposal by its moves: the same moves have the same name after a restart.
func ProposalID(p *sched.Proposal) string {
	bare := sched.Proposal{For: p.For, Claims: p.Claims}
	for _, m := range p.Moves {
		bare.Moves = append(bare.Moves, sched.Move{Job: m.Job, Home: m.Home})
	}
	h := sha256.Sum256(state.MustJSON(&bare))
	return fmt.Sprintf("%d-%s", p.For, hex.EncodeToString(h[:3]))
}

// Moves returns the proposed moves and the jobs that are moving.
func (rd *Reader) Moves(context.Context) (Moves, error) {
	s := rd.of.State
	s.RLock()
	defer s.RUnlock()
	out := Moves{Mode: account.DefragOff}
	if p := s.Policies.CurrentPolicy(); p != nil && p.Rules.Preemption.Defrag != "" {
		out.Mode, out.Idle = p.Rules.Preemption.Defrag, defragBlocker(p.Rules)
	}
	for _, e := range s.Live {
		if !e.Gone && e.State.Holds() && e.Last.Preempted != nil && e.Last.Preempted.Home != nil {
			out.Moving = append(out.Moving, Moved{View: state.ViewOf(e), For: e.Last.Preempted.For, Home: e.Last.Preempted.Home})
		}
	}
	p := s.Proposal
	if p == nil || s.Jobs[p.For] == nil {
		return out, nil
	}
	out.Proposal = &Proposal{ID: ProposalID(p), For: state.ViewOf(s.Jobs[p.For]), At: state.FromNanos(int64(p.At)), Claims: p.Claims}
	for _, m := range p.Moves {
		if e := s.Jobs[m.Job]; e != nil {
			out.Proposal.Moves = append(out.Proposal.Moves, Moved{View: state.ViewOf(e), For: p.For, Home: m.Home, Lost: time.Duration(m.Lost) * time.Second})
		}
	}
	return out, nil
}

// defragBlocker names the rule for which the core moves nothing whatever the mode.
func defragBlocker(p *account.Policy) string {
	switch {
	case p.Preemption.Defrag == account.DefragOff:
		return ""
	case p.Compat != "":
		return "compat"
	case p.Backfill.Reservations > 0 && !p.Backfill.Off:
		return "backfill.reservations"
	case len(p.Reservations) > 0:
		return "reservations"
	}
	return ""
}
