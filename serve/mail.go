package serve

import (
	"context"
	"log/slog"

	"github.com/coxswain-sched/coxswain/config"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/notify"
)

// mailer is the notifier that the configuration asks for, nil for none.
func mailer(cfg *config.Config, log *slog.Logger) (*notify.Notifier, error) {
	n := cfg.Notify
	return notify.New(notify.Config{
		Command: n.Command, Domain: n.Domain,
		SMTP: notify.SMTP{Addr: n.SMTP.Addr, From: n.SMTP.From, User: n.SMTP.User, PasswordFile: n.SMTP.PasswordFile},
	}, log.With("part", "mail"))
}

// follow tells the notifier of every change of a job until ctx ends. What happened
// while no server ran is not told.
func follow(ctx context.Context, c *control.Control, n *notify.Notifier, log *slog.Logger) {
	after := c.LastEvent()
	known := map[job.ID]job.Job{} // of jobs that want mail and have not ended
	c.Scan(control.Filter{Live: true}, func(v *control.View) bool {
		if v.Job.Spec.Mail != nil {
			known[v.Job.ID] = v.Job
			n.Seen(&v.Job)
		}
		return true
	})
	for {
		events, last, gap, err := c.Events(ctx, after)
		if err != nil {
			return // the server ends
		}
		if gap {
			log.Warn("changes went by unseen: some mail is not sent", "after", after)
		}
		after = last
		for _, e := range events {
			for i := range max(e.Count, 1) {
				mail(ctx, c, n, known, e.Job+job.ID(i))
			}
		}
	}
}

func mail(ctx context.Context, c *control.Control, n *notify.Notifier, known map[job.ID]job.Job, id job.ID) {
	if id == 0 {
		return
	}
	v, err := c.Job(ctx, id)
	if err != nil || v.Job.Spec.Mail == nil {
		return
	}
	change := notify.Change{After: &v.Job}
	if before, ok := known[id]; ok {
		change.Before = &before
	}
	n.Job(change)
	if known[id] = v.Job; v.Job.State.Final() {
		delete(known, id)
	}
}
