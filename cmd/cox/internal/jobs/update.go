package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// updates are the flags of cox update: how each becomes a field of api.Update.
var updates = []struct {
	name, doc string
	set       func(u *api.Update, v string, now time.Time) error
}{
	{"time", "time limit, such as 2:00:00 or 4h; 0: none", func(u *api.Update, v string, _ time.Time) error { return limitTo(&u.TimeLimit, v) }},
	{"time-min", "shortest time limit that may be given", func(u *api.Update, v string, _ time.Time) error { return limitTo(&u.TimeMin, v) }},
	{"nodes", "nodes, N or MIN-MAX", func(u *api.Update, v string, _ time.Time) (err error) {
		u.Nodes, err = nodeRange(v)
		return err
	}},
	{"partition", "partitions, joined by commas", func(u *api.Update, v string, _ time.Time) error {
		u.Partitions = strings.Split(v, ",")
		return nil
	}},
	{"account", "account that pays", func(u *api.Update, v string, _ time.Time) error { u.Account = &v; return nil }},
	{"qos", "quality of service", func(u *api.Update, v string, _ time.Time) error { u.QOS = &v; return nil }},
	{"job-name", "name", func(u *api.Update, v string, _ time.Time) error { u.Name = &v; return nil }},
	{"comment", "comment", func(u *api.Update, v string, _ time.Time) error { u.Comment = &v; return nil }},
	{"begin", "earliest start (now+1hour, 20:00, …)", func(u *api.Update, v string, now time.Time) error { return momentTo(&u.Begin, v, now) }},
	{"deadline", "time by which it must have ended", func(u *api.Update, v string, now time.Time) error { return momentTo(&u.Deadline, v, now) }},
	{"dependency", "wait for other jobs (afterok:7); empty: for none", func(u *api.Update, v string, _ time.Time) error { u.Depends = &v; return nil }},
	{"priority", "priority (administrators)", func(u *api.Update, v string, _ time.Time) error { return integerTo(&u.Priority, v) }},
	{"nice", "amount to subtract from the priority", func(u *api.Update, v string, _ time.Time) error { return integerTo(&u.Nice, v) }},
	{"requeue", "yes or no: whether it may run again after a loss", func(u *api.Update, v string, _ time.Time) error { return boolTo(&u.Requeue, v) }},
	{"max-running", "tasks of an array that may run at once; 0: no limit", func(u *api.Update, v string, _ time.Time) error {
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil {
			return fmt.Errorf("%q is not a number of tasks", v)
		}
		limit := uint32(n)
		u.MaxRunning = &limit
		return nil
	}},
	{"nodelist", "nodes that it must have (host list)", func(u *api.Update, v string, _ time.Time) error { return hostsTo(&u.NodeList, v) }},
	{"exclude", "nodes that it must not have (host list)", func(u *api.Update, v string, _ time.Time) error { return hostsTo(&u.Exclude, v) }},
	{"constraint", "features that its nodes must have", func(u *api.Update, v string, _ time.Time) error { u.Features = &v; return nil }},
}

func updateCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "update JOB… --FIELD VALUE",
		Short: "Change what a job asks for",
		Long: `Changes fields of jobs. Most can change only while the job waits. The owner can
always lower the time limit, and an administrator can raise it.`,
		Example: `  cox update 7 --time 2:00:00
  cox update 7 8 --nodes 4 --partition gpu,gpu-long
  cox update 7 --begin now+1hour --dependency afterok:6`,
	}
	fl := cmd.Flags()
	values := map[string]*string{}
	for _, u := range updates {
		values[u.name] = fl.String(u.name, "", u.doc)
	}
	cli.AllowEmpty(cmd, "account", "qos", "comment", "dependency", "nodelist", "exclude", "constraint")
	f := &changeFlags{past: "updated"}
	fl.BoolVar(&f.quiet, "quiet", false, "print only errors")
	cli.FormatFlag(cmd, &f.format, cli.AsJSON, cli.AsYAML, cli.AsName)
	cmd.Args = cli.RequireJobs("update")
	cmd.ValidArgsFunction = a.CompleteJobs
	a.CompleteFlag(cmd, "partition", a.PartitionNames)
	a.CompleteFlag(cmd, "nodelist", a.NodeNames)
	a.CompleteFlag(cmd, "exclude", a.NodeNames)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		u, err := readUpdate(a, fl, values)
		if err != nil {
			return err
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		defer c.Close()
		return changeJobs(a, cmd.Context(), c, f, &api.Change{Verb: api.VerbUpdate, Select: api.Select{IDs: args}, Update: u})
	}
	return cmd
}

// readUpdate makes the update of the flags that were given.
func readUpdate(a *cli.App, fl *pflag.FlagSet, values map[string]*string) (*api.Update, error) {
	u := &api.Update{}
	given := false
	for _, f := range updates {
		if !fl.Changed(f.name) {
			continue
		}
		given = true
		if err := f.set(u, *values[f.name], a.Now()); err != nil {
			return nil, fault.New(fault.Invalid, "--%s %w", f.name, err).Advise("--%s: %s", f.name, f.doc)
		}
	}
	if !given {
		return nil, fault.New(fault.Invalid, "say what to change").Advise("for example: cox update %s --time 2:00:00", strings.Join(fl.Args(), " "))
	}
	return u, nil
}

func limitTo(to **float64, v string) error {
	if len(v) > 1 && (v[0] == '+' || v[0] == '-') {
		return fmt.Errorf("%s: the new limit is set, not added to the old one: write the whole limit, such as 2:00:00 or 4h; cox show has the old one", v)
	}
	d, err := slurmfmt.ParseTimeLimit(cli.SlurmTime(v))
	s := d.Seconds()
	*to = &s
	return err
}

func momentTo(to **time.Time, v string, now time.Time) error {
	t, err := slurmfmt.ParseWhen(v, now)
	*to = &t
	return err
}

func integerTo(to **int64, v string) error {
	n, err := strconv.ParseInt(v, 10, 64)
	*to = &n
	if err != nil {
		return fmt.Errorf("%q is not a number", v)
	}
	return nil
}

func boolTo(to **bool, v string) error {
	yes := v == "yes" || v == "1" || v == "true"
	*to = &yes
	if !yes && v != "no" && v != "0" && v != "false" {
		return fmt.Errorf("%q is neither yes nor no", v)
	}
	return nil
}

func hostsTo(to **[]string, v string) error {
	names, err := hostlist.Expand(v)
	*to = &names
	return err
}

// nodeRange reads N, MIN- or MIN-MAX.
func nodeRange(v string) (*job.Range, error) {
	low, high, span := strings.Cut(v, "-")
	r := &job.Range{}
	var err error
	if r.Min, err = strconv.Atoi(low); err != nil || r.Min < 1 {
		return nil, fmt.Errorf("%q is not a number of nodes", v)
	}
	switch {
	case !span:
		r.Max = r.Min
	case high != "":
		if r.Max, err = strconv.Atoi(high); err != nil || r.Max < r.Min {
			return nil, fmt.Errorf("%q is not a range of nodes", v)
		}
	}
	return r, nil
}
