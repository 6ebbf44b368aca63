package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/notify"
)

// notifiers are those who are told of jobs.
type notifiers struct {
	mail *notify.Notifier   // nil: nobody sends mail
	all  []*notify.Notifier // mail and webhooks

	policy notify.WebhookPolicy // of the webhooks of jobs
}

// newNotifiers starts the notifiers that the configuration asks for.
func newNotifiers(opt *Options, cfg *config.Config, errorLine func(context.Context, *job.Job) string) (notifiers, error) {
	var out notifiers
	n, log := cfg.Notify, opt.Log
	mail, err := notify.New(notify.Config{
		Command: n.Command, Domain: n.Domain,
		SMTP: notify.SMTP{Addr: n.SMTP.Addr, From: n.SMTP.From, User: n.SMTP.User, PasswordFile: n.SMTP.PasswordFile},
	}, log.With("part", "mail"))
	if err != nil {
		return out, err
	}
	if out.policy, err = notify.ParseWebhookPolicy(n.JobWebhooks); err != nil {
		return out, err
	}
	if out.mail = mail; mail != nil {
		out.all = append(out.all, mail)
	}
	common := notify.WebhookConfig{Server: cfg.Name, Version: opt.Version, ErrorLine: errorLine}
	for i, w := range n.Webhooks {
		log := log.With("part", fmt.Sprintf("webhook %d", i+1))
		out.all = append(out.all, notify.NewSiteWebhook(notify.Webhook{URL: w.URL, On: w.On, SecretFile: w.SecretFile}, common, log))
	}
	out.all = append(out.all, notify.NewJobWebhooks(out.policy, common, log.With("part", "webhooks of jobs")))
	return out, nil
}

// close waits until what is queued was sent, or the context ends.
func (n *notifiers) close(ctx context.Context) error {
	errs := make([]error, len(n.all))
	var closing sync.WaitGroup
	for i, one := range n.all {
		closing.Go(func() { errs[i] = one.Close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

// wants reports whether anybody is to hear of a job.
func (n *notifiers) wants(j *job.Job) bool {
	return slices.ContainsFunc(n.all, func(one *notify.Notifier) bool { return one.Wants(j) })
}

func (n *notifiers) tellAll(c notify.Change) {
	for _, one := range n.all {
		one.Job(c)
	}
}

// lookForNever is how often jobs that wait for others are looked at: that a dependency can no
// longer be met is no event of theirs.
const lookForNever = 5 * time.Second

// follower tells notifiers of changes of jobs.
type follower struct {
	control *control.Control
	told    *notifiers
	known   map[job.ID]liveJob // of which somebody is to hear and that have not ended
	after   uint64             // the newest event when it was made
}

// liveJob is what is kept of a live job, of which there may be a million: no specification, since
// the control plane has it.
type liveJob struct {
	state   job.State
	flags   job.Flags
	attempt uint32
	started bool
	depends bool // it waits for other jobs
	never   bool // it was told that its dependency can never be met
}

func liveJobOf(j *job.Job) liveJob {
	return liveJob{state: j.State, flags: j.Flags, attempt: j.Attempt, started: !j.Started.IsZero(), depends: !j.Spec.Depends.IsZero()}
}

// asBefore is the job as notify.Decide looks at it before a change.
func (l liveJob) asBefore(id job.ID) *job.Job {
	j := &job.Job{ID: id, State: l.state, Flags: l.flags, Attempt: l.attempt}
	if l.started {
		j.Started = time.Unix(0, 0) // that it has started counts, not when
	}
	return j
}

// newFollower makes a follower. What happens to jobs from now on is told, also before followJobs; what happened
// while no server ran is not.
func newFollower(c *control.Control, n *notifiers) *follower {
	f := &follower{control: c, told: n, known: map[job.ID]liveJob{}, after: c.LastEvent()}
	f.noteExisting()
	return f
}

// followJobs tells the notifiers of every change of a job until ctx ends.
func (f *follower) followJobs(ctx context.Context, log *slog.Logger) {
	c, after := f.control, f.after
	var looked time.Time
	for ctx.Err() == nil {
		wait, stop := context.WithTimeout(ctx, lookForNever)
		events, last, gap, err := c.Events(wait, after)
		stop()
		switch {
		case err != nil && wait.Err() == nil:
			return // the control plane ends
		case err == nil:
			after = last
		}
		if gap {
			log.Warn("changes went by unseen: some mail and webhooks are not sent", "after", after)
		}
		for _, e := range events {
			f.nodesChanged(&e)
			for i := range max(e.Count, 1) {
				if !f.jobChanged(ctx, e.Job+job.ID(i)) {
					break // tasks of one array ask for the same
				}
			}
		}
		if now := time.Now(); now.Sub(looked) >= lookForNever {
			looked = now
			f.tellHopeless(ctx)
		}
	}
}

// noteExisting takes note of what is there: of arrays that live, also the tasks that have
// ended, since they are written about as a whole.
func (f *follower) noteExisting() {
	arrays := map[job.ID]bool{}
	f.control.Scan(query.Filter{}, func(v *state.View) bool {
		if a := v.Job.Array; a != nil && f.told.wants(&v.Job) && !v.Job.State.Final() {
			arrays[a.Job] = true
		}
		return true
	})
	f.control.Scan(query.Filter{}, func(v *state.View) bool {
		lives := !v.Job.State.Final()
		if !f.told.wants(&v.Job) || !lives && (v.Job.Array == nil || !arrays[v.Job.Array.Job]) {
			return true
		}
		copied := v.Job
		spec := *v.Job.Spec
		copied.Spec = &spec
		for _, one := range f.told.all {
			one.Seen(&copied)
		}
		if lives {
			f.known[copied.ID] = liveJobOf(&copied)
		}
		return true
	})
}

// nodesChanged tells of nodes that are fenced or drained, or are no longer.
func (f *follower) nodesChanged(e *state.Event) {
	switch e.Kind {
	case state.EventFenced, state.EventUnfenced, state.EventDrained, state.EventUndrained:
		for _, one := range f.told.all {
			one.Nodes(notify.NodeChange{Kind: e.Kind, Number: e.Seq, Nodes: e.Nodes, By: e.By, Text: e.Message})
		}
	}
}

// jobChanged tells of a job. wanted is false if nobody is to hear of it.
func (f *follower) jobChanged(ctx context.Context, id job.ID) (wanted bool) {
	if id == 0 {
		return false
	}
	v, err := f.control.Job(ctx, id)
	if err != nil {
		return true // it left memory; of the next one more may be known
	}
	if !f.told.wants(&v.Job) {
		return false
	}
	change := notify.Change{After: &v.Job}
	before, ok := f.known[id]
	if ok {
		change.Before = before.asBefore(id)
	}
	f.told.tellAll(change)
	now := liveJobOf(&v.Job)
	now.never = before.never
	if f.known[id] = now; v.Job.State.Final() {
		delete(f.known, id)
	}
	return true
}

// tellHopeless tells of jobs whose dependency can never be met.
func (f *follower) tellHopeless(ctx context.Context) {
	for id, before := range f.known {
		if before.never || before.state != job.Pending || !before.depends {
			continue
		}
		v, err := f.control.Job(ctx, id)
		if err != nil || v.Why.Code != reason.DependNever {
			continue
		}
		change := notify.Change{Before: before.asBefore(id), After: &v.Job, Never: true}
		before.never = true
		f.known[id] = before
		f.told.tellAll(change)
	}
}
