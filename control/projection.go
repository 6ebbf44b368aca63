package control

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// projector writes changed jobs to the store's projection, apart from the loop. A row has the
// Seq that it reflects, so rows may be newer than the projection as a whole: a start skips what
// the journal tells again about them.
type projector struct {
	*parts
	epoch   uint64
	upTo    uint64 // what the store's projection reflects
	kick    chan struct{}
	last    time.Time // of the last write
	failing bool
	waiting int // jobs that waited when it was last looked
}

// Under load the projection waits: a job that ends soon is written once then.
const (
	busyFrom = 300              // jobs more that wait than an interval before
	busyFor  = 10 * time.Second // at most
)

// isBusy reports whether to write later.
func (p *projector) isBusy() bool {
	n := p.state.Unprojected()
	more := n - p.waiting
	p.waiting = n
	past := p.cfg.Clock.Now().Sub(p.last)
	return more >= busyFrom && past >= 0 && past < busyFor
}

// rowsAtOnce is how many rows one write has, so that the journal does not wait long for it.
const rowsAtOnce = 256

// run writes at intervals until ctx ends. What is not written then is in the journal.
func (p *projector) run(ctx context.Context) {
	if p.cfg.Project < 0 {
		return
	}
	for ctx.Err() == nil {
		timer, stop := p.cfg.Clock.After(p.cfg.Project)
		select {
		case <-timer:
			if p.isBusy() {
				stop()
				continue
			}
		case <-p.kick:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			break
		}
		err := p.write(ctx)
		switch {
		case ctx.Err() != nil:
		case fault.KindOf(err) == fault.Conflict && err != nil:
			return // the loop hears of it too
		case err != nil && !p.failing:
			p.cfg.Log.Warn("the projection cannot be written, trying again", "error", err)
		case err == nil && p.failing:
			p.cfg.Log.Info("the projection is written again")
		}
		p.failing = err != nil
	}
}

// write brings the projection up to the present state.
func (p *projector) write(ctx context.Context) error {
	s := p.state
	s.Lock()
	p.last, p.waiting = p.cfg.Clock.Now(), 0
	target, list, docs, written := s.TakeUnprojected()
	s.Unlock()
	if target == p.upTo && len(list) == 0 {
		return nil
	}
	for {
		n := min(len(list), rowsAtOnce)
		rows := s.MakeRows(list[:n])
		upTo, also := p.upTo, map[string][]byte(nil)
		if n == len(list) {
			upTo, also = target, docs
		}
		if err := p.cfg.Store.Project(ctx, p.epoch, upTo, rows, also); err != nil {
			s.MarkUnwritten(list)
			return err
		}
		s.MarkWritten(list[:n])
		if list = list[n:]; len(list) == 0 {
			p.upTo = target
			written()
			return nil
		}
	}
}
