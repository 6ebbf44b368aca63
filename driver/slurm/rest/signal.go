package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// flags are slurmrestd's words for who gets a signal.
var flags = map[site.Scope]string{site.ToBatch: "BATCH_JOB", site.ToAll: "FULL_JOB"}

// End is site.Site's.
func (s *Site) End(ctx context.Context, id uint32) error { return s.signal(ctx, id, nil) }

// Kill is site.Site's. A SIGKILL for the whole job is a cancellation, in which processes get
// SIGTERM and KillWait; one for the steps and one for the script is what it says.
func (s *Site) Kill(ctx context.Context, id uint32) error {
	switch v, err := s.speaks(ctx); {
	case err != nil:
		return err
	case v == old && s.cfg.Commands != nil:
		return s.cfg.Commands.Kill(ctx, id)
	case v == old:
		return cannot("slurmrestd "+v+" cannot kill a job at once", "scancel")
	}
	err := s.signal(ctx, id, url.Values{"signal": {"KILL"}, "flags": {"FULL_STEPS_ONLY"}})
	if err != nil && !is(err, errNotNow) { // it has no steps
		return err
	}
	return s.signal(ctx, id, url.Values{"signal": {"KILL"}, "flags": {flags[site.ToBatch]}})
}

// Signal is site.Site's.
func (s *Site) Signal(ctx context.Context, id uint32, signal int, to site.Scope) error {
	q := url.Values{"signal": {strconv.Itoa(signal)}}
	switch v, err := s.speaks(ctx); {
	case err != nil:
		return err
	case v != old && flags[to] != "":
		q.Set("flags", flags[to])
	case v == old && to != site.ToAll && s.cfg.Commands != nil: // its signals reach everybody
		return s.cfg.Commands.Signal(ctx, id, signal, to)
	case v == old && to != site.ToAll:
		return cannot("slurmrestd "+v+" cannot signal the script or the steps of a job alone", "scancel")
	}
	return s.signal(ctx, id, q)
}

// cannot is the error of what a version has no call for.
func cannot(what, command string) error {
	return fault.New(fault.Unsupported, "%s", what).Advise("give the pool Slurm's commands too (%s)", command)
}

// signal deletes a job, or sends it a signal. One that has ended, or is not known, is no
// error. v0.0.40 and v0.0.41 say nothing of a refusal.
func (s *Site) signal(ctx context.Context, id uint32, q url.Values) error {
	err := s.change(ctx, id, &request{method: http.MethodDelete, query: q})
	if err != nil && (fault.KindOf(err) == fault.NotFound || is(err, errAlreadyDone) || is(err, errFinished)) {
		return nil
	}
	return err
}

// change makes a request about a job; if it is somebody else's, as its owner.
func (s *Site) change(ctx context.Context, id uint32, r *request) error {
	r.base, r.path = "slurm", fmt.Sprintf("/job/%d", id)
	r.user, _ = ctx.Value(acting{}).(string)
	var a said
	err := s.call(ctx, r, &a)
	if r.user != "" && (fault.KindOf(err) == fault.Permission || suspect(err)) { // perhaps the site's own user may
		r.user, a = "", said{}
		return s.call(ctx, r, &a)
	}
	if fault.KindOf(err) != fault.Permission || s.keep == nil {
		return err
	}
	all, unknown := s.one(ctx, id)
	if unknown != nil || len(all) == 0 || all[0].User == s.cfg.User {
		return err
	}
	again := *r
	again.user = all[0].User
	a = said{}
	if retry := s.call(ctx, &again, &a); fault.KindOf(retry) != fault.Unavailable || !suspect(retry) { // else there is no token for them
		return retry
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
	return cannot("slurmrestd cannot suspend jobs", "scontrol suspend")
}

// Suspends is site.Limited's.
func (s *Site) Suspends() bool { return s.cfg.Commands != nil }

// Update is site.Site's.
func (s *Site) Update(ctx context.Context, id uint32, c site.Change) error {
	v, err := s.speaks(ctx)
	if err != nil {
		return err
	}
	if v == old && (c.Hold || c.Release) {
		if s.cfg.Commands != nil {
			return s.cfg.Commands.Update(ctx, id, c)
		}
		return cannot("slurmrestd "+v+" cannot let a held job go", "scontrol release") // so it is not held either
	}
	d := description{}
	if c.Comment != nil {
		d["comment"] = *c.Comment
	}
	if c.Hold != c.Release {
		d["hold"] = c.Hold
	}
	if c.Partition != "" {
		d["partition"] = c.Partition
	}
	if len(d) == 0 {
		return nil
	}
	b, err := encode(d, 0)
	if err != nil {
		return err
	}
	if c.Partition != "" { // a user who may not has nobody else do it
		user, _ := ctx.Value(acting{}).(string)
		var a said
		return s.call(ctx, &request{method: http.MethodPost, base: "slurm", path: fmt.Sprintf("/job/%d", id), user: user, body: b}, &a)
	}
	return s.change(ctx, id, &request{method: http.MethodPost, body: b})
}
