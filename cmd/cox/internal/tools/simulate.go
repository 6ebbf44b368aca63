package tools

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/sim/demo"
	"github.com/coxswain-sched/coxswain/sim/study"
	"github.com/coxswain-sched/coxswain/sim/trace"
)

// simulateOptions is what cox simulate was told.
type simulateOptions struct {
	demo     string
	cluster  string
	policies []string
	limits   string
	strict   bool
	first    int
	cycle    time.Duration
	html     string
	format   cli.Format
}

func simulateCommand(a *cli.App) *cobra.Command {
	var o simulateOptions
	cmd := &cobra.Command{
		Use:   "simulate TRACE --cluster FILE [--policy FILE]…",
		Short: "Run a recorded workload through the scheduling core on simulated time",
		Long: `Runs a recorded workload through the scheduling core, the code that also decides in a
server, on simulated time. It measures use, waits, slowdown and fairness.

TRACE is in the Standard Workload Format (.swf) or one of the published CSV forms of
GPU clusters (docs/explanation/simulate.md), compressed with gzip or not. --cluster
describes the machines; without it, a trace that gives its number of processors runs
on that many. --policy is a file of rules (as for cox apply). Give it several times
to compare the results, each named after its file. Without it, jobs start first
come, first served, with backfill.

--html writes one self-contained page with plots.
--demo deadlock shows why gangs are placed whole.`,
		Example: `  cox simulate kth.swf.gz
  cox simulate philly.csv.gz --cluster cluster.yaml --policy today.yaml --policy tomorrow.yaml --html report.html
  cox simulate --demo deadlock`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.demo != "" && o.demo != "deadlock":
				return fault.New(fault.Invalid, "--demo %q: there is no such demonstration", o.demo).Advise("there is one: --demo deadlock")
			case o.demo != "":
				return demo.Deadlock(cmd.OutOrStdout())
			case len(args) == 0:
				return fault.New(fault.Invalid, "cox simulate needs a trace, or --demo").Advise("for example: cox simulate trace.swf --cluster cluster.yaml, or cox simulate --demo deadlock")
			}
			return runSimulation(a, o, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.demo, "demo", "", "a demonstration instead of a trace: deadlock")
	f.StringVar(&o.cluster, "cluster", "", "file that describes the machines")
	f.StringArrayVar(&o.policies, "policy", nil, "file of the site's rules; give several to compare them")
	f.StringVar(&o.limits, "limits", string(study.Recorded), "time limits of jobs: recorded, rounded (run times, up to usual limits), exact (run times), none")
	f.BoolVar(&o.strict, "strict", false, "no job passes the first one: no backfill")
	f.IntVar(&o.first, "first", 0, "only this many jobs of the trace")
	cli.DurationFlag(f, &o.cycle, "cycle", 0, "time between decisions, such as 30s for Slurm's backfill; 0: at each event")
	f.StringVar(&o.html, "html", "", "write a page with plots to this file")
	cli.FormatFlag(cmd, &o.format, cli.AsJSON, cli.AsYAML)
	return cmd
}

func runSimulation(a *cli.App, o simulateOptions, file string) error {
	switch study.Limits(o.limits) {
	case study.Recorded, study.Rounded, study.Exact, study.NoLimits:
	default:
		return fault.New(fault.Invalid, "--limits %q: there is no such way", o.limits).Advise("recorded, rounded, exact or none")
	}
	if o.cycle < 0 {
		return fault.New(fault.Invalid, "--cycle %v: a time is not negative", o.cycle)
	}
	if o.first < 0 {
		return fault.New(fault.Invalid, "--first %d: a number of jobs is not negative", o.first)
	}
	log, err := readTrace(file)
	if err != nil {
		return err
	}
	if o.first > 0 && o.first < len(log.Jobs) {
		log.Jobs = log.Jobs[:o.first]
	}
	nodes, err := readCluster(o.cluster, log)
	if err != nil {
		return err
	}
	if len(o.policies) == 0 {
		o.policies = []string{""}
	}
	studies := make([]study.Study, len(o.policies))
	for i, name := range o.policies {
		s := study.Study{Name: "first come, first served", Log: log, Nodes: nodes, Strict: o.strict, Limits: study.Limits(o.limits), Cycle: o.cycle, Clock: a.Now}
		if name != "" {
			s.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
			if s.Policy, err = readPolicy(name); err != nil {
				return err
			}
			for _, rule := range unreachedRules(s.Policy) {
				fmt.Fprintf(a.Err, "%s: %s decide nothing here: no trace names any\n", name, rule)
			}
		}
		studies[i] = s
	}
	results := make([]*study.Result, len(studies))
	for i := range studies {
		results[i] = runStudy(a, studies[i])
	}
	if o.html != "" {
		if err := writePage(o.html, "cox simulate "+filepath.Base(file), results); err != nil {
			return err
		}
	}
	if o.format.IsData() {
		return a.WriteData(o.format, results)
	}
	return printStudies(a, results)
}

// unreachedRules are the rules that no trace can meet.
func unreachedRules(p *account.Policy) (out []string) {
	if len(p.Partitions) > 0 {
		out = append(out, "partitions")
	}
	if len(p.Licenses) > 0 {
		out = append(out, "licenses")
	}
	return out
}

// runStudy shows on a terminal how far it is.
func runStudy(a *cli.App, s study.Study) *study.Result {
	var ended, of atomic.Int64
	s.Progress = func(e, n int) {
		ended.Store(int64(e))
		of.Store(int64(n))
	}
	stop := a.ShowSpinner(func() string {
		const wide = 30
		full := int(wide * ended.Load() / max(1, of.Load()))
		return fmt.Sprintf("%s [%s%s] %d of %d jobs", s.Name, strings.Repeat("=", full), strings.Repeat(" ", wide-full), ended.Load(), of.Load())
	})
	defer stop()
	return s.Run()
}

func printStudies(a *cli.App, results []*study.Result) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\t")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t", r.Policy)
	}
	fmt.Fprintln(w)
	for _, row := range study.Rows {
		fmt.Fprintf(w, "%s\t", row.Name)
		for _, r := range results {
			fmt.Fprintf(w, "%s\t", row.Value(r))
		}
		fmt.Fprintln(w)
	}
	if slices.ContainsFunc(results, func(r *study.Result) bool { return r.Preempted > 0 }) {
		fmt.Fprint(w, "preempted\t")
		for _, r := range results {
			fmt.Fprintf(w, "%d\t", r.Preempted)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "took\t")
	for _, r := range results {
		fmt.Fprintf(w, "%.1f s\t", r.Took.Seconds())
	}
	fmt.Fprintln(w)
	return w.Flush()
}

func readTrace(file string) (*trace.Log, error) {
	log, err := trace.Open(file)
	var bad *trace.Error
	switch {
	case err == nil:
		return log, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Invalid, "%s: no such file", file)
	case errors.As(err, &bad):
		return nil, fault.New(fault.Invalid, "%w", err).Advise("docs/explanation/simulate.md says what each format has to look like")
	}
	return nil, fault.New(fault.KindOf(err), "read the trace: %w", err)
}

func readCluster(file string, log *trace.Log) ([]fleet.Node, error) {
	if file == "" {
		if log.Procs == 0 {
			return nil, fault.New(fault.Invalid, "%s does not say how large its machine was", log.Name).Advise("describe one: --cluster FILE with, for example, nodes: [{names: gpu[1-300], gpus: 8}]   (docs/explanation/simulate.md)")
		}
		return study.One(log.Procs), nil
	}
	data, err := readInput(file)
	if err != nil {
		return nil, err
	}
	return study.ReadCluster(file, data)
}

func readPolicy(file string) (*account.Policy, error) {
	data, err := readInput(file)
	if err != nil {
		return nil, err
	}
	return policy.Parse(file, data)
}

func readInput(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Invalid, "%s: no such file", file)
	}
	if err != nil {
		return nil, fault.New(cmp.Or(fault.KindOf(err), fault.Invalid), "read %s: %w", file, err)
	}
	return data, nil
}

func writePage(file, title string, results []*study.Result) error {
	f, err := os.Create(file)
	if err != nil {
		return fault.New(fault.Invalid, "write the report: %w", err)
	}
	err = study.Page(f, title, results)
	if err := errors.Join(err, f.Close()); err != nil {
		return fault.New(fault.KindOf(err), "write the report: %w", err)
	}
	return nil
}
