package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// watchFlags are the flags of cox watch.
type watchFlags struct {
	user   string
	me     bool
	after  uint64
	format cli.Format
}

func watchCommand(a *cli.App) *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "watch [JOB…]",
		Short: "Print changes as they happen",
		Long: `Prints a line for every change: submissions, starts, ends, drains. It goes on over a
broken connection and over a restart of the server, and misses nothing and repeats
nothing. With jobs it ends when all of them have ended; those that had ended before
do not count, unless the watch begins at the first event (--after 0).

-o json prints one JSON object a line; its seq is what --after takes to go on later.`,
		Example: `  cox watch
  cox watch 7 8
  cox watch --me -o json
  cox watch --after 1234 -o json >> events.jsonl`,
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if f.me {
				f.user = cli.Caller().User
			}
			return watchEvents(a, cmd.Context(), c, &f, args, cmd.Flags().Changed("after"))
		}),
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.user, "user", "u", "", "only this user's jobs")
	fl.BoolVar(&f.me, "me", false, "only my jobs")
	fl.Uint64Var(&f.after, "after", 0, "begin after the event of this number (default: now; 0: all that is remembered)")
	cli.FormatFlag(cmd, &f.format, cli.AsJSON)
	a.CompleteFlag(cmd, "user", a.UserNames)
	return cmd
}

// errAllEnded ends a watch of jobs.
var errAllEnded = errors.New("all have ended")

func watchEvents(a *cli.App, ctx context.Context, c *client.Client, f *watchFlags, ids []string, resumed bool) error {
	if !resumed {
		info, err := c.Info(ctx)
		if err != nil {
			return err
		}
		f.after = info.Change
	}
	left, err := unendedJobs(a, ctx, c, ids, resumed && f.after == 0)
	if err != nil {
		return err
	}
	ends := len(left) > 0
	if len(ids) > 0 && !ends && !resumed {
		what := "it has"
		if len(ids) > 1 {
			what = "all of them have"
		}
		fmt.Fprintf(a.Err, "%s ended already; cox watch %s --after 0 shows what happened\n", what, strings.Join(ids, " "))
		return nil
	}
	lost := false
	o := client.WatchOptions{After: f.after, Jobs: ids, User: f.user, Lost: func(err error) error {
		if !lost {
			lost = true
			fmt.Fprintf(a.Err, "… %s; trying again\n", printer.Clean(err.Error()))
			if fault.Remedy(err) != "" {
				fmt.Fprintf(a.Err, "  %s\n", printer.Clean(fault.Remedy(err)))
			}
		}
		return nil
	}}
	err = c.Watch(ctx, o, func(e api.Event) error {
		lost = false
		if err := printEvent(a, &e, f.format); err != nil {
			return err
		}
		if isFinal(e.State) {
			delete(left, eventJob(&e))
		} else if e.State != "" && ends {
			left[eventJob(&e)] = true // it runs again
		}
		if ends && len(left) == 0 {
			return errAllEnded
		}
		return nil
	})
	if errors.Is(err, errAllEnded) {
		return nil
	}
	return err
}

// unendedJobs says which of the named jobs, tasks of arrays each, have not ended; or,
// where all events are watched from the first on, whose end is still to be read.
func unendedJobs(a *cli.App, ctx context.Context, c *client.Client, ids []string, all bool) (map[string]bool, error) {
	left := map[string]bool{}
	if len(ids) == 0 {
		return left, nil
	}
	for _, id := range ids {
		j, err := c.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		left[j.Name] = all
	}
	q := client.Query{Select: api.Select{IDs: ids}}
	if all {
		q.States = []string{"all"}
	}
	names, err := jobNames(ctx, c, q)
	for _, n := range names {
		left[n] = true
	}
	maps.DeleteFunc(left, func(_ string, there bool) bool { return !there })
	return left, err
}

func eventJob(e *api.Event) string {
	if e.Name != "" {
		return e.Name
	}
	return e.Job.String()
}

func isFinal(state string) bool {
	switch state {
	case "", "PENDING", "RUNNING", "SUSPENDED":
		return false
	}
	return true
}

func printEvent(a *cli.App, e *api.Event, f cli.Format) error {
	if f != cli.AsJSON {
		_, err := fmt.Fprintln(a.Out, printer.Event(a.Page(a.Out), e))
		return err
	}
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = a.Out.Write(append(b, '\n'))
	return err
}
