// Package poolmove moves jobs that wait to pools that are expected to start them clearly earlier,
// or away from pools that do not answer.
//
// The model. A job that named no pool, or several, has a list of pools to which it may move
// (job.Choice.Among). At intervals each such job that waits is compared: when it is expected to
// start in its pool, and when in the others that can run it. Decide is the whole of the decision.
// A move is one record of the control plane; the job keeps its place in the queue. A job that was
// handed over to another scheduler is taken back only by an engine that does so if it has
// certainly not begun (engine.Withdrawer): the move is noted first, and made when its end there is
// proved. It stays while that engine does not answer. The tasks of an array move together, as long as
// none was started or handed over.
//
// It never moves a job that has begun once, is held, here or in the scheduler that has it, or waits for a time or another job, nor more than
// mostMoved jobs in one round. It keeps nothing: what a job did is in the job.
package poolmove

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Plane is what moves need of a control plane; *control.Control is one.
type Plane interface {
	Scan(query.Filter, func(*state.View) bool)
	Tasks(job.ID) []job.ID
	Pools() []pools.View
	Blob(ctx context.Context, hash string) ([]byte, error)
	ExpectedIn(context.Context, *engine.JobDraft, job.ID) query.PoolStart
	ExpectedAfter(pool string, handed time.Time) (time.Time, bool)
	Change(ctx context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error)
	Withdraw(context.Context, job.ID) error
	Settle(context.Context) error
}

// Config are the parts of a mover.
type Config struct {
	Plane Plane
	// Places are the other pools in which a waiting job could run.
	Places func(ctx context.Context, s *job.Spec, script []byte, env []string) ([]intake.Place, error)
	Now    func() time.Time // nil: time.Now
	Log    *slog.Logger     // nil: none
}

// Mover moves jobs. One goroutine at a time may use it.
type Mover struct {
	cfg    Config
	silent map[string]time.Time // pools that do not answer, and since when
	after  job.ID               // the next round begins behind it
}

// Bounds of a round.
const (
	pauseBetween = 30 * time.Second
	mostLooked   = 200 // jobs, arrays counted as one
	mostMoved    = 100
	callTime     = 10 * time.Second // of a call to an engine
)

// New makes a mover.
func New(cfg Config) *Mover {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Mover{cfg: cfg, silent: map[string]time.Time{}}
}

// Run makes a round every 30 s until ctx ends.
func (m *Mover) Run(ctx context.Context) {
	timer := time.NewTimer(pauseBetween)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if _, err := m.Round(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("waiting jobs cannot be compared with other pools; trying again", "error", err)
		}
		timer.Reset(pauseBetween)
	}
}

// unit is a job, or an array, that waits.
type unit struct {
	ids    []job.ID
	spec   job.Spec
	pool   string
	handed time.Time // when it was handed over to another scheduler; zero: it was not
	said   time.Time // when that expects to start it; zero: it does not say
	since  time.Time // when it could first have been considered
	moves  state.PoolMoves
}

// Round compares waiting jobs with other pools once, and returns how many it moved. One that cannot be compared
// keeps no other from it; the first error is returned.
func (m *Mover) Round(ctx context.Context) (moved int, err error) {
	now := m.cfg.Now()
	home := m.lookAtPools(now)
	if len(m.cfg.Plane.Pools()) < 2 {
		return 0, nil
	}
	units, again := m.waitingUnits(home)
	for _, id := range again {
		m.withdraw(ctx, id)
	}
	for i := range units {
		if i >= mostLooked || moved >= mostMoved {
			m.after = units[i].ids[0] - 1
			return moved, err
		}
		done, failed := m.moveUnit(ctx, &units[i], home)
		switch {
		case ctx.Err() != nil:
			return moved, failed
		case failed != nil && err == nil:
			err = fault.New(fault.KindOf(failed), "job %s: %w", units[i].ids[0], failed)
		}
		if done {
			moved++
		}
	}
	m.after = 0
	return moved, err
}

// lookAtPools notes which pools do not answer, and returns the server's own.
func (m *Mover) lookAtPools(now time.Time) (home string) {
	views := m.cfg.Plane.Pools()
	silent := map[string]time.Time{}
	for i := range views {
		if status, _ := views[i].State(now); status != api.PoolUp {
			since := now
			if t, ok := m.silent[views[i].Name]; ok {
				since = t
			}
			silent[views[i].Name] = since
		}
	}
	m.silent = silent
	return pools.DefaultPool(views)
}

// waitingUnits lists what may move, and jobs that are still to be taken back for a move.
func (m *Mover) waitingUnits(home string) (units []unit, again []job.ID) {
	arrays := map[job.ID]int{} // index in units, by first task; -1: it stays
	m.cfg.Plane.Scan(query.Filter{Live: true}, func(v *state.View) bool {
		s := v.Job.Spec
		if v.PoolMoves.Under != nil {
			again = append(again, v.Job.ID)
			return true
		}
		if s.Chosen == nil || len(s.Chosen.Among) == 0 {
			return true
		}
		first := v.Job.ID
		if v.Job.Array != nil {
			first = v.Job.Array.Job
		}
		i, known := arrays[first]
		handed := v.Ref.Attempt > 0
		if v.Job.State != job.Pending || v.Job.Flags&(job.Held|job.HeldAdmin|job.HeldFailed) != 0 || len(v.Past) > 0 || v.Eligible.IsZero() && !handed || v.Ending || v.Report.Held || handed && v.Job.Array != nil {
			arrays[first] = -1
			return true
		}
		if known {
			if i >= 0 {
				units[i].ids = append(units[i].ids, v.Job.ID)
			}
			return true
		}
		arrays[first] = len(units)
		u := unit{ids: []job.ID{v.Job.ID}, spec: *s, pool: cmp.Or(s.Pool, home), since: v.Eligible, moves: v.PoolMoves}
		if handed {
			u.handed, u.said = time.Unix(v.Why.Since, 0), v.Report.ExpectedStart
		}
		units = append(units, u)
		return true
	})
	kept := units[:0]
	for i := range units {
		u := &units[i]
		if a := u.spec.Array; a != nil && (arrays[u.ids[0]] != i || len(u.ids) != len(a.Indices)) {
			continue // a part of it is elsewhere
		}
		if u.ids[0] > m.after {
			kept = append(kept, *u)
		}
	}
	return kept, again
}

// moveUnit moves a job, if that is worth it.
func (m *Mover) moveUnit(ctx context.Context, u *unit, home string) (bool, error) {
	now := m.cfg.Now()
	w := Waiting{Pool: u.pool, Moves: u.moves.Count, Moved: state.FromNanos(u.moves.At)}
	if to, _ := Decide(now, &w, nil); to < 0 && (w.Moves >= MostMoves || !w.Moved.IsZero() && now.Sub(w.Moved) < Rest) {
		return false, nil
	}
	since, silent := m.silent[u.pool]
	if silent && !u.handed.IsZero() {
		return false, nil // nobody knows that it has not begun
	}
	script, env, err := m.readBlobs(ctx, &u.spec)
	if err != nil {
		return false, err
	}
	w.Silent, w.Unknown = silent, u.since
	switch {
	case silent:
		w.Unknown = since
	case u.handed.IsZero():
		w.Start = m.cfg.Plane.ExpectedIn(ctx, &engine.JobDraft{Spec: &u.spec, Script: script, Env: env}, u.ids[0]).Start
	case !u.said.IsZero():
		w.Start = u.said
	default:
		w.Start, _ = m.cfg.Plane.ExpectedAfter(u.pool, u.handed)
		w.Unknown = u.handed
	}
	if !w.Start.IsZero() && w.Start.Sub(now) < LeastGain {
		return false, nil
	}
	places, err := m.cfg.Places(ctx, &u.spec, script, env)
	if err != nil || len(places) == 0 {
		return false, err
	}
	starts := make([]query.PoolStart, len(places))
	for i := range places {
		starts[i] = places[i].Start
	}
	to, why := Decide(now, &w, starts)
	if to < 0 {
		return false, nil
	}
	as := *places[to].Spec
	choice := *u.spec.Chosen
	choice.Rule, choice.Why, choice.Passed = "moved", why, nil
	choice.Waits = []job.PoolWait{job.NewPoolWait(cmp.Or(as.Pool, home), starts[to].Start, now, ""), job.NewPoolWait(u.pool, w.Start, now, "")}
	as.Chosen = &choice
	target := cmp.Or(as.Pool, home)
	errs, err := m.cfg.Plane.Change(ctx, job.Actor{}, u.ids, control.PoolMove{From: u.pool, To: target, As: &as})
	if err != nil {
		return false, err
	}
	for _, e := range errs {
		if e != nil {
			m.cfg.Log.Debug("a waiting job stays in its pool", "job", u.ids[0], "pool", u.pool, "to", target, "error", e)
			return false, nil
		}
	}
	m.cfg.Log.Info("a waiting job moves to another pool", "job", u.ids[0], "tasks", len(u.ids), "pool", u.pool, "to", target, "why", why)
	if !u.handed.IsZero() {
		m.withdraw(ctx, u.ids[0])
	}
	return true, m.cfg.Plane.Settle(ctx)
}

// withdraw takes back a job from another scheduler. What cannot be done now is tried again in the
// next round.
func (m *Mover) withdraw(ctx context.Context, id job.ID) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := m.cfg.Plane.Withdraw(ctx, id); err != nil && fault.KindOf(err) != fault.Conflict {
		m.cfg.Log.Debug("a job cannot be taken back yet", "job", id, "error", err)
	}
}

// readBlobs reads the script and the environment of a job.
func (m *Mover) readBlobs(ctx context.Context, s *job.Spec) (script []byte, env []string, err error) {
	if s.Program.ScriptHash != "" {
		if script, err = m.cfg.Plane.Blob(ctx, s.Program.ScriptHash); err != nil {
			return nil, nil, err
		}
	}
	if s.Env.Hash != "" {
		b, err := m.cfg.Plane.Blob(ctx, s.Env.Hash)
		if err != nil {
			return nil, nil, err
		}
		env = control.SplitEnv(bytes.Clone(b))
	}
	return script, env, nil
}
