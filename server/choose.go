package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/fold"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/route"
)

// This file is about which pool a job goes to that names none, where there are several. The
// advice orders them (advise.Rank); the first that can run the job, as far as is known now, is
// it. The job keeps it, with the reason: nothing moves it later.

// settle puts a job into its pool and applies the site's rules to it.
func (s *Server) settle(ctx context.Context, req *submission, p *parsed, rules *admission.Rules) error {
	if p.spec.Pool == "" && s.cfg.Pool != "" {
		p.spec.Pool, p.spec.Chosen = s.cfg.Pool, &job.Choice{Rule: "site", Why: "jobs that name no pool go there (jobs.pool of the server's configuration)"}
	}
	if p.spec.Pool == "" {
		if sites := s.sites(); len(sites) > 1 {
			return s.choose(ctx, req, p, rules, sites)
		}
	}
	return s.bind(ctx, rules, p.spec)
}

// bind applies what the site says of jobs to one whose pool is settled.
func (s *Server) bind(ctx context.Context, rules *admission.Rules, sp *job.Spec) error {
	there := *sp
	if (sp.Reservation != "" || sp.Licenses != "") && s.delegates(sp.Pool) {
		there.Reservation = "" // it is one of that scheduler's
		if there.LicensesThere = s.countedThere(rules, sp); len(there.LicensesThere) > 0 {
			there.Licenses = fold.Spec(&there).Licenses
		}
	}
	if err := rules.Apply(&there); err != nil {
		return err
	}
	there.Reservation, there.Licenses = sp.Reservation, sp.Licenses
	*sp = there
	return admission.Parts(sp, func() ([]fleet.Node, error) { return s.nodesNow(ctx) })
}

// countedThere are the licences of a job that the site does not count, where the engine of its
// pool knows those of a scheduler of its own: it refuses what that has not.
func (s *Server) countedThere(rules *admission.Rules, sp *job.Spec) []string {
	if _, ok := s.cfg.Plane.AddedEngine(sp.Pool).(engine.Stocktaker); !ok {
		return nil
	}
	return rules.Elsewhere(sp.Licenses)
}

// delegates reports whether a pool has a scheduler of its own that chooses the nodes.
func (s *Server) delegates(pool string) bool {
	return pool != "" && slices.ContainsFunc(s.cfg.Plane.Pools(), func(v control.PoolView) bool { return v.Name == pool && v.Delegated })
}

// sites are the pools that a job may go to, the server's own first.
func (s *Server) sites() (out []route.Site) {
	for _, v := range s.cfg.Plane.Pools() {
		if v.Gone {
			continue
		}
		site := route.Site{Pool: route.Pool{Name: v.Name, Engine: v.Engine}, Declared: v.Devices > 0 && v.Declared == v.Devices}
		if v.Info != nil {
			site.Able = v.Info.Abilities
		} else if v.Added == nil {
			site.Able.Gang = engine.GangStrict // the server's own starts gangs whole
		}
		switch state, why := poolState(&v, s.cfg.Now()); state {
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

// attempted is what came of looking whether a pool can run a job.
type attempted struct {
	spec  *job.Spec // as it would be there
	known bool      // the pool has said which nodes it has
	err   error     // why it cannot; nil: it can, as far as is known
}

// try looks whether a pool can run a job. Nothing of the job is changed.
func (s *Server) try(ctx context.Context, rules *admission.Rules, p *parsed, r *route.Ranked) attempted {
	switch {
	case r.RuledOut():
		return attempted{err: fault.New(fault.Unsupported, "%s", r.Verdict.Says)}
	case r.Broken != "":
		return attempted{err: fault.New(fault.Unavailable, "%s", r.Broken)}
	}
	t := attempted{spec: new(job.Spec)}
	*t.spec = *p.spec
	t.spec.Groups, t.spec.Pool = slices.Clone(p.spec.Groups), r.Name
	if t.err = s.bind(ctx, rules, t.spec); t.err == nil {
		t.known, t.err = s.cfg.Plane.Fits(ctx, control.Submission{Spec: t.spec, Script: p.script, Env: p.env})
	}
	return t
}

// unsaid is why nobody knows whether a pool can run a job.
func unsaid(r *route.Ranked) error {
	return fault.New(fault.Unavailable, "it has not said yet which nodes it has%s", behind(r.Silent))
}

// ranked is an advice on a job, and the pools as it prefers them.
func (s *Server) ranked(req *submission, sp *job.Spec, sites []route.Site) (*route.Advice, []route.Ranked) {
	facts, _, err := route.Read(spec.Source{Name: req.File, Data: req.script}, s.cfg.Now())
	if err != nil || req.Form == api.FormCommand {
		facts = &route.Facts{}
	}
	d := asked(sp)
	route.Asked(facts, sp)
	a := route.Advise(facts)
	return a, a.Rank(sites, d.gpus > 0)
}

// choose puts a job into the pool that the advice prefers of those that can run it. Where
// none that has told its nodes can, it is one that has not yet: nobody knows that it cannot.
func (s *Server) choose(ctx context.Context, req *submission, p *parsed, rules *admission.Rules, sites []route.Site) error {
	a, list := s.ranked(req, p.spec, sites)
	home := slices.IndexFunc(list, func(r route.Ranked) bool { return r.Name == sites[0].Name })
	var passed []job.Passed
	errs := make([]error, len(list))
	unknown, late := -1, attempted{}
	for i := range list {
		r := &list[i]
		t := s.try(ctx, rules, p, r)
		switch {
		case t.err == nil && t.known:
			s.keep(p, a, list, i, home, passed, t.spec)
			return nil
		case t.err == nil && unknown < 0:
			unknown, late = i, t
		}
		errs[i] = cmp.Or(t.err, unsaid(r))
		passed = append(passed, job.Passed{Pool: r.Name, Why: sentence(errs[i])})
	}
	if unknown >= 0 {
		passed = slices.DeleteFunc(passed, func(x job.Passed) bool { return x.Pool == list[unknown].Name })
		s.keep(p, a, list, unknown, -1, passed, late.spec)
		return nil
	}
	no := &nowhere{error: s.placed(req, p, errs[home]), pool: sites[0].Name}
	for i := range list {
		if i != home {
			no.others = append(no.others, api.Located{Message: "pool " + list[i].Name + ": " + sentence(errs[i]), Remedy: fault.Remedy(errs[i])})
		}
	}
	return no
}

// keep makes what was attempted the job.
func (s *Server) keep(p *parsed, a *route.Advice, list []route.Ranked, i, home int, passed []job.Passed, sp *job.Spec) {
	r := list[i]
	c := &job.Choice{Rule: "first-able-pool", Why: "the first that can run it", Passed: passed}
	switch {
	case home < 0:
		c.Rule, c.Why = "not-known-yet", "it has not said yet which nodes it has, and no other can run it"
	case i == home:
	case home > i:
		c.Rule, c.Why = a.Because(r, list[home], asked(sp).gpus > 0)
	}
	if r.Name == s.first() {
		sp.Pool = "" // as it always was
	}
	sp.Chosen = c
	p.spec = sp
}

// first is the pool of jobs that name none, where nobody chooses.
func (s *Server) first() string {
	for _, v := range s.cfg.Plane.Pools() {
		if v.Default {
			return v.Name
		}
	}
	return ""
}

func behind(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// mostSaid bounds what is kept of why a pool was passed over, in bytes.
const mostSaid = 300

// sentence is an error in one line.
func sentence(err error) string {
	var refused *control.RefusedError
	if errors.As(err, &refused) {
		err = refused
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > mostSaid {
		text = strings.ToValidUTF8(text[:mostSaid], "") + "…"
	}
	return text
}

// nowhere is a job that no pool can run: why the server's own cannot, and the others.
type nowhere struct {
	error
	pool   string
	others []api.Located
}

func (e *nowhere) Unwrap() error { return e.error }

func (e *nowhere) Error() string {
	text := e.error.Error()
	for _, o := range e.others {
		text += "; " + o.Message
	}
	return text
}

// onto writes all of it into an answer: the server's own pool first, then the others.
func (e *nowhere) onto(p *api.Error) {
	if len(p.Errors) == 0 {
		p.Errors, p.Remedy = []api.Located{{Message: "pool " + e.pool + ": " + e.error.Error(), Remedy: p.Remedy}}, ""
	}
	p.Errors = append(p.Errors, e.others...)
}
