package intake

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/spec/route"
)

// Choose puts a job into its pool and applies the site's rules to it. The pool is the one that
// the job names, else that of the site. Where either names several or any, or neither says, it is
// the one of those that can run the job where it is expected to start first, as far as is known
// now. The advice orders them (route.Advice.Rank): a pool goes before a better-ranked one only if
// the job starts earlier there by a margin (isEarlier). The job keeps the choice, with the reason.
func (s *Site) Choose(ctx context.Context, r *Request, rules *admission.Rules) error {
	names, err := s.namedPools(r.Spec.Pool)
	if err != nil {
		return err
	}
	if r.Spec.Pool == "" && s.Pool != "" {
		if names, err = s.namedPools(s.Pool); err != nil {
			return err
		}
		if len(names) == 1 {
			r.Spec.Pool, r.Spec.Chosen = s.Pool, &job.Choice{Rule: "site", Why: "jobs that name no pool go there (jobs.pool of the server's configuration)"}
		}
	}
	if len(names) != 1 {
		pools := s.candidatePools()
		if len(names) > 0 {
			pools = slices.DeleteFunc(pools, func(x route.Site) bool { return !slices.Contains(names, x.Name) })
		}
		r.Spec.Pool = ""
		if len(pools) > 1 {
			return s.choosePool(ctx, r, rules, pools)
		}
	}
	return s.applyRules(ctx, rules, r.Spec)
}

// namedPools are the pools that a text names (job.PoolNames); none: any will do.
func (s *Site) namedPools(text string) ([]string, error) {
	names := job.PoolNames(text)
	if len(names) < 2 {
		return names, nil
	}
	var known []string
	for _, v := range s.Plane.Pools() {
		if !v.Gone {
			known = append(known, v.Name)
		}
	}
	for i, name := range names {
		switch {
		case !slices.Contains(known, name):
			return nil, fault.New(fault.NotFound, "there is no pool %.70s", name).Advise("name one or more of %s, or any", strings.Join(known, ", "))
		case slices.Contains(names[:i], name):
			return nil, fault.New(fault.Invalid, "pool %s is named twice in %.200q", name, text).Advise("name each pool once")
		}
	}
	return names, nil
}

// applyRules applies what the site says about jobs to one whose pool is known; nil: nothing.
func (s *Site) applyRules(ctx context.Context, rules *admission.Rules, sp *job.Spec) error {
	if rules == nil {
		return nil
	}
	there := *sp
	if (sp.Reservation != "" || sp.Licenses != "") && s.isDelegated(sp.Pool) {
		there.Reservation = "" // it is one of that scheduler's
		if there.LicensesThere = s.countedElsewhere(rules, sp); len(there.LicensesThere) > 0 {
			there.Licenses = aggregate.Spec(&there).Licenses
		}
	}
	if err := rules.Apply(&there); err != nil {
		return err
	}
	there.Reservation, there.Licenses = sp.Reservation, sp.Licenses
	*sp = there
	return admission.Parts(sp, func() ([]fleet.Node, error) { return s.listNodes(ctx) })
}

// countedElsewhere are the licences of a job that the site does not count, where the engine of its
// pool knows those of a scheduler of its own: it refuses what that has not.
func (s *Site) countedElsewhere(rules *admission.Rules, sp *job.Spec) []string {
	if _, ok := s.Plane.AddedEngine(sp.Pool).(engine.Inventorier); !ok {
		return nil
	}
	return rules.Elsewhere(sp.Licenses)
}

// isDelegated reports whether a pool has a scheduler of its own that chooses the nodes.
func (s *Site) isDelegated(pool string) bool {
	return pool != "" && slices.ContainsFunc(s.Plane.Pools(), func(v pools.View) bool { return v.Name == pool && v.Delegated })
}

// candidatePools are those that a job may go to, the server's own first.
func (s *Site) candidatePools() (out []route.Site) {
	for _, v := range s.Plane.Pools() {
		if v.Gone {
			continue
		}
		site := route.Site{Pool: route.Pool{Name: v.Name, Engine: v.Engine}, Declared: v.Devices > 0 && v.Declared == v.Devices}
		if v.Info != nil {
			site.Able = v.Info.Abilities
		} else if v.Added == nil {
			site.Able.Gang = engine.GangStrict // the server's own starts gangs whole
		}
		switch state, why := v.State(s.now()); state {
		case api.PoolUp:
		case api.PoolBroken:
			site.Broken = "it could not be opened: " + why
		default:
			site.Silent = strings.TrimSuffix("it is "+state+": "+why, ": ")
		}
		out = append(out, site)
	}
	return out
}

// trial is what came of looking whether a pool can run a job.
type trial struct {
	spec  *job.Spec // as it would be there
	known bool      // the pool has said which nodes it has
	err   error     // why it cannot; nil: it can, as far as is known
}

// tryPool looks whether a pool can run a job. Nothing of the job is changed.
func (s *Site) tryPool(ctx context.Context, rules *admission.Rules, r *Request, pool *route.Ranked) trial {
	switch {
	case pool.RuledOut():
		return trial{err: fault.New(fault.Unsupported, "%s", pool.Verdict.Says)}
	case pool.Broken != "":
		return trial{err: fault.New(fault.Unavailable, "%s", pool.Broken)}
	}
	t := trial{spec: new(job.Spec)}
	*t.spec = *r.Spec
	t.spec.Groups, t.spec.Pool = slices.Clone(r.Spec.Groups), pool.Name
	if !s.RunsPods(pool.Name) {
		r.DropPullSecrets(t.spec)
	}
	if t.err = s.applyRules(ctx, rules, t.spec); t.err == nil {
		t.known, t.err = s.Plane.Fits(ctx, control.Submission{Spec: t.spec, Script: r.Script, Env: r.Env, Keeping: r.Secrets()})
	}
	return t
}

// nodesUnknown is why nobody knows whether a pool can run a job.
func nodesUnknown(pool *route.Ranked) error {
	why := ""
	if pool.Silent != "" {
		why = " (" + pool.Silent + ")"
	}
	return fault.New(fault.Unavailable, "it has not said yet which nodes it has%s", why)
}

// rankPools returns the advice on a request, and the pools in the order in which it prefers them.
func rankPools(r *Request, pools []route.Site) (*route.Advice, []route.Ranked) {
	facts, err := r.Facts()
	if err != nil {
		facts = &route.Facts{}
	}
	route.Asked(facts, r.Spec)
	a := route.Advise(facts)
	return a, a.Rank(pools, r.Spec.Demand().GPUs > 0)
}

// candidate is a pool that can run a job, with what is expected there.
type candidate struct {
	index int // in the list of ranked pools
	spec  *job.Spec
	start query.PoolStart
}

// choosePool puts a job into the pool where it is expected to start first, of those that can run
// it. Where none that has told its nodes can, it is one that has not yet: nobody knows that it
// cannot.
func (s *Site) choosePool(ctx context.Context, r *Request, rules *admission.Rules, pools []route.Site) error {
	advice, list := rankPools(r, pools)
	asked := r.Spec
	gpus := r.Spec.Demand().GPUs > 0
	home := slices.IndexFunc(list, func(x route.Ranked) bool { return x.Name == pools[0].Name })
	var passed []job.Passed
	var able []candidate
	best, now := -1, s.now()
	errs := make([]error, len(list))
	unknown, late := -1, trial{}
	for i := range list {
		if best >= 0 {
			if first := &list[able[0].index]; !advice.SameMachines(first, &list[i], gpus) {
				continue // what it needs is not there, however early it would start
			}
			if startsAtOnce(now, able[best].start.Start) {
				break // nobody is earlier
			}
		}
		t := s.tryPool(ctx, rules, r, &list[i])
		switch {
		case t.err == nil && t.known:
			able = append(able, candidate{i, t.spec, s.Plane.ExpectedIn(ctx, &engine.JobDraft{Spec: t.spec, Script: r.Script, Env: r.Env}, 0)})
			if k := len(able) - 1; best < 0 || isEarlier(now, able[k].start.Start, able[best].start.Start) {
				best = k
			}
			continue
		case t.err == nil && unknown < 0:
			unknown, late = i, t
		}
		errs[i] = cmp.Or(t.err, nodesUnknown(&list[i]))
		if best < 0 {
			passed = append(passed, job.Passed{Pool: list[i].Name, Why: oneLine(errs[i])})
		}
	}
	if best >= 0 {
		x := &able[best]
		r.Spec = s.chosenJob(x.spec, advice, list, x.index, home, passed)
		sayStarts(r.Spec.Chosen, able, best, now)
		r.mayMove(asked, advice, list, x.index, gpus)
		return nil
	}
	if unknown >= 0 {
		passed = slices.DeleteFunc(passed, func(x job.Passed) bool { return x.Pool == list[unknown].Name })
		r.Spec = s.chosenJob(late.spec, advice, list, unknown, -1, passed)
		return nil
	}
	no := &NoPoolError{Err: s.Locate(r, errs[home]), Pool: pools[0].Name}
	for i := range list {
		if i != home {
			no.Others = append(no.Others, api.Located{Message: "pool " + list[i].Name + ": " + oneLine(errs[i]), Remedy: fault.Remedy(errs[i])})
		}
	}
	return no
}

// A job goes to a pool that is ranked behind another one only if it starts earlier there by both
// of these: estimates are not exact.
const (
	leastEarlier   = time.Minute
	earlierPercent = 20 // of the wait in the other pool
)

// isEarlier reports whether a start is so much earlier than another one that the order of the advice
// does not count. One that nobody knows (zero) is later than any.
func isEarlier(now, start, than time.Time) bool {
	switch {
	case start.IsZero():
		return false
	case than.IsZero():
		return true
	}
	gain := than.Sub(start)
	return gain >= leastEarlier && gain >= than.Sub(now)*earlierPercent/100
}

// startsAtOnce reports whether no other start could be earlier by the margin.
func startsAtOnce(now, start time.Time) bool { return !start.IsZero() && start.Sub(now) < leastEarlier }

// sayStarts enters into a choice when each of the pools that were asked would start the job.
func sayStarts(c *job.Choice, able []candidate, best int, now time.Time) {
	if !able[best].start.Start.IsZero() {
		for i := range able {
			c.Waits = append(c.Waits, job.NewPoolWait(able[i].start.Pool, able[i].start.Start, now, able[i].start.Why))
		}
		slices.SortStableFunc(c.Waits, func(a, b job.PoolWait) int {
			return compareChosen(a.Pool == able[best].start.Pool, b.Pool == able[best].start.Pool)
		})
	}
	if best > 0 { // an earlier start outranks the advice
		c.Rule, c.Why = "earliest-start", "it is expected to start there first"
	}
	if len(c.Waits) == 1 && c.Waits[0].Seconds == 0 {
		c.Waits = nil // at once, and nobody else was asked
	}
}

// compareChosen orders what was chosen first.
func compareChosen(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// chosenJob is a job as it was tried in a pool, with the reason of the choice.
func (s *Site) chosenJob(sp *job.Spec, a *route.Advice, list []route.Ranked, i, home int, passed []job.Passed) *job.Spec {
	c := &job.Choice{Rule: "first-able-pool", Why: "the first that can run it", Passed: passed}
	switch {
	case home < 0:
		c.Rule, c.Why = "not-known-yet", "it has not said yet which nodes it has, and no other can run it"
	case i == home:
	case home > i:
		c.Rule, c.Why = a.Because(list[i], list[home], sp.Demand().GPUs > 0)
	}
	if list[i].Name == pools.DefaultPool(s.Plane.Pools()) {
		sp.Pool = "" // as it always was
	}
	sp.Chosen = c
	return sp
}

// maxReasonBytes bounds what is kept of why a pool was passed over.
const maxReasonBytes = 300

// oneLine is an error in one line.
func oneLine(err error) string {
	var refused *control.RefusedError
	if errors.As(err, &refused) {
		err = refused
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > maxReasonBytes {
		text = strings.ToValidUTF8(text[:maxReasonBytes], "") + "…"
	}
	return text
}

// Judge enters into an advice which of the pools can run the work, and which one a submission
// of it goes to. named is the pool that the submission names. Without a request (the text is no
// job) only the engines are judged.
func (s *Site) Judge(ctx context.Context, a *route.Advice, r *Request, named string) error {
	pools := s.candidatePools()
	engines := make([]route.Pool, len(pools))
	for i := range pools {
		engines[i] = pools[i].Pool
	}
	a.Judge(engines)
	rules, err := s.rulesInForce(ctx)
	if err != nil || r == nil {
		return err
	}
	gpus := r.Spec.Demand().GPUs > 0
	list := a.Rank(pools, gpus)
	among := job.PoolNames(cmp.Or(named, r.Spec.Pool, s.Pool))
	chosen, unknown, first, now := -1, -1, -1, s.now()
	var best time.Time
	a.Here = nil
	for i := range list {
		v := &list[i].Verdict
		isNamed := len(among) == 0 || slices.Contains(among, v.Pool)
		t := s.tryPool(ctx, rules, r, &list[i])
		var start query.PoolStart
		if t.err == nil && t.known {
			start = s.Plane.ExpectedIn(ctx, &engine.JobDraft{Spec: t.spec, Script: r.Script, Env: r.Env}, 0)
			v.Starts = startsText(now, start)
		}
		switch {
		case t.err != nil:
			v.Cannot = oneLine(t.err)
		case !t.known:
			v.Says += "; " + oneLine(nodesUnknown(&list[i]))
			if unknown < 0 && isNamed {
				unknown = i
			}
		case !isNamed:
		case chosen < 0:
			chosen, first, best = i, i, start.Start
		case a.SameMachines(&list[first], &list[i], gpus) && isEarlier(now, start.Start, best):
			chosen, best = i, start.Start
		}
		a.Here = append(a.Here, *v)
	}
	if chosen < 0 {
		chosen = unknown
	}
	if len(among) == 1 {
		chosen = slices.IndexFunc(list, func(x route.Ranked) bool { return x.Name == among[0] })
	}
	for i := range list {
		a.Here[i].Chosen = i == chosen
	}
	return nil
}

// startsText says when a job would start in a pool; empty: nobody knows.
func startsText(now time.Time, start query.PoolStart) string {
	if start.Start.IsZero() {
		return ""
	}
	w := job.NewPoolWait(start.Pool, start.Start, now, "")
	return w.Text()
}

// NoPoolError is a job that no pool can run.
type NoPoolError struct {
	Err    error         // why the server's own pool cannot
	Pool   string        // the server's own
	Others []api.Located // why each of the others cannot
}

// Unwrap is why the server's own pool cannot run the job.
func (e *NoPoolError) Unwrap() error { return e.Err }

// Error names all pools.
func (e *NoPoolError) Error() string {
	text := e.Err.Error()
	for _, o := range e.Others {
		text += "; " + o.Message
	}
	return text
}
