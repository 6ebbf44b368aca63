package simulate

import (
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// disk is the store as one server sees it.
type disk struct {
	store.Store
	w *World
	s *server
}

// errFull is what a full disk says.
var errFull = fault.New(fault.Exhausted, "no space left on the disk")

// Lead takes the lead through a gate.
func (d *disk) Lead(ctx context.Context, who string) (uint64, error) {
	w, s := d.w, d.s
	v, err := w.passGate(ctx, s, s.name+" takes the lead", false, func(key string, answer func(any, error)) {
		if w.faultAt(OpenFails, key) {
			answer(nil, errIO)
			return
		}
		epoch, err := d.Store.Lead(context.Background(), who)
		if err == nil {
			s.epoch = epoch
			w.led.Store(epoch)
			w.tellFact(model.Led{Epoch: epoch, Who: who})
		}
		answer(epoch, err)
	})
	if err != nil {
		return 0, err
	}
	return v.(uint64), nil
}

// Read reads the journal: when a server opens, and when it does not know whether a
// write that failed is durable. It may fail, in its middle where there is one.
func (d *disk) Read(ctx context.Context, after uint64, f func(store.Record) error) error {
	if err := d.checkAlive(); err != nil {
		return err
	}
	d.w.mu.Lock()
	key := d.w.uniqueKey(d.s.name + " reads the journal")
	d.w.mu.Unlock()
	left := -1
	if d.w.faultAt(ReadFails, key) { // nothing else moves in the meantime
		left = d.w.dice.streamFor("read", key).intBelow(4)
	}
	err := d.Store.Read(ctx, after, func(r store.Record) error {
		if left--; left == -1 {
			return errIO
		}
		return f(r)
	})
	if err == nil && left >= 0 {
		return errIO
	}
	return err
}

func (d *disk) checkAlive() error {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.s.dead {
		return errGone
	}
	return nil
}

// Append writes the journal through a gate. A write of nothing only asks who leads.
func (d *disk) Append(ctx context.Context, epoch uint64, recs []store.Record) (uint64, error) {
	w, s := d.w, d.s
	if len(recs) == 0 {
		if err := d.checkAlive(); err != nil {
			return 0, err
		}
		return d.Store.Append(ctx, epoch, nil)
	}
	recs = slices.Clone(recs)
	w.mu.Lock()
	if s.dead {
		w.mu.Unlock()
		return 0, errGone
	}
	s.writing++
	w.later = append(w.later, model.Appending{Epoch: epoch, Records: recs})
	w.mu.Unlock()
	v, err := w.passGate(ctx, s, s.name+" writes the journal", false, func(key string, answer func(any, error)) {
		d.writeRecords(key, epoch, recs, answer)
	})
	if err != nil {
		return 0, err
	}
	return v.(uint64), nil
}

// crashesHere counts a write and reports whether it is the one at which the server dies.
func (w *World) crashesHere() bool {
	w.out.Writes++
	return w.opt.CrashAt == w.out.Writes
}

// writeRecords is a write of the journal whose turn has come.
func (d *disk) writeRecords(key string, epoch uint64, recs []store.Record, answer func(any, error)) {
	w, s := d.w, d.s
	crash := w.crashesHere()
	if crash && !w.opt.CrashAfter || w.faultAt(CrashBefore, key) {
		w.killServer(s, "it was killed before a write of the journal was made")
		return
	}
	if w.faultAt(Followed, key) { // the other one may be faster, or not
		w.openServer()
		w.gateAfter(s, key+" goes on", w.dice.streamFor("followed", key).durationBetween(0, 300*time.Millisecond), func(string) {
			d.commitRecords(key, epoch, recs, crash, answer)
		})
		return
	}
	if w.faultAt(DiskSlow, key) {
		w.gateAfter(s, key+" goes on", w.dice.streamFor("slow", key).durationBetween(time.Second, 40*time.Second), func(string) {
			d.commitRecords(key, epoch, recs, crash, answer)
		})
		return
	}
	d.commitRecords(key, epoch, recs, crash, answer)
}

func (d *disk) commitRecords(key string, epoch uint64, recs []store.Record, crash bool, answer func(any, error)) {
	w, s := d.w, d.s
	reply := func(last uint64, err error) {
		w.tellFact(model.Appended{Epoch: epoch, Last: last, Err: err})
		w.mu.Lock()
		s.writing--
		w.mu.Unlock()
		s.failed = err != nil
		answer(last, err)
	}
	switch {
	case !w.full && w.faultAt(DiskFull, key):
		w.full = true
		w.gateAfter(nil, key+": the disk has room again", w.dice.streamFor("full", key).durationBetween(time.Second, time.Minute), func(string) { w.full = false })
		fallthrough
	case w.full:
		reply(0, errFull)
		return
	case w.faultAt(DiskError, key):
		reply(0, errIO)
		return
	}
	last, err := d.Store.Append(context.Background(), epoch, recs)
	if err == nil {
		stored := slices.Clone(recs)
		for i := range stored {
			stored[i].Seq, stored[i].Epoch = last-uint64(len(stored)-1-i), epoch
		}
		w.tellFact(model.Durable{Epoch: epoch, Records: stored})
	}
	switch {
	case crash && w.opt.CrashAfter, err == nil && w.faultAt(CrashAfter, key):
		w.killServer(s, "it was killed after a write of the journal was durable")
	case err == nil && w.faultAt(DiskErrorAfter, key):
		reply(0, errIO)
	default:
		reply(last, err)
	}
}

// Project writes the projection through a gate.
func (d *disk) Project(ctx context.Context, epoch, upTo uint64, rows []store.JobRow, docs map[string][]byte) error {
	w, s := d.w, d.s
	_, err := w.passGate(ctx, s, s.name+" writes the projection", false, func(key string, answer func(any, error)) {
		crash := w.crashesHere()
		switch {
		case crash && !w.opt.CrashAfter, w.faultAt(CrashBefore, key):
			w.killServer(s, "it was killed before a write of the projection was made")
			return
		case w.full:
			answer(nil, errFull)
			return
		case w.faultAt(ProjectFails, key):
			answer(nil, errIO)
			return
		}
		err := d.Store.Project(context.Background(), epoch, upTo, rows, docs)
		switch {
		case crash, w.faultAt(CrashAfter, key):
			w.killServer(s, "it was killed after a write of the projection was made")
		case err == nil && w.faultAt(ProjectFailsAfter, key):
			answer(nil, errIO)
		default:
			answer(nil, err)
		}
	})
	return err
}

// blobFails is the key of an error in a request's context.
type blobFails struct{}

// PutBlob fails where the request that puts it is to fail.
func (d *disk) PutBlob(ctx context.Context, b []byte) (string, error) {
	if err := d.checkAlive(); err != nil {
		return "", err
	}
	if err, ok := ctx.Value(blobFails{}).(error); ok {
		return "", err
	}
	return d.Store.PutBlob(ctx, b)
}

// Purge removes nothing once the server is dead.
func (d *disk) Purge(ctx context.Context, epoch uint64, req store.PurgeRequest) (store.PurgeResult, error) {
	if err := d.checkAlive(); err != nil {
		return store.PurgeResult{}, err
	}
	return d.Store.Purge(ctx, epoch, req)
}
