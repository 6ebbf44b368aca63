package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// watch is a watch of the engine on its way to one server.
type watch struct {
	w       *World
	s       *server
	deliver chan engine.Event
	broken  chan struct{} // closed when the connection is gone
	ended   bool
	last    time.Duration // when the last report that was sent arrives
	held    *engine.Event // overtaken

	missing int    // reports that others overtook
	safe    string // cursor up to which every report was handed over
	top     string // of the newest report that was
}

func (st *watch) endWatch() {
	if !st.ended {
		st.ended = true
		close(st.broken)
	}
}

// Watch is engine.Engine's. Reports come through gates, one at a time.
func (d *driver) Watch(ctx context.Context, after string, f func(engine.Event) error) error {
	w, s := d.w, d.s
	v, err := w.passGate(ctx, s, s.name+" watches", false, func(key string, answer func(any, error)) {
		e := w.machine.driver
		if e == nil || w.faultAt(CallLost, key) {
			answer(nil, errNoAnswer)
			return
		}
		st := &watch{w: w, s: s, safe: after, deliver: make(chan engine.Event, 16), broken: make(chan struct{})}
		w.machine.streams = append(w.machine.streams, st)
		inner, cancel := context.WithCancel(context.Background())
		go func() {
			<-st.broken
			cancel()
		}()
		go func() {
			_ = e.Watch(inner, after, func(ev engine.Event) error {
				st.sendReport(ev)
				return inner.Err()
			})
		}()
		answer(st, nil)
	})
	if err != nil {
		return err
	}
	st := v.(*watch)
	for {
		select {
		case ev := <-st.deliver:
			if err := f(ev); err != nil {
				return err
			}
		case <-st.broken:
			return errNoAnswer
		case <-s.gone:
			return errGone
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sendReport puts a report on its way, behind those before it.
func (st *watch) sendReport(ev engine.Event) {
	w := st.w
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &ev.Report
	key := w.uniqueKey(fmt.Sprintf("%s hears that %s is %s", st.s.name, r.Ref, r.Phase))
	st.last = max(st.last+1, w.elapsedTime()+w.drawLatency(key))
	w.gateAt(st.s, key, st.last, func(key string) { st.reportArrives(key, ev) })
}

// reportArrives is a report at the server, unless something becomes of it on its way.
func (st *watch) reportArrives(key string, ev engine.Event) {
	w := st.w
	if st.ended {
		return
	}
	switch {
	case w.faultAt(ReportsLost, key):
		st.endWatch()
		return
	case w.faultAt(ReportLate, key):
		d := w.dice.streamFor("late", key).durationBetween(time.Second, 60*time.Second)
		st.missing++
		w.gateAfter(st.s, key+" late", d, func(string) { st.catchUp(ev) })
		return
	case st.held == nil && w.faultAt(ReportsReordered, key):
		held := ev
		st.held = &held
		st.missing++
		w.gateAfter(st.s, key+", after nothing overtook it", 5*time.Second, func(string) {
			if st.held == &held {
				st.held = nil
				st.catchUp(held)
			}
		})
		return
	}
	if w.faultAt(ReportWrongJob, key) {
		wrong := ev
		wrong.Report.Job++
		st.handSoon(key+", of another job", wrong)
	}
	st.handReport(ev)
	if st.held != nil {
		held := *st.held
		st.held = nil
		w.gateAfter(st.s, key+", overtaken", 0, func(string) { st.catchUp(held) })
	}
	if w.faultAt(ReportDoubled, key) {
		st.handSoon(key+", again", ev)
	}
	w.replayReports(st, key, ev)
}

// handSoon hands over a report in the next event.
func (st *watch) handSoon(key string, ev engine.Event) {
	st.w.gateAfter(st.s, key, 0, func(string) { st.handReport(ev) })
}

// replayReports lets reports come that are about the past or about nothing.
func (w *World) replayReports(st *watch, key string, ev engine.Event) {
	past := w.machine.old[ev.Report.Job]
	s := w.dice.streamFor("again", key)
	var same, earlier []engine.Report
	for _, r := range past {
		if r.Ref == ev.Report.Ref {
			same = append(same, r)
		} else {
			earlier = append(earlier, r)
		}
	}
	if len(same) > 0 && w.faultAt(ReportStale, key) {
		st.handSoon(key+", an old one", engine.Event{Cursor: ev.Cursor, Report: same[s.intBelow(len(same))]})
	}
	if len(earlier) > 0 && w.faultAt(ReportOldAttempt, key) {
		st.handSoon(key+", of an earlier attempt", engine.Event{Cursor: ev.Cursor, Report: earlier[s.intBelow(len(earlier))]})
	}
	if w.faultAt(ReportStrange, key) {
		r := ev.Report
		r.Ref.Allocation += 1000
		st.handSoon(key+", of an unknown attempt", engine.Event{Cursor: ev.Cursor, Report: r})
	}
	if len(past) < 12 {
		w.machine.old[ev.Report.Job] = append(past, ev.Report)
	}
}

// catchUp hands over a report that others overtook.
func (st *watch) catchUp(ev engine.Event) {
	st.missing--
	st.handReport(ev)
}

// handReport gives a report to the server. The cursor never passes a report that is still
// on its way, so that none is lost when the watch breaks.
func (st *watch) handReport(ev engine.Event) {
	if st.ended || st.s.dead {
		return
	}
	r := ev.Report
	if isNewer(ev.Cursor, st.top) {
		st.top = ev.Cursor
	}
	if st.missing == 0 {
		st.safe = st.top
	}
	ev.Cursor = st.safe
	st.w.tellFact(model.Heard{Epoch: st.s.epoch, Ref: r.Ref, Report: &r})
	select {
	case st.deliver <- ev:
	default: // nobody reads any more
	}
}

// isNewer compares cursors of one watch: EPOCH.NUMBER.
func isNewer(a, b string) bool {
	return len(a) > len(b) || len(a) == len(b) && a > b
}
