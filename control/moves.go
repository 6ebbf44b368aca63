package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// This file shows what the core proposes to move, and has it moved. A proposal is not
// in the journal: it follows from the state, and a restart makes it again. What is
// approved is in the journal when the request is answered, as the request to each job
// to make room, with its new place.

// Moves is what is proposed to move, and what is moving.
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

// Moved is a job that moves, or would.
type Moved struct {
	state.View
	For  job.ID
	Home []fleet.Claim // where to
	Lost time.Duration // of its work that it does again; of proposals alone
}

// proposalID names a proposal by what is moved where.
func proposalID(p *sched.Proposal) string {
	bare := sched.Proposal{For: p.For, Claims: p.Claims}
	for _, m := range p.Moves {
		bare.Moves = append(bare.Moves, sched.Move{Job: m.Job, Home: m.Home})
	}
	h := sha256.Sum256(state.MustJSON(&bare))
	return fmt.Sprintf("%d-%s", p.For, hex.EncodeToString(h[:3]))
}

// Moves returns what is proposed to move, and what is moving.
func (rd *reader) Moves(context.Context) (Moves, error) {
	s := rd.of.state
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
	out.Proposal = &Proposal{ID: proposalID(p), For: state.ViewOf(s.Jobs[p.For]), At: state.FromNanos(int64(p.At)), Claims: p.Claims}
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

// approval is a proposal that somebody has approved and the core has not heard of.
type approval struct {
	of     sched.Approved
	by     job.Actor
	answer func(error)
}

// ApproveMoves has a proposal carried out. It is durable when it returns; if it cannot
// be carried out any more nothing is moved.
func (c *Control) ApproveMoves(ctx context.Context, by job.Actor, id string) error {
	return c.askLoop(ctx, message{bulk: true}, func(l *loop, answer func(error)) {
		s := l.state
		s.Lock()
		defer s.Unlock()
		p := s.Proposal
		switch {
		case l.approval != nil: // the journal cannot be written, and the core has not heard of it
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "somebody else has approved moves just now").Advise("cox defrag shows what is proposed then"))
			return
		case p == nil:
			l.refuseWhenLeading(answer, fault.New(fault.NotFound, "no moves are proposed").Advise("cox defrag shows what is"))
			return
		case id != proposalID(p):
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "%s is not what is proposed now, which is %s: things have changed", id, proposalID(p)).Advise("cox defrag shows it; approve that"))
			return
		}
		a := &approval{of: sched.Approved{For: p.For, Claims: p.Claims, Moves: p.Moves}, by: by, answer: answer}
		s.Events = append(s.Events, a.of)
		l.approval = a
	})
}

// refuseLapsedApproval answers who approved moves of which none is made any more. Who approved those that
// are is answered when the batch is durable, which it is as a whole.
func (l *loop) refuseLapsedApproval() {
	a := l.granted
	if a == nil || slices.ContainsFunc(l.batch, func(b staged) bool {
		v, moves := b.val.(state.Preempted)
		return moves && v.Home != nil && v.For == a.of.For
	}) {
		return
	}
	l.granted = nil
	l.refuseWhenLeading(a.answer, fault.New(fault.Conflict, "the moves cannot be made any more: things have changed").Advise("cox defrag shows what is proposed now"))
}
