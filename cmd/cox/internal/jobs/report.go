package jobs

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/report"
)

// reportHelp is the help of each kind of report.
var reportHelp = []struct {
	kind            report.Kind
	short, long, by string
}{
	{
		report.Usage, "Show GPU-hours asked for, allocated and used", `Shows what jobs asked for, what they were allocated and what they used of it: hours
of GPUs and CPUs. A job asks for its time limit; one without a limit asked for what it
held. Use is measured where the engine can; "-" is not known.`, "account,user",
	},
	{
		report.Waits, "Show how long jobs waited", `Shows how long the jobs that started in this time had waited: the median, 90 % and
99 %, by the size of the jobs. Jobs that still wait are counted beside them.`, "account",
	},
	{
		report.Fairness, "Compare shares with use", `Shows the tree of accounts with the share of each and what it used of the machine in
this time. USE/SHARE above 1 is more than the share. --by user shows users too.`, "user",
	},
	{
		report.Efficiency, "Show what was held and not used", `Shows idle GPUs and CPUs, memory that was asked for and not touched, time limits that
were too long, and GPU-hours of jobs that failed. -o wide shows all columns.`, "user",
	},
	{
		report.Cost, "Show what jobs cost, and budgets", `Shows the cost of jobs by the site's prices (prices in queues.yaml) and what is
spent of each budget. It warns of budgets that are spent.`, "pool",
	},
}

// reportFlags are the flags of cox report.
type reportFlags struct {
	since, until        string
	by, users, accounts []string
	format              cli.Format
}

func reportCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Report usage, waits, fairness, efficiency and cost",
		Long: `Reports on the jobs of a time, by account, user, QOS, pool or service: as a table, a
page of HTML with plots, CSV, Markdown or JSON. The numbers are those of sacct.`,
		Example: `  cox report usage --since 7d
  cox report waits --since 2026-11-01 --until 2026-12-01 -o html > waits.html`,
	}
	for _, h := range reportHelp {
		var f reportFlags
		kind := string(h.kind)
		sub := &cobra.Command{
			Use:   kind,
			Short: h.short,
			Long:  h.long,
			Example: fmt.Sprintf(`  cox report %[1]s --since 7d
  cox report %[1]s --since 2026-11-01 --until 2026-12-01 --by %[2]s
  cox report %[1]s --since 30d -o html > %[1]s.html`, kind, h.by),
			Args: cobra.NoArgs,
			RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
				return showReport(a, cmd, c, kind, &f)
			}),
		}
		fl := sub.Flags()
		fl.StringVarP(&f.since, "since", "S", "30d", "count from this time on: 7d, yesterday, 2026-11-01")
		fl.StringVarP(&f.until, "until", "E", "", "count up to this time (default: now)")
		keys := make([]string, 0, len(report.Keys()))
		for _, k := range report.Keys() {
			keys = append(keys, string(k))
		}
		if h.kind == report.Fairness {
			keys = keys[:2]
		} else {
			fl.StringSliceVarP(&f.users, "user", "u", nil, "only jobs of these users")
			fl.StringSliceVarP(&f.accounts, "account", "A", nil, "only jobs of these accounts")
		}
		fl.StringSliceVar(&f.by, "by", []string{string(report.ByAccount)}, "a row for each: "+strings.Join(keys, ", "))
		_ = sub.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(keys, cobra.ShellCompDirectiveNoFileComp))
		a.ListFlags(sub, &f.format, true, cli.AsCSV, cli.AsMarkdown, cli.AsHTML)
		cmd.AddCommand(sub)
	}
	return cli.Group(cmd)
}

func showReport(a *cli.App, cmd *cobra.Command, c *client.Client, kind string, f *reportFlags) error {
	ctx := cmd.Context()
	q := client.ReportQuery{By: f.by, Users: f.users, Accounts: f.accounts}
	if _, err := report.ParseKeys(report.Kind(kind), f.by); err != nil {
		return err
	}
	var err error
	if q.From, err = parsePastTime("since", f.since, a.Now()); err != nil {
		return err
	}
	if q.To, err = parsePastTime("until", f.until, a.Now()); err != nil {
		return err
	}
	if !q.To.IsZero() && !q.From.Before(q.To) {
		return fault.New(fault.Invalid, "--until=%s is not later than --since=%s", f.until, f.since).Advise("2h means two hours ago: name the earlier time with --since")
	}
	if slices.Contains([]cli.Format{cli.AsCSV, cli.AsMarkdown, cli.AsHTML}, f.format) {
		for _, flag := range []string{"sort-by", "limit", "no-headers"} {
			if cmd.Flags().Changed(flag) {
				return fault.New(fault.Invalid, "--%s has no effect on -o %s, which is the server's form of the report", flag, f.format).Advise("leave it out, or choose a table or -o json")
			}
		}
		form, err := c.ReportForm(ctx, kind, string(f.format), &q)
		if err != nil {
			return err
		}
		defer form.Close()
		_, err = io.Copy(a.Out, form)
		return err
	}
	r, err := c.Report(ctx, kind, &q)
	if err != nil {
		return err
	}
	switch {
	case f.format.IsData():
		return a.WriteData(f.format, r)
	case f.format == cli.AsName:
		return a.WriteNames(reportNames(r))
	}
	fmt.Fprint(a.Err, reportNotes(a.Page(a.Err), r))
	if len(r.Rows) == 0 {
		fmt.Fprintln(a.Err, "no job ran in this time")
	} else if err := reportTable(r, f.format == cli.AsWide, a.Page(a.Out)).Write(a.Out, a.Page(a.Out)); err != nil {
		return err
	}
	if len(r.Budgets) > 0 {
		fmt.Fprintln(a.Out)
		return budgetTable(r).Write(a.Out, printer.Page{Now: a.Now(), Width: a.Page(a.Out).Width, Colour: a.Page(a.Out).Colour})
	}
	return nil
}
