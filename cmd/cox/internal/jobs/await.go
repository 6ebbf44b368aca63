package jobs

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// The pace at which a job that waits is looked at, and how long a job may wait before anything
// is said of it.
const (
	lookEach   = time.Second
	quietStart = 700 * time.Millisecond
)

// AnnounceStart says on standard error why a job waits, each reason once, and that it has started, with
// where its output is. It returns when the job has started or ended, or ctx ends.
func AnnounceStart(ctx context.Context, a *cli.App, c *client.Client, name string) {
	said, pause := "", quietStart
	for {
		if !sleepOrEnd(ctx, pause) {
			return
		}
		pause = lookEach
		j, err := c.Job(ctx, name)
		switch {
		case fault.KindOf(err) == fault.Unavailable && ctx.Err() == nil:
			continue // the waiting goes on over a restart of the server
		case err != nil || !j.Ended.IsZero():
			return
		case j.State == "PENDING":
			why := "its reason is not known yet"
			if j.Why != nil {
				why = j.Why.String()
			}
			if why != said {
				said = why
				printRemark(a, printer.Waits(a.Page(a.Err), j, why))
			}
		default:
			if said != "" || len(j.Files) > 0 {
				printRemark(a, printer.Started(a.Page(a.Err), j))
			}
			return
		}
	}
}

// printRemark prints a line on standard error, in the place of a spinner's.
func printRemark(a *cli.App, line string) {
	if cli.IsTerminal(a.Err) {
		line = "\r\x1b[K" + line
	}
	fmt.Fprintln(a.Err, line)
}

func sleepOrEnd(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// announceBeside runs AnnounceStart beside something else; stop ends it and waits for it.
func announceBeside(ctx context.Context, a *cli.App, c *client.Client, name string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		AnnounceStart(ctx, a, c, name)
	}()
	return func() { cancel(); <-done }
}

// WaitAnnounced is WaitFor, and says meanwhile why the job waits and that it has started.
func WaitAnnounced(ctx context.Context, a *cli.App, c *client.Client, name string, quiet bool) ([]*api.Job, error) {
	if !quiet {
		defer announceBeside(ctx, a, c, name)()
	}
	ended, _, err := WaitFor(ctx, c, name)
	return ended, err
}

// FollowLog copies the output of a job to standard output until the job has ended, and says on standard
// error why it waits until then.
func FollowLog(ctx context.Context, a *cli.App, c *client.Client, name string, o client.LogOptions) error {
	if o.Follow {
		stop := announceBeside(ctx, a, c, name)
		defer stop()
	}
	r, err := c.Logs(ctx, name, o)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err = io.Copy(a.Out, r); fault.KindOf(err) == fault.Unavailable && ctx.Err() == nil {
		return fault.New(fault.Unavailable, "%w", err).Advise("ask again: cox logs %s", name)
	}
	return err
}
