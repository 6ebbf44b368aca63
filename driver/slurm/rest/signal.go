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
func (s *Site) End(ctx context.Context, id uint32) error { return s.deleteOrSignal(ctx, id, nil) }

// Kill is site.Site's. A SIGKILL for the whole job is a cancellation, in which processes get
// SIGTERM and KillWait; one for the steps and one for the script is what it says.
func (s *Site) Kill(ctx context.Context, id uint32) error {
	switch v, err := s.slurmVersion(ctx); {
	case err != nil:
		return err
	case v == old && s.cfg.Commands != nil:
		return s.cfg.Commands.Kill(ctx, id)
	case v == old:
		return unsupportedCall("slurmrestd "+v+" cannot kill a job at once", "scancel")
	}
	err := s.deleteOrSignal(ctx, id, url.Values{"signal": {"KILL"}, "flags": {"FULL_STEPS_ONLY"}})
	if err != nil && !hasErrno(err, errNotNow) { // it has no steps
		return err
	}
	return s.deleteOrSignal(ctx, id, url.Values{"signal": {"KILL"}, "flags": {flags[site.ToBatch]}})
}

// Signal is site.Site's.
func (s *Site) Signal(ctx context.Context, id uint32, signal int, to site.Scope) error {
	q := url.Values{"signal": {strconv.Itoa(signal)}}
	switch v, err := s.slurmVersion(ctx); {
	case err != nil:
		return err
	case v != old && flags[to] != "":
		q.Set("flags", flags[to])
	case v == old && to != site.ToAll && s.cfg.Commands != nil: // its signals reach everybody
		return s.cfg.Commands.Signal(ctx, id, signal, to)
	case v == old && to != site.ToAll:
		return unsupportedCall("slurmrestd "+v+" cannot signal the script or the steps of a job alone", "scancel")
	}
	return s.deleteOrSignal(ctx, id, q)
}

// unsupportedCall is the error of what a version has no call for.
func unsupportedCall(what, command string) error {
	return fault.New(fault.Unsupported, "%s", what).Advise("give the pool Slurm's commands too (%s)", command)
}

// deleteOrSignal deletes a job, or sends it a signal. One that has ended, or is not known, is no
// error. v0.0.40 and v0.0.41 say nothing of a refusal.
func (s *Site) deleteOrSignal(ctx context.Context, id uint32, q url.Values) error {
	err := s.changeAsOwner(ctx, id, &request{method: http.MethodDelete, query: q})
	if err != nil && (fault.KindOf(err) == fault.NotFound || hasErrno(err, errAlreadyDone) || hasErrno(err, errFinished)) {
		return nil
	}
	return err
}

// changeAsOwner makes a request about a job; if it is somebody else's, as its owner.
func (s *Site) changeAsOwner(ctx context.Context, id uint32, r *request) error {
	r.base, r.path = "slurm", fmt.Sprintf("/job/%d", id)
	r.user, _ = ctx.Value(acting{}).(string)
	var a response
	err := s.callAPI(ctx, r, &a)
	if r.user != "" && (fault.KindOf(err) == fault.Permission || mayBlameToken(err)) { // perhaps the site's own user may
		r.user, a = "", response{}
		return s.callAPI(ctx, r, &a)
	}
	if fault.KindOf(err) != fault.Permission || s.keep == nil {
		return err
	}
	all, unknown := s.readOne(ctx, id)
	if unknown != nil || len(all) == 0 || all[0].User == s.cfg.User {
		return err
	}
	again := *r
	again.user = all[0].User
	a = response{}
	if retry := s.callAPI(ctx, &again, &a); fault.KindOf(retry) != fault.Unavailable || !mayBlameToken(retry) { // else there is no token for them
		return retry
	}
	return err
}

// hasErrno reports whether an error has a number of Slurm's.
func hasErrno(err error, errno int) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Errno == errno
}

// Suspend is site.Site's: no version of slurmrestd suspends jobs.
func (s *Site) Suspend(ctx context.Context, id uint32, held bool) error {
	if s.cfg.Commands != nil {
		return s.cfg.Commands.Suspend(ctx, id, held)
	}
	return unsupportedCall("slurmrestd cannot suspend jobs", "scontrol suspend")
}

// Suspends is site.Limited's.
func (s *Site) Suspends() bool { return s.cfg.Commands != nil }

// Update is site.Site's.
func (s *Site) Update(ctx context.Context, id uint32, c site.Change) error {
	v, err := s.slurmVersion(ctx)
	if err != nil {
		return err
	}
	if v == old && (c.Hold || c.Release) {
		if s.cfg.Commands != nil {
			return s.cfg.Commands.Update(ctx, id, c)
		}
		return unsupportedCall("slurmrestd "+v+" cannot let a held job go", "scontrol release") // so it is not held either
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
	b, err := encodeFields(d, 0)
	if err != nil {
		return err
	}
	if c.Partition != "" { // a user who may not has nobody else do it
		user, _ := ctx.Value(acting{}).(string)
		var a response
		return s.callAPI(ctx, &request{method: http.MethodPost, base: "slurm", path: fmt.Sprintf("/job/%d", id), user: user, body: b}, &a)
	}
	return s.changeAsOwner(ctx, id, &request{method: http.MethodPost, body: b})
}
