package jobs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// queueFlags are the flags of cox queue.
type queueFlags struct {
	sel    selectFlags
	all    bool
	watch  bool
	format cli.Format
}

func queueCommand(a *cli.App) *cobra.Command {
	var f queueFlags
	cmd := &cobra.Command{
		Use:     "queue [JOB…]",
		Aliases: []string{"q", "ls", "ps", "status"},
		Short:   "List what runs and waits",
		Long: `Lists the live jobs of all users, or those that the flags choose. Waiting tasks of
an array are one line. With --all it also lists jobs that ended in the past minutes;
cox history has older ones.

--watch redraws the list at every change; without a terminal it prints the list once
and then a line for every change.`,
		Example: `  cox queue
  cox queue --me
  cox queue -u anna,ben -t PENDING -o wide
  cox queue -p gpu --watch
  cox queue -o custom-columns=JOB:.name,WHO:.spec.owner.user --sort-by .submitted
  cox queue -o jsonpath='{.jobs[*].name}'
  cox cancel $(cox queue --me -t PENDING -o name)`,
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return listQueue(a, cmd.Context(), c, &f, args)
		}),
	}
	f.sel.add(a, cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "also show jobs that ended recently")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "keep running and show changes")
	a.ListFlags(cmd, &f.format, true)
	return cmd
}

func listQueue(a *cli.App, ctx context.Context, c *client.Client, f *queueFlags, ids []string) error {
	sel := f.sel.selectJobs(ids)
	if f.all && len(sel.States) == 0 {
		sel.States = []string{"all"}
	}
	q := client.Query{Select: sel}
	switch {
	case f.format.IsData():
		return printQueueData(a, ctx, c, q, f.format)
	case f.format == cli.AsName:
		names, err := jobNames(ctx, c, q)
		if err != nil {
			return err
		}
		return a.WriteNames(names)
	}
	list := func() (*printer.Table, int, error) {
		rows, err := queueRows(ctx, c, q)
		return printer.Queue(a.Page(a.Out), rows, f.format == cli.AsWide), len(rows), err
	}
	if f.watch {
		return a.WatchTable(ctx, c, list, client.WatchOptions{Jobs: ids, User: onlyEntry(sel.Users)})
	}
	t, n, err := list()
	if err != nil {
		return err
	}
	page := a.Page(a.Out)
	if f.format == cli.AsWide {
		page.Width = 0 // all columns, whole
	}
	if err := t.Write(a.Out, page); err != nil {
		return err
	}
	if n == 0 {
		fmt.Fprintln(a.Err, emptyQueueNote(&f.sel, ids))
	}
	return nil
}

// emptyQueueNote says why a list is empty.
func emptyQueueNote(s *selectFlags, ids []string) string {
	if len(ids) > 0 || s.me || len(s.users)+len(s.accounts)+len(s.partitions)+len(s.qos)+len(s.names)+len(s.states)+len(s.nodes) > 0 {
		return "no live job matches          cox history has those that ended"
	}
	return "no jobs: nothing runs, nothing waits          cox history has those that ended"
}

// onlyEntry is the single entry of a list, or "".
func onlyEntry(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return ""
}

func printQueueData(a *cli.App, ctx context.Context, c *client.Client, q client.Query, f cli.Format) error {
	all := api.Jobs{Jobs: []api.Job{}}
	for first := true; first || q.Cursor != ""; first = false {
		p, err := c.JobsPage(ctx, q)
		if err != nil {
			return err
		}
		if first {
			all.Change = p.Change // of the first page: a watch after it misses nothing
		}
		all.Jobs = append(all.Jobs, p.Jobs...)
		q.Cursor = p.Next
	}
	return a.WriteData(f, all)
}

// queueRows asks for the columns that the table shows, and no more.
func queueRows(ctx context.Context, c *client.Client, q client.Query) ([]printer.QueueRow, error) {
	q.Collapse = true
	var rows []printer.QueueRow
	err := cli.EachJobRow(ctx, c, q, printer.QueueColumns(), func(fields []string) error {
		r, err := printer.QueueRowFrom(fields)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

func jobNames(ctx context.Context, c *client.Client, q client.Query) ([]string, error) {
	var names []string
	err := cli.EachJobRow(ctx, c, q, []string{"name"}, func(fields []string) error {
		names = append(names, fields[0])
		return nil
	})
	return names, err
}
