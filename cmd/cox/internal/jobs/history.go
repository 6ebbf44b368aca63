package jobs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/internal/joboutput"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// historyFlags are the flags of cox history.
type historyFlags struct {
	sel          selectFlags
	since, until string
	limit        int
	format       cli.Format
}

func historyCommand(a *cli.App) *cobra.Command {
	var f historyFlags
	cmd := &cobra.Command{
		Use:   "history [JOB…]",
		Short: "List jobs of the past, newest first",
		Long: `Lists the jobs that the server remembers, newest first, with those that run or
wait. --since and --until limit the time in which a job lived: a duration back from
now (90m, 2h, 7d), yesterday, or a date and time as in sbatch --begin. -o wide shows
what went wrong: whose failure it was (the job's, the node's, the engine's), and for the
30 newest failed jobs whose output you may see, the line of it that matters.`,
		Example: `  cox history
  cox history --me --since 7d
  cox history -u anna -t FAILED,TIMEOUT --limit 0
  cox history --since 2026-11-01 --until 2026-11-08 -o json`,
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return listHistory(a, cmd.Context(), c, &f, args)
		}),
	}
	f.sel.add(a, cmd)
	cmd.Flags().StringVarP(&f.since, "since", "S", "", "jobs that lived after this time")
	cmd.Flags().StringVarP(&f.until, "until", "E", "", "jobs that lived before this time")
	cmd.Flags().IntVar(&f.limit, "limit", 30, "at most this many (0: all)")
	a.ListFlags(cmd, &f.format, true)
	return cmd
}

func listHistory(a *cli.App, ctx context.Context, c *client.Client, f *historyFlags, ids []string) error {
	q := client.HistoryQuery{Select: f.sel.selectJobs(ids)}
	var err error
	if q.From, err = parsePastTime("since", f.since, a.Now()); err != nil {
		return err
	}
	if q.To, err = parsePastTime("until", f.until, a.Now()); err != nil {
		return err
	}
	if f.limit < 0 {
		return fault.New(fault.Invalid, "--limit=%d: this is not a number of jobs", f.limit).Advise("write 1 or more; 0 for all")
	}
	if f.limit > 0 {
		q.Limit = f.limit + 1
	}
	h := api.History{Jobs: []api.Job{}}
	more := false
	for j, err := range c.History(ctx, q) {
		if err != nil {
			return err
		}
		if more = f.limit > 0 && len(h.Jobs) == f.limit; more {
			break
		}
		h.Jobs = append(h.Jobs, j)
	}
	if f.format == cli.AsWide {
		addErrorLines(ctx, c, h.Jobs)
	}
	return printHistory(a, &h, f, more)
}

// Bounds of the lines that -o wide adds: of so many failed jobs, the newest, so many asked for at once, and
// so many characters of each.
const (
	mostErrorLines = 30
	linesAtOnce    = 8
	longestLine    = 200
)

// addErrorLines gives failed jobs without a message the line of their output that matters. The server
// shows a job's output to those alone who may see it.
func addErrorLines(ctx context.Context, c *client.Client, jobs []api.Job) {
	var asking sync.WaitGroup
	turn, left := make(chan struct{}, linesAtOnce), mostErrorLines
	for i := range jobs {
		j := &jobs[i]
		if j.State != "FAILED" || j.Message != "" || left == 0 {
			continue
		}
		left--
		turn <- struct{}{}
		asking.Go(func() {
			defer func() { <-turn }()
			if line := []rune(joboutput.FirstError(ctx, c, j)); len(line) > longestLine {
				j.Message = string(line[:longestLine-1]) + "…"
			} else {
				j.Message = string(line)
			}
		})
	}
	asking.Wait()
}

func printHistory(a *cli.App, h *api.History, f *historyFlags, more bool) error {
	switch {
	case f.format.IsData():
		return a.WriteData(f.format, h)
	case f.format == cli.AsName:
		var names []string
		for i := range h.Jobs {
			names = append(names, h.Jobs[i].Name)
		}
		return a.WriteNames(names)
	}
	p := a.Page(a.Out)
	if f.format == cli.AsWide {
		p.Width = 0 // all columns, whole
	}
	if err := printer.History(p, h.Jobs, f.format == cli.AsWide).Write(a.Out, p); err != nil {
		return err
	}
	switch {
	case len(h.Jobs) == 0:
		fmt.Fprintln(a.Err, "no job matches")
	case more:
		fmt.Fprintf(a.Err, "the %d newest; --limit 0 shows all\n", f.limit)
	}
	return nil
}

// parsePastTime reads a moment that lies back: a duration, yesterday, or what sbatch takes.
func parsePastTime(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if s == "yesterday" {
		y, m, d := now.AddDate(0, 0, -1).Date()
		return time.Date(y, m, d, 0, 0, 0, 0, now.Location()), nil
	}
	if d, ok := parseLookback(s); ok {
		return now.Add(-d), nil
	}
	t, err := slurmfmt.ParseWhen(s, now)
	if d, isSpan := slurmfmt.ParseSpan(s); err != nil && isSpan == nil && d > 0 {
		return now.Add(-d), nil // 1-0
	}
	if err != nil {
		return t, fault.New(fault.Invalid, "--%s=%s: this is neither a length of time (90m, 2h, 7d) nor a time", flag, s).Advise("for example: --%s 2h, --%[1]s yesterday, --%[1]s 14:30, --%[1]s 2026-12-01T08:00", flag)
	}
	if s == "today" || strings.Count(s, ":") > 0 && !strings.ContainsAny(s, "-/") && t.After(now) {
		t = t.AddDate(0, 0, -1) // a time of day that is to come means the last one
	}
	if s == "today" {
		y, m, d := now.Date()
		t = time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	}
	return t, nil
}

// parseLookback reads 90m, 2h, 7d or 2w.
func parseLookback(s string) (time.Duration, bool) {
	unit := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[s[len(s)-1]]
	if unit != 0 {
		var n int
		if _, err := fmt.Sscanf(s[:len(s)-1], "%d", &n); err != nil || n < 0 || n > 36500 || fmt.Sprint(n) != s[:len(s)-1] {
			return 0, false
		}
		return time.Duration(n) * unit, true
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0
}
