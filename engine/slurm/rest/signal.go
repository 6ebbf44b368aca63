package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coxswain-sched/coxswain/engine/slurm/site"
	"github.com/coxswain-sched/coxswain/fault"
)

// flags are slurmrestd's words for who gets a signal.
var flags = map[site.Scope]string{site.ToBatch: "BATCH_JOB", site.ToAll: "FULL_JOB"}

// stepsAlone has SIGKILL reach the steps without ending the job.
const stepsAlone = "FULL_STEPS_ONLY"

// End is site.Site's.
func (s *Site) End(ctx context.Context, id uint32) error { return s.signal(ctx, id, nil) }

// Kill is site.Site's. A SIGKILL for the whole job is a cancellation, in which processes get
// SIGTERM and KillWait.
func (s *Site) Kill(ctx context.Context, id uint32) error {
	if err := s.scoped(ctx, "kill a job at once"); err != nil {
		if s.cfg.Commands != nil && fault.KindOf(err) == fault.Unsupported {
			return s.cfg.Commands.Kill(ctx, id)
		}
		return err
	}
	err := s.signal(ctx, id, url.Values{"signal": {"KILL"}, "flags": {stepsAlone}})
	if err != nil && fault.KindOf(err) == fault.Unavailable && !is(err, 2020) { // 2020: it has no steps
		return err
	}
	return s.signal(ctx, id, url.Values{"signal": {"KILL"}, "flags": {flags[site.ToBatch]}})
}

// Signal is site.Site's.
func (s *Site) Signal(ctx context.Context, id uint32, signal int, to site.Scope) error {
	q := url.Values{"signal": {strconv.Itoa(signal)}}
	v, err := s.speaks(ctx)
	switch {
	case err != nil:
		return err
	case v != old && flags[to] != "":
		q.Set("flags", flags[to])
	case v == old && to != site.ToAll: // its signals reach everybody
		if s.cfg.Commands != nil {
			return s.cfg.Commands.Signal(ctx, id, signal, to)
		}
		return s.scoped(ctx, "signal the script or the steps of a job alone")
	}
	return s.signal(ctx, id, q)
}

// scoped is the error of a version that cannot choose who gets a signal.
func (s *Site) scoped(ctx context.Context, what string) error {
	v, err := s.speaks(ctx)
	if err != nil || v != old {
		return err
	}
	return fault.New(fault.Unsupported, "slurmrestd %s cannot %s", v, what).Advise("give the pool Slurm's commands too (scancel)")
}

// signal deletes a job, or sends it a signal. One that has ended, or is not known, is no error.
func (s *Site) signal(ctx context.Context, id uint32, q url.Values) error {
	var a said
	err := s.call(ctx, &request{method: http.MethodDelete, base: "slurm", path: fmt.Sprintf("/job/%d", id), query: q}, &a)
	if err != nil && (fault.KindOf(err) == fault.NotFound || is(err, errAlreadyDone) || is(err, errFinished)) {
		return nil
	}
	return err
}

// is reports whether an error has a number of Slurm's.
func is(err error, errno int) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Errno == errno
}

// Suspend is site.Site's: no version of slurmrestd suspends jobs.
func (s *Site) Suspend(ctx context.Context, id uint32, held bool) error {
	if s.cfg.Commands != nil {
		return s.cfg.Commands.Suspend(ctx, id, held)
	}
	return fault.New(fault.Unsupported, "slurmrestd cannot suspend jobs").Advise("give the pool Slurm's commands too (scontrol suspend)")
}
