package jobs

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

func (s *Service) registerChange() {
	type in struct{}
	addRoute(s, transport.Route{
		Method: http.MethodPost, Path: "/v1/jobs/change", Verb: auth.SeeJob, ID: "change", Tag: "jobs", Owned: true, Body: transport.TypeOf[api.Change](),
		Example: &api.Change{Select: api.Select{IDs: []string{"7", "8_[1-4,9]"}}, Verb: api.VerbCancel, Reason: "wrong data"},
		Summary: "Change any number of jobs",
		Also: []auth.Verb{
			auth.Cancel, auth.Hold, auth.Release, auth.Requeue, auth.Signal, auth.Update, auth.Top, auth.HoldFirm, auth.Unhold, auth.Suspend, auth.Resume, auth.Raise, auth.Save,
		},
		About: "All verbs; one durable step for all jobs that the caller may change. Jobs that were not changed are in errors. " +
			"Which verbs the caller may use on which job is decided for each.",
	}, func(c *call, _ *in) (*api.Changed, error) {
		ch, err := transport.DecodeBody[api.Change](c.Call)
		if err != nil {
			return nil, err
		}
		return s.changeJobs(c, ch)
	})
}

// target is a job that a change is about, with what decides whether it may be made.
type target struct {
	id             job.ID
	name           string
	owner          job.Owner
	state          job.State
	firm           bool // held by an administrator
	priority, nice int64
	limit          time.Duration
	least          time.Duration
	account, qos   string
	partitions     []string // of an update
	pool           string
	once           bool // a batch script that may not be requeued
	held, stopping bool
}

func targetOf(v *state.View, up *api.Update) target {
	s := v.Job.Spec
	t := target{
		id: v.Job.ID, name: v.Job.Name(), owner: s.Owner, state: v.Job.State, firm: v.Why.Code == reason.HeldAdmin,
		priority: s.Priority, nice: s.Nice, limit: s.TimeLimit, least: s.TimeMin, account: s.Account, qos: s.QOS, pool: s.Pool,
		once: s.Source.Form == api.FormSbatch && !s.Requeue,
		held: v.Job.Flags&job.Held != 0, stopping: v.Job.Flags&job.Stopping != 0,
	}
	if up != nil && (up.Account != nil || up.QOS != nil || up.Partitions != nil || up.TimeLimit != nil || up.TimeMin != nil) {
		t.partitions = slices.Clone(s.Partitions)
	}
	return t
}

const mostNames = 1000 // of changed jobs in an answer

func (s *Service) changeJobs(c *call, ch *api.Change) (*api.Changed, error) {
	op, verb, err := s.readOperation(c, ch)
	if err != nil {
		return nil, err
	}
	targets, out, err := c.findTargets(ch)
	if err != nil {
		return nil, err
	}
	var ids []job.ID
	var chosen []target
	denied := 0
	for _, t := range targets {
		if err := c.mayChange(verb, &t, ch); err != nil {
			if len(ch.Select.IDs) > 0 { // of a filter those are meant that one may change
				out.Matched++
				addRefusal(out, t.name, err)
			} else {
				denied++
			}
			continue
		}
		out.Matched++
		firmer := !t.firm && (ch.Firm != nil && *ch.Firm || ch.Firm == nil && c.ID.Admin && t.owner.UID != c.ID.UID)
		if why := t.unchanged(ch, firmer); why != "" {
			if len(out.Unchanged) < mostNames {
				out.Unchanged = append(out.Unchanged, api.Unchanged{Name: t.name, Why: why})
			}
			continue
		}
		if ch.Verb == api.VerbUpdate {
			if err := s.partitionsExist(ch.Update.Partitions, t.pool); err != nil {
				addRefusal(out, t.name, err)
				continue
			}
		}
		ids, chosen = append(ids, t.id), append(chosen, t)
	}
	if denied > 0 && out.Matched == 0 && len(ch.Select.Users) > 0 { // whoever names users means their jobs
		return nil, deniedAll(verb, c.ID.Name, denied)
	}
	if h, ok := op.(control.Hold); ok && h.On && ch.Firm == nil && c.ID.Admin {
		// what an administrator holds of somebody else's stays held, as with scontrol
		h.Admin = slices.ContainsFunc(chosen, func(t target) bool { return t.owner.UID != c.ID.UID })
		op = h
	}
	if len(ids) > 0 {
		errs, err := s.cfg.Plane.Change(c.Ctx(), c.ID.Actor(), ids, op)
		if err != nil {
			return nil, err
		}
		for i, t := range chosen {
			if i < len(errs) && errs[i] != nil {
				addRefusal(out, t.name, errs[i])
				continue
			}
			out.Changed++
			if len(out.Names) < mostNames {
				out.Names = append(out.Names, t.name)
			}
		}
	}
	return out, nil
}

// deniedAll is the error about jobs that match, and none of which the caller may change.
func deniedAll(verb auth.Verb, who string, n int) error {
	if n == 1 {
		return fault.New(fault.Permission, "1 job matches, and %s may not %s it", who, verb).Advise("its owner may, and an administrator")
	}
	return fault.New(fault.Permission, "%d jobs match, and %s may not %s any of them", n, who, verb).Advise("their owners may, and an administrator")
}

// unchanged says how a job is that a change would leave as it is; empty: the change does something.
// firmer: an administrator would hold what only its owner holds.
func (t *target) unchanged(ch *api.Change, firmer bool) string {
	switch {
	case ch.Verb == api.VerbCancel && t.state.Final():
		return fmt.Sprintf("job %s had ended already (%s)", t.name, t.state)
	case ch.Verb == api.VerbHold && t.state == job.Pending && t.held && !firmer:
		return fmt.Sprintf("job %s is held already", t.name)
	case ch.Verb == api.VerbRelease && !t.state.Final() && !t.held:
		return fmt.Sprintf("job %s is not held: it is %s", t.name, t.state)
	case ch.Verb == api.VerbSuspend && t.state == job.Suspended:
		return fmt.Sprintf("job %s is suspended already", t.name)
	case ch.Verb == api.VerbResume && t.state == job.Running && !t.stopping:
		return fmt.Sprintf("job %s is not suspended: it is RUNNING", t.name)
	case ch.Verb == api.VerbRequeue && t.state == job.Pending && !ch.Hold && !ch.Special:
		return fmt.Sprintf("job %s waits already", t.name)
	}
	return ""
}

func addRefusal(out *api.Changed, name string, err error) {
	out.Errors = append(out.Errors, api.ChangeError{Name: name, Error: *transport.ErrorBody(err)})
}

// findTargets finds the jobs of a selection that the caller may see.
func (c *call) findTargets(ch *api.Change) ([]target, *api.Changed, error) {
	sel := ch.Select
	if len(sel.IDs)+len(sel.Users)+len(sel.Accounts)+len(sel.Partitions)+len(sel.QOS)+len(sel.Names)+len(sel.States)+len(sel.Nodes) == 0 && !sel.All {
		return nil, nil, fault.New(fault.Invalid, "no jobs are selected").
			Advise("name jobs, a user, a state …; all: true means every live job that you may change")
	}
	if len(sel.IDs) > 0 && len(sel.States) == 0 {
		sel.States = []string{"all"} // a job that is named is meant as it is
	}
	s, err := selectJobs(sel, c.s.cfg.Plane.Pools)
	if err != nil {
		return nil, nil, err
	}
	out := &api.Changed{}
	var targets []target
	missing := c.eachSelected(s, 0, false, func(v *state.View) bool {
		targets = append(targets, targetOf(v, ch.Update))
		return true
	})
	for _, id := range missing {
		out.Matched++
		v, err := c.findJob(id.String(), auth.SeeJob) // it ended a while ago, and may be requeued
		if err != nil {
			addRefusal(out, id.String(), err)
			continue
		}
		out.Matched--
		targets = append(targets, targetOf(&v, ch.Update))
	}
	return targets, out, nil
}

// mayChange asks auth about one job.
func (c *call) mayChange(verb auth.Verb, t *target, ch *api.Change) error {
	o := auth.Job(t.name, t.owner.UID)
	if err := c.Allowed(verb, o); err != nil {
		return err
	}
	switch {
	case verb == auth.Requeue && t.once:
		return fault.New(fault.Unsupported, "job %s may not be requeued: it says --no-requeue, or the site's rules say it for batch scripts", t.name).
			Advise("cox update --requeue yes %[1]s, then requeue it", t.name)
	case verb == auth.Release && t.firm:
		return c.Allowed(auth.Unhold, o)
	case verb == auth.Update && needsAdmin(ch.Update, t):
		return c.Allowed(auth.Raise, o)
	case verb == auth.Update && (ch.Update.Account != nil || ch.Update.QOS != nil || !c.ID.Admin):
		return c.keepsRules(ch.Update, t)
	}
	return nil
}

// keepsRules asks the site's rules about a job as an update would leave it. Only of
// an account do they bind an administrator too.
func (c *call) keepsRules(u *api.Update, t *target) error {
	if u.Account == nil && u.QOS == nil && u.Partitions == nil && u.TimeLimit == nil && u.TimeMin == nil {
		return nil
	}
	rules, err := c.s.cfg.InForce.Now(c.Ctx())
	if err != nil {
		return err
	}
	as := job.Spec{Owner: t.owner, Pool: t.pool, Account: t.account, QOS: t.qos, Partitions: t.partitions, TimeLimit: t.limit, TimeMin: t.least}
	if u.Account != nil {
		if err := c.ID.MayCharge(*u.Account); err != nil {
			return err
		}
		as.Account = *u.Account
	}
	if u.QOS != nil {
		as.QOS = *u.QOS
	}
	if c.ID.Admin {
		as.TimeLimit, as.TimeMin = 0, 0
		return rules.Apply(&as)
	}
	if u.Partitions != nil {
		as.Partitions = u.Partitions
	}
	if u.TimeMin != nil {
		as.TimeMin = toDuration(*u.TimeMin)
	}
	if u.TimeLimit != nil {
		as.TimeLimit = toDuration(*u.TimeLimit)
	}
	if as.TimeLimit == 0 {
		as.TimeLimit = forever // none is more than any limit
	}
	wanted := as.TimeLimit
	if err := rules.Apply(&as); err != nil {
		return err
	}
	if as.TimeLimit != wanted && u.TimeLimit != nil { // the rules cut it, which an update does not
		return fault.New(fault.Invalid, "time_limit: the partition allows at most %s", slurmfmt.FormatTimeLimit(as.TimeLimit)).Advise("ask for less time, or for another partition")
	}
	return nil
}

// forever stands for a job without a time limit.
const forever = 100 * 365 * 24 * time.Hour

// needsAdmin says whether an update takes more than the owner may give himself.
func needsAdmin(u *api.Update, t *target) bool {
	switch {
	case u.Priority != nil && *u.Priority > t.priority, u.Nice != nil && *u.Nice < min(t.nice, 0):
		return true
	case u.TimeLimit != nil && t.state.Holds():
		limit := toDuration(*u.TimeLimit)
		return t.limit > 0 && (limit == 0 || limit > t.limit)
	}
	return false
}

func toDuration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// readOperation reads what is to be done.
func (s *Service) readOperation(c *call, ch *api.Change) (control.Op, auth.Verb, error) {
	sig := 0
	if ch.Signal != "" {
		n, err := slurmfmt.ParseSignalName(ch.Signal)
		if err != nil {
			return nil, "", fault.New(fault.Invalid, "signal: %w", err).Advise("a name or a number: USR1, 10")
		}
		sig = n
	}
	switch ch.Verb {
	case api.VerbCancel:
		grace := time.Duration(-1)
		if ch.Grace != nil {
			if *ch.Grace < 0 || *ch.Grace > 7*24*3600 {
				return nil, "", fault.New(fault.Invalid, "grace: %g seconds are not between 0 and a week", *ch.Grace).Advise("0 kills at once; leave it out for the site's own")
			}
			grace = toDuration(*ch.Grace)
		}
		return control.Cancel{Grace: grace, Signal: sig, Message: ch.Reason}, auth.Cancel, nil
	case api.VerbHold:
		if ch.Firm != nil && *ch.Firm {
			return control.Hold{On: true, Admin: true}, auth.HoldFirm, nil
		}
		return control.Hold{On: true}, auth.Hold, nil
	case api.VerbRelease:
		return control.Hold{On: false, Admin: c.ID.Admin}, auth.Release, nil
	case api.VerbRequeue:
		return control.Requeue{Hold: ch.Hold || ch.Special, Special: ch.Special}, auth.Requeue, nil
	case api.VerbSignal:
		if ch.Signal == "" {
			return nil, "", fault.New(fault.Invalid, "signal: which one?").Advise("a name or a number: USR1, 10")
		}
		return control.Signal{Signal: sig, To: signalScope(ch)}, auth.Signal, nil
	case api.VerbSuspend:
		return control.Suspend{On: true}, auth.Suspend, nil
	case api.VerbResume:
		return control.Suspend{On: false}, auth.Resume, nil
	case api.VerbSaved:
		if err := engine.CheckSaved(ch.Saved); err != nil {
			return nil, "", fault.New(fault.Invalid, "saved: %w", err).Advise("a name in the job's checkpoint directory, or an absolute one; leave it out for the directory")
		}
		return control.Saved{As: ch.Saved}, auth.Save, nil
	case api.VerbTop:
		return control.Top{}, auth.Top, nil
	case api.VerbUpdate:
		up, err := s.readUpdate(ch.Update)
		return up, auth.Update, err
	}
	return nil, "", fault.New(fault.Invalid, "verb: there is no %q", ch.Verb).
		Advise("verbs: cancel, hold, release, requeue, signal, suspend, resume, update, top, checkpoint-done; a newer client needs a newer server (API %s)", transport.APIVersion)
}

func signalScope(ch *api.Change) engine.Scope {
	switch {
	case ch.Full:
		return engine.ToAll
	case ch.BatchOnly:
		return engine.ToBatch
	}
	return engine.ToTasks
}

// readUpdate reads the new values; what cannot be is refused before any job is touched.
func (s *Service) readUpdate(u *api.Update) (control.Update, error) {
	if u == nil {
		return control.Update{}, fault.New(fault.Invalid, "update: there is nothing to change").Advise("fields stand in /openapi.json")
	}
	out := control.Update{
		Name: u.Name, Comment: u.Comment, Account: u.Account, QOS: u.QOS, Begin: u.Begin, Deadline: u.Deadline,
		Priority: u.Priority, Nice: u.Nice, Requeue: u.Requeue, MaxRunning: u.MaxRunning, Nodes: u.Nodes,
	}
	for _, d := range []struct {
		name string
		from *float64
		to   **time.Duration
	}{{"time_limit", u.TimeLimit, &out.TimeLimit}, {"time_min", u.TimeMin, &out.TimeMin}} {
		if d.from == nil {
			continue
		}
		if *d.from < 0 || *d.from > 100*365*24*3600 {
			return out, fault.New(fault.Invalid, "%s: %g seconds are no time", d.name, *d.from).Advise("give 0 for none, or seconds up to 100 years")
		}
		v := toDuration(*d.from)
		*d.to = &v
	}
	if u.Partitions != nil {
		if slices.Contains(u.Partitions, "") {
			return out, fault.New(fault.Invalid, "partitions: one has no name").Advise("names joined by commas: --partition gpu,long")
		}
		if !slices.ContainsFunc(s.cfg.Plane.Pools(), func(p pools.View) bool { return s.hasOtherPartitions(p.Name) }) {
			if err := s.partitionsExist(u.Partitions, ""); err != nil {
				return out, err
			}
		}
		out.Partitions = &u.Partitions
	}
	if u.Depends != nil {
		d, err := sbatch.ParseDependency(*u.Depends)
		if err != nil {
			return out, fault.New(fault.Invalid, "depends: %w", err).Advise("as sbatch --dependency: afterok:7:8, afterany:7_3, singleton; empty for none")
		}
		out.Depends = &d
	}
	for _, l := range []struct {
		name string
		from *[]string
		to   **[]string
	}{{"node_list", u.NodeList, &out.NodeList}, {"exclude", u.Exclude, &out.Exclude}} {
		if l.from == nil {
			continue
		}
		names, err := hostlist.Expand(strings.Join(*l.from, ","))
		if err != nil {
			return out, fault.New(fault.Invalid, "%s: %w", l.name, err).Advise("names or host lists: v[1-4]")
		}
		*l.to = &names
	}
	if u.Features != nil {
		con, err := sbatch.ParseConstraint(*u.Features)
		if err != nil {
			return out, fault.New(fault.Invalid, "features: %w", err).Advise("as sbatch --constraint: a&b, a|b, [r1|r2]")
		}
		out.Constraint = &con
	}
	return out, nil
}

// partitionsExist refuses names that are none of the partitions of a job's pool. A pool with a
// scheduler of its own knows its own: its engine is asked.
func (s *Service) partitionsExist(names []string, pool string) error {
	known := s.cfg.Rules.Partitions
	if s.hasOtherPartitions(pool) {
		return nil
	}
	for _, n := range names {
		if len(known) > 0 && !slices.ContainsFunc(known, func(p admission.Partition) bool { return p.Name == n }) {
			var all []string
			for _, p := range known {
				all = append(all, p.Name)
			}
			return fault.New(fault.Invalid, "partitions: there is no partition %s", n).Advise("partitions here: %s", strings.Join(all, ", "))
		}
	}
	return nil
}

// hasOtherPartitions reports whether the partitions of the configuration are not those of a pool.
func (s *Service) hasOtherPartitions(pool string) bool {
	return pool != "" && s.cfg.Rules.Pool != "" && pool != s.cfg.Rules.Pool
}
