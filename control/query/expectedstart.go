package query

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/class"
)

// PoolStart is when a job is expected to start in a pool.
type PoolStart struct {
	Pool  string
	Start time.Time // zero: nobody knows, and Why says why
	Why   string
	By    string // whose estimate it is: "plan", "engine" or "pace"; empty: nobody's
	Lacks string // why the pool's own scheduler did not say; empty: it did, or there is none
}

// Where estimates of starts come from.
const (
	ByPlan   = "plan"   // what runs and waits here
	ByEngine = "engine" // the pool's own scheduler
	ByPace   = "pace"   // how long the last jobs waited there
)

// Bounds of estimates.
const (
	planShare   = 10                     // a plan's estimate is used for so many times as long as it took
	planKept    = 5 * time.Second        // … at most
	engineKept  = 30 * time.Second       // an answer of an engine is used for so long
	engineAwait = 300 * time.Millisecond // the first who asks for one waits so long at most, others do not wait
	engineGive  = 20 * time.Second       // and none is waited for longer than that
	startsKept  = 4096                   // estimates
)

// poolStarts has estimates for kinds of jobs, so that many alike cost little. It is safe for
// concurrent use.
type poolStarts struct {
	mu      sync.Mutex
	plans   map[string]plannedStart
	engines map[string]*engineStart
}

type plannedStart struct {
	at, until time.Time // at zero: nobody knows; it is used until then
}

// engineStart is a question to an engine, and its last answer.
type engineStart struct {
	asked time.Time     // of the last answer
	start time.Time     // zero: it does not know …
	lacks string        // … because
	done  chan struct{} // closed with the answer; nil: nobody asks
}

// ExpectedIn says when a job is expected to start in the pool that it names, if nothing but
// time has to pass. id is its number if it is in the queue of that pool; 0: it would be submitted
// now. It waits a moment at most for the engine.
func (rd *Reader) ExpectedIn(ctx context.Context, d *engine.JobDraft, id job.ID) PoolStart {
	now := rd.of.Clock.Now()
	p := rd.of.Pools.ByName(rd.of.Pools.NameOf(d.Spec))
	if p == nil {
		return PoolStart{Pool: d.Spec.Pool, Why: "there is no such pool"}
	}
	out := PoolStart{Pool: p.Name}
	if status, why := rd.poolState(p, now); status != api.PoolUp {
		out.Why = "it is " + status
		if why != "" {
			out.Why += ": " + why
		}
		return out
	}
	key := startKey(p.Name, d.Spec)
	if id != 0 {
		key += "#" + strconv.FormatUint(uint64(id), 10)
	}
	out.Start, out.By = rd.plannedIn(key, p, d.Spec, id, now), ByPlan
	if out.Start.IsZero() {
		return PoolStart{Pool: p.Name, Why: "when it has room cannot be told"}
	}
	if !p.Delegated {
		return out
	}
	at, lacks := rd.engineStart(ctx, key, p, d, now)
	if lacks == "" {
		if at.After(out.Start) {
			out.Start, out.By = at, ByEngine
		}
		return out
	}
	out.Lacks = lacks
	rd.of.State.RLock()
	wait, ok := rd.of.State.HandedWait(p.Name, now)
	rd.of.State.RUnlock()
	if ok && wait > 0 {
		out.Start, out.By = out.Start.Add(wait), ByPace
	}
	return out
}

// ExpectedAfter is when a job is expected to start that was handed over to the scheduler of a pool at
// a time and waits there: as long after it as the last ones waited; one that has waited longer, as
// long again. ok is false if nobody knows.
func (rd *Reader) ExpectedAfter(pool string, handed time.Time) (start time.Time, ok bool) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	return rd.afterHandOver(pool, handed)
}

// afterHandOver is ExpectedAfter. The caller holds the lock.
func (rd *Reader) afterHandOver(pool string, handed time.Time) (start time.Time, ok bool) {
	now := rd.of.Clock.Now()
	wait, ok := rd.of.State.HandedWait(pool, now)
	if !ok {
		return time.Time{}, false
	}
	if start = handed.Add(wait); start.Sub(now) < now.Sub(handed)/2 {
		start = now.Add(now.Sub(handed))
	}
	return start, true
}

// startHere is when a job is expected to start that waits for its pool's own scheduler. The caller holds the lock.
func (rd *Reader) startHere(e *state.JobRecord, handed time.Time) PoolStart {
	out := PoolStart{Pool: e.Last.Pool, Start: e.Report().ExpectedStart, By: ByEngine}
	if !out.Start.IsZero() {
		return out
	}
	out.By, out.Lacks = "", "it does not say when it starts it"
	if start, ok := rd.afterHandOver(out.Pool, handed); ok {
		out.Start, out.By = start, ByPace
	}
	return out
}

// ForgetStarts has the next estimates made anew.
func (rd *Reader) ForgetStarts() {
	rd.starts.mu.Lock()
	defer rd.starts.mu.Unlock()
	clear(rd.starts.plans)
}

// poolState is the state of a pool, and why it is not up.
func (rd *Reader) poolState(p *pools.Member, now time.Time) (string, string) {
	v := pools.View{Pool: p.Pool.Pool, Pulses: p.HasHeartbeat()}
	p.Status.FillView(&v)
	if why := p.OpenFailure(); why != nil {
		v.Broken = why
	}
	return v.State(now)
}

// startKey is equal for jobs of which the same is expected.
func startKey(pool string, s *job.Spec) string {
	return pool + "\x00" + s.Account + "\x00" + s.QOS + "\x00" + s.Owner.User + "\x00" + strconv.FormatInt(s.Priority-s.Nice, 10) + "\x00" +
		s.TimeLimit.String() + "\x00" + class.CompileAfter(s, job.DefaultSwitchWait, 0).Key
}

// plannedIn is the core's estimate; zero: it has none. It is made anew so rarely that it
// takes a small part of the time.
func (rd *Reader) plannedIn(key string, p *pools.Member, spec *job.Spec, id job.ID, now time.Time) time.Time {
	c := &rd.starts
	c.mu.Lock()
	if x, ok := c.plans[key]; ok && now.Before(x.until) {
		c.mu.Unlock()
		if !x.at.IsZero() && x.at.Before(now) {
			return now
		}
		return x.at
	}
	c.mu.Unlock()
	named := *spec
	named.Pool = p.Name
	begun := time.Now()
	rd.of.State.Lock() // the core remembers what it finds out
	at, ok := rd.of.Core.ExpectedStart(sched.Instant(now.UnixNano()), rd.of.State.AggregateSpec(&named, p.Name), spec.Priority-spec.Nice, id)
	rd.of.State.Unlock()
	x := plannedStart{until: now.Add(min(planShare*time.Since(begun), planKept))}
	if ok {
		x.at = state.FromNanos(int64(at))
		if spec.Begin.After(x.at) {
			x.at = spec.Begin
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plans == nil || len(c.plans) >= startsKept {
		c.plans = map[string]plannedStart{}
	}
	c.plans[key] = x
	return x.at
}

// engineStart is when the scheduler of a delegated pool would start a job; else lacks says why it
// does not say so now. Its answer is asked for once at a time for each kind of job, and kept.
func (rd *Reader) engineStart(ctx context.Context, key string, p *pools.Member, d *engine.JobDraft, now time.Time) (at time.Time, lacks string) {
	k, ok := p.Engine.(engine.StartEstimator)
	if !ok {
		return time.Time{}, "it cannot be asked"
	}
	c := &rd.starts
	c.mu.Lock()
	x := c.engines[key]
	switch {
	case x == nil:
		if c.engines == nil || len(c.engines) >= startsKept {
			c.engines = map[string]*engineStart{}
		}
		x = &engineStart{}
		c.engines[key] = x
	case x.done == nil && now.Sub(x.asked) < engineKept:
		defer c.mu.Unlock()
		return x.lastAnswer()
	}
	if x.done != nil || !x.asked.IsZero() { // nobody but the first one waits
		defer c.mu.Unlock()
		if x.done == nil {
			rd.beginAsk(k, p.Name, d, x)
		}
		return x.lastAnswer()
	}
	done := rd.beginAsk(k, p.Name, d, x)
	c.mu.Unlock()
	timer := time.NewTimer(engineAwait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return x.lastAnswer()
}

// lastAnswer is what the engine said last. The caller holds the lock.
func (x *engineStart) lastAnswer() (at time.Time, lacks string) {
	switch {
	case !x.start.IsZero():
		return x.start, ""
	case x.lacks != "":
		return x.start, x.lacks
	case x.asked.IsZero():
		return x.start, "it has not answered yet"
	}
	return x.start, "it does not know"
}

// beginAsk begins a question to an engine. The caller holds the lock.
func (rd *Reader) beginAsk(k engine.StartEstimator, pool string, d *engine.JobDraft, x *engineStart) <-chan struct{} {
	x.done = make(chan struct{})
	draft := *d
	draft.Spec = new(job.Spec)
	*draft.Spec = *d.Spec
	go rd.askStart(k, pool, &draft, x)
	return x.done
}

// askStart asks an engine and keeps its answer.
func (rd *Reader) askStart(k engine.StartEstimator, pool string, d *engine.JobDraft, x *engineStart) {
	ctx, cancel := context.WithTimeout(context.Background(), engineGive)
	defer cancel()
	var at time.Time
	var err error
	if d.Avoid, err = rd.NotOwned(pool); err == nil {
		at, err = k.EstimateStart(ctx, d)
	}
	rd.starts.mu.Lock()
	defer rd.starts.mu.Unlock()
	x.start, x.lacks, x.asked = at, "", rd.of.Clock.Now()
	if err != nil {
		x.start, x.lacks = time.Time{}, oneLine(err)
	}
	close(x.done)
	x.done = nil
}

// mostSaid bounds what is kept of why a scheduler does not answer, in bytes.
const mostSaid = 200

// oneLine is an error in one line.
func oneLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > mostSaid {
		text = strings.ToValidUTF8(text[:mostSaid], "") + "…"
	}
	return text
}
