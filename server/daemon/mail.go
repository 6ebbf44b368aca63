package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/notify"
)

// newNotifier is the notifier that the configuration asks for, nil for none.
func newNotifier(cfg *config.Config, log *slog.Logger) (*notify.Notifier, error) {
	n := cfg.Notify
	return notify.New(notify.Config{
		Command: n.Command, Domain: n.Domain,
		SMTP: notify.SMTP{Addr: n.SMTP.Addr, From: n.SMTP.From, User: n.SMTP.User, PasswordFile: n.SMTP.PasswordFile},
	}, log.With("part", "mail"))
}

// never is how often jobs that wait for others are looked at: that a dependency can no
// longer be met is no event of theirs.
const never = 5 * time.Second

// follower tells a notifier of changes of jobs.
type follower struct {
	control *control.Control
	mail    *notify.Notifier
	known   map[job.ID]job.Job // that want mail and have not ended
	told    map[job.ID]bool    // that their dependency can never be met
}

// followMail tells the notifier of every change of a job until ctx ends. What happened
// while no server ran is not told.
func followMail(ctx context.Context, c *control.Control, n *notify.Notifier, log *slog.Logger) {
	f := &follower{control: c, mail: n, known: map[job.ID]job.Job{}, told: map[job.ID]bool{}}
	after := c.LastEvent()
	f.noteExisting()
	for ctx.Err() == nil {
		wait, stop := context.WithTimeout(ctx, never)
		events, last, gap, err := c.Events(wait, after)
		stop()
		switch {
		case err != nil && wait.Err() == nil:
			return // the control plane ends
		case err == nil:
			after = last
		}
		if gap {
			log.Warn("changes went by unseen: some mail is not sent", "after", after)
		}
		for _, e := range events {
			for i := range max(e.Count, 1) {
				f.jobChanged(ctx, e.Job+job.ID(i))
			}
		}
		f.tellHopeless(ctx)
	}
}

// noteExisting takes note of what is there: of arrays that live, also the tasks that have
// ended, since they are written about as a whole.
func (f *follower) noteExisting() {
	arrays := map[job.ID]bool{}
	f.control.Scan(query.Filter{}, func(v *state.View) bool {
		if a := v.Job.Array; a != nil && v.Job.Spec.Mail != nil && !v.Job.State.Final() {
			arrays[a.Job] = true
		}
		return true
	})
	f.control.Scan(query.Filter{}, func(v *state.View) bool {
		lives := !v.Job.State.Final()
		if v.Job.Spec.Mail == nil || !lives && (v.Job.Array == nil || !arrays[v.Job.Array.Job]) {
			return true
		}
		copied := v.Job
		spec := *v.Job.Spec
		copied.Spec = &spec
		f.mail.Seen(&copied)
		if lives {
			f.known[copied.ID] = copied
		}
		return true
	})
}

func (f *follower) jobChanged(ctx context.Context, id job.ID) {
	if id == 0 {
		return
	}
	v, err := f.control.Job(ctx, id)
	if err != nil || v.Job.Spec.Mail == nil {
		return
	}
	change := notify.Change{After: &v.Job}
	if before, ok := f.known[id]; ok {
		change.Before = &before
	}
	f.mail.Job(change)
	if f.known[id] = v.Job; v.Job.State.Final() {
		delete(f.known, id)
		delete(f.told, id)
	}
}

// tellHopeless tells of jobs whose dependency can never be met.
func (f *follower) tellHopeless(ctx context.Context) {
	for id, before := range f.known {
		if f.told[id] || before.State != job.Pending || before.Spec.Depends.IsZero() {
			continue
		}
		v, err := f.control.Job(ctx, id)
		if err != nil || v.Why.Code != reason.DependNever {
			continue
		}
		f.told[id] = true
		f.mail.Job(notify.Change{Before: &before, After: &v.Job, Never: true})
	}
}
