package control

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// This file shows what the core proposes to move, and has it moved. A proposal is not
// in the journal: it follows from the state, and a restart makes it again. What is
// approved is in the journal when the request is answered, as the request to each job
// to make room, with its new place.

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
		case id != query.ProposalID(p):
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "%s is not what is proposed now, which is %s: things have changed", id, query.ProposalID(p)).Advise("cox defrag shows it; approve that"))
			return
		}
		a := &approval{of: sched.Approved{For: p.For, Claims: p.Claims, Moves: p.Moves}, by: by, answer: answer}
		s.Events = append(s.Events, a.of)
		l.approval = a
	})
}

// refuseLapsedApproval answers whoever approved moves of which none is made any more. The
// approval of moves that are made is answered when the batch is durable, which it is as a whole.
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
