package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Uploads has the archives of directories that were sent with jobs; *upload.Store is one.
type Uploads interface {
	// Open opens the archive of a user; one that is not there is fault.NotFound. The caller
	// closes it.
	Open(uid uint32, digest string) (io.ReadCloser, error)
}

// shipsAtMost bounds how many archives an engine sends at once: they go through the API server.
const shipsAtMost = 4

// shipping is how far the directory that comes with an attempt's job is. Member 0's pod gets
// it, and passes it on to the others (crew.Receive). What an earlier driver had sent is not
// known: it is sent again, and the pod says that it is there.
type shipping struct {
	busy, done bool
	failed     int
	stop       context.CancelFunc // of what is under way
}

// deliverUpload begins to send the directory that comes with an attempt's job, if it is time for
// that, and gives it up if the attempt is to end.
func (e *Engine) deliverUpload(a *attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.ended {
		return
	}
	u, s := a.order.Job.Spec.Upload, &a.ship
	if a.stop != nil || a.report.Phase >= engine.Ending {
		if s.stop != nil {
			s.stop()
		}
		return
	}
	p := a.pods[0]
	if u == nil || s.busy || s.done || !a.report.Started.IsZero() || p == nil {
		return
	}
	if main := podstatus.JobContainer(p.Status.ContainerStatuses); main == nil || main.State.Running == nil {
		return
	}
	ctx, cancel := context.WithCancel(e.ctx)
	s.busy, s.stop = true, cancel
	owner := a.order.Job.Spec.Owner.UID
	e.wg.Go(func() {
		defer cancel()
		e.uploadEnded(ctx, a, e.sendArchive(ctx, a, owner, u))
	})
}

// sendArchive sends an archive once.
func (e *Engine) sendArchive(ctx context.Context, a *attempt, owner uint32, u *job.Upload) error {
	if e.cfg.Uploads == nil {
		return &never{engine.Refused, fault.New(fault.Unsupported, "this server keeps no working directories").Advise("leave --upload out")}
	}
	select {
	case e.ships <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.ships }()
	f, err := e.cfg.Uploads.Open(owner, u.Digest)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		return &never{engine.Refused, err}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience+time.Duration(u.Size>>18)*time.Second) // 256 KiB in a second
	defer cancel()
	_, err = e.calls.inPod(ctx, e.calls.execTarget(a, 0), f, io.Discard, "receive")
	return err
}

// uploadEnded takes what became of it. What failed on the way is tried again, until the crew's own
// time is over.
func (e *Engine) uploadEnded(ctx context.Context, a *attempt, err error) {
	e.mu.Lock()
	s := &a.ship
	s.stop = nil
	if err == nil || a.ended {
		s.busy, s.done = false, true
		e.mu.Unlock()
		return
	}
	s.failed++
	pause := min(firstPause<<min(s.failed, 10), lastPause)
	e.mu.Unlock()
	if ctx.Err() == nil {
		var n *never
		if errors.As(err, &n) {
			_ = e.tryBegin(a, func(*attempt) error { return n }) // written down, or tried again
		}
		err = fmt.Errorf("the working directory: %w", err)
		e.cfg.Log.Warn("kubernetes", "attempt", a.ref.String(), "error", err)
		e.reportWaiting(a, err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	e.mu.Lock()
	s.busy = false
	e.mu.Unlock()
	a.wakeUp()
}
