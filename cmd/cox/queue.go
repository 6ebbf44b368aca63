package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// selectFlags choose jobs by what they are.
type selectFlags struct {
	users, accounts, partitions, qos, names, states, nodes []string
	me                                                     bool
}

func (s *selectFlags) add(a *app, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVarP(&s.users, "user", "u", nil, "jobs of these users")
	fl.BoolVar(&s.me, "me", false, "my jobs")
	fl.StringSliceVarP(&s.accounts, "account", "A", nil, "jobs of these accounts")
	fl.StringSliceVarP(&s.partitions, "partition", "p", nil, "jobs in these partitions")
	fl.StringSliceVarP(&s.qos, "qos", "q", nil, "jobs with these qualities of service")
	fl.StringSliceVarP(&s.names, "name", "n", nil, "jobs with these names")
	fl.StringSliceVarP(&s.states, "state", "t", nil, "jobs in these states (PENDING, R, …)")
	fl.StringSliceVarP(&s.nodes, "node", "w", nil, "jobs on these nodes (host lists)")
	a.completeFlag(cmd, "user", a.userNames)
	a.completeFlag(cmd, "partition", a.partitionNames)
	a.completeFlag(cmd, "node", a.nodeNames)
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
}

// given reports whether a flag of the selection was given.
func (s *selectFlags) given(fl *pflag.FlagSet) bool {
	for _, name := range []string{"user", "me", "account", "partition", "qos", "name", "state", "node"} {
		if fl.Changed(name) {
			return true
		}
	}
	return false
}

func (s *selectFlags) selection(ids []string) api.Select {
	sel := api.Select{
		IDs: ids, Users: s.users, Accounts: s.accounts, Partitions: s.partitions, QOS: s.qos, Names: s.names,
		States: longStates(s.states), Nodes: s.nodes,
	}
	if s.me {
		sel.Users = append(sel.Users, owner().User)
	}
	return sel
}

// queueFlags are the flags of cox queue.
type queueFlags struct {
	sel    selectFlags
	all    bool
	watch  bool
	format format
}

func (a *app) queueCommand() *cobra.Command {
	var f queueFlags
	cmd := &cobra.Command{
		Use:     "queue [JOB…]",
		Aliases: []string{"q"},
		Short:   "List what runs and waits",
		Long: `Lists the live jobs of everybody, or those that the flags choose. Waiting tasks of an
array stand in one line. With --all the jobs that ended in the past minutes are there
too; older ones are in cox history.

--watch draws the list anew whenever something changes; without a terminal it prints
the list once and then a line for every change.`,
		Example: `  cox queue
  cox queue --me
  cox queue -u anna,ben -t PENDING -o wide
  cox queue -p gpu --watch
  cox queue -o json | jq '.jobs[].name'
  cox cancel $(cox queue --me -t PENDING -o name)`,
		ValidArgsFunction: a.completeJobs,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return a.queue(cmd.Context(), c, &f, args)
		}),
	}
	f.sel.add(a, cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "also jobs that ended a moment ago")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "go on, and show changes as they come")
	formatFlag(cmd, &f.format, asWide, asJSON, asYAML, asName)
	return cmd
}

func (a *app) queue(ctx context.Context, c *client.Client, f *queueFlags, ids []string) error {
	sel := f.sel.selection(ids)
	if f.all && len(sel.States) == 0 {
		sel.States = []string{"all"}
	}
	q := client.Query{Select: sel}
	switch {
	case f.format.machine():
		return a.queueData(ctx, c, q, f.format)
	case f.format == asName:
		names, err := jobNames(ctx, c, q)
		if err != nil {
			return err
		}
		return writeNames(a.out, names)
	}
	list := func() (*printer.Table, int, error) {
		rows, err := queueRows(ctx, c, q)
		return printer.Queue(a.page(a.out), rows, f.format == asWide), len(rows), err
	}
	if f.watch {
		return a.watchTable(ctx, c, list, client.WatchOptions{Jobs: ids, User: only(sel.Users)})
	}
	t, n, err := list()
	if err != nil {
		return err
	}
	if err := t.Write(a.out, a.page(a.out)); err != nil {
		return err
	}
	if n == 0 {
		fmt.Fprintln(a.err, nothing(&f.sel, ids))
	}
	return nil
}

// nothing says why a list is empty.
func nothing(s *selectFlags, ids []string) string {
	if len(ids) > 0 || s.me || len(s.users)+len(s.accounts)+len(s.partitions)+len(s.qos)+len(s.names)+len(s.states)+len(s.nodes) > 0 {
		return "no live job matches          cox history has those that ended"
	}
	return "no jobs: nothing runs, nothing waits          cox history has those that ended"
}

// only is the single entry of a list, or "".
func only(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return ""
}

func (a *app) queueData(ctx context.Context, c *client.Client, q client.Query, f format) error {
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
	return f.write(a.out, all)
}

// queueRows asks for the columns that the table shows, and no more.
func queueRows(ctx context.Context, c *client.Client, q client.Query) ([]printer.QueueRow, error) {
	q.Collapse = true
	var rows []printer.QueueRow
	err := eachLine(ctx, c, q, printer.QueueColumns(), func(fields []string) error {
		r, err := printer.QueueRowFrom(fields)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

func jobNames(ctx context.Context, c *client.Client, q client.Query) ([]string, error) {
	var names []string
	err := eachLine(ctx, c, q, []string{"name"}, func(fields []string) error {
		names = append(names, fields[0])
		return nil
	})
	return names, err
}

func eachLine(ctx context.Context, c *client.Client, q client.Query, columns []string, f func(fields []string) error) error {
	r, err := c.JobsTSV(ctx, q, columns...)
	if err != nil {
		return err
	}
	defer r.Close()
	return readTSV(r, f)
}

func readTSV(r io.Reader, f func(fields []string) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			for i := range fields {
				fields[i] = api.UnescapeTSV(fields[i])
			}
			if err := f(fields); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}
