package submission

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/internal/localrun"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// runFlags are the flags of cox run.
type runFlags struct {
	nodes     int
	gpus      int
	tasks     int
	stateDir  string
	also      []string
	options   []string
	raw       bool
	quiet     bool
	verbose   bool
	byAddress bool
	strict    bool
	share     bool
	grace     time.Duration
	time      string
}

func runCommand(a *cli.App) *cobra.Command { return runCommandOf(a, &runFlags{}) }

// runCommandOf is cox run with its flags.
func runCommandOf(a *cli.App, f *runFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [flags] FILE [ARG…]  |  run [flags] -- COMMAND [ARG…]",
		Short: "Run a script or a command on virtual nodes of this machine",
		Long: `Runs an sbatch script as it would run on a Slurm cluster, on virtual nodes of this
machine: all nodes at once or not at all, its ranks started together, what they
write shown by rank, and a summary at the end. "-" reads the script from standard
input. After "--" comes a command that every task of a gang runs.

The room of virtual nodes grows to what the file asks for; --nodes and
--gpus-per-node fix its shape. The exit code is the job's (docs/exit-codes.md).
Ctrl-C cancels, a second Ctrl-C kills.`,
		Example: `  cox run examples/train.sbatch
  cox run --nodes 2 --gpus-per-node 4 train.sbatch --epochs 3
  cox run -s --time=10 -s --qos=low train.sbatch
  cox run --also second.sbatch first.sbatch
  cox run --nodes 4 -n 8 -- sh -c 'echo rank $SLURM_PROCID on $(hostname)'
  generate | cox run -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			a.Code, err = f.runJobs(cmd, args)
			return err
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // what follows FILE is the script's
	fl.IntVar(&f.nodes, "nodes", 0, "virtual nodes of the room (default: as many as asked for)")
	fl.IntVar(&f.gpus, "gpus-per-node", -1, "GPUs of each virtual node (default: as many as asked for)")
	fl.IntVarP(&f.tasks, "ntasks", "n", 0, "tasks (default: as FILE says; of a command one per node)")
	fl.StringVarP(&f.time, "time", "t", "", "time limit, as sbatch spells it (default: as FILE says)")
	fl.StringArrayVarP(&f.options, "sbatch", "s", nil, "an option of sbatch that outranks the file, as in -s --time=10")
	fl.StringArrayVar(&f.also, "also", nil, "another script to run with the first; what does not fit together runs one after the other")
	fl.StringVar(&f.stateDir, "state-dir", "", "keep the journal and logs here (default: a temporary folder)")
	fl.DurationVar(&f.grace, "grace", 30*time.Second, "between the signal to end and the kill")
	fl.BoolVar(&f.raw, "raw", false, "output lines without the rank before them")
	fl.BoolVar(&f.strict, "strict", false, "refuse what would only be warned of")
	fl.BoolVar(&f.share, "share", false, "use GPUs that others of this machine have too")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "nothing but the job's output and errors")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say what the control plane does")
	fl.BoolVar(&f.byAddress, "by-address", false, "virtual nodes without host names: their names are their addresses")
	return cmd
}

func (f *runFlags) runJobs(cmd *cobra.Command, args []string) (int, error) {
	if err := f.checkFlags(); err != nil {
		return 0, err
	}
	requests, err := f.readRequests(cmd, args)
	if err != nil {
		return 0, err
	}
	level := slog.LevelError
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	here, own, err := openMachine(cmd.Context(), log, wantGPUs(requests))
	if err == nil && !f.share {
		err = freeDevices(&here, f.stateDir)
	}
	if err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 2)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // as under nohup, or in the background of a script
			signal.Notify(signals, sig)
		}
	}
	defer signal.Stop(signals)
	unread := make(chan os.Signal, 1) // a pipe without a reader is an error of the write, not our end
	signal.Notify(unread, syscall.SIGPIPE)
	defer signal.Stop(unread)
	width, _, err := term.GetSize(int(os.Stderr.Fd()))
	terminal := err == nil && term.IsTerminal(int(os.Stderr.Fd()))
	return localrun.Run(cmd.Context(), localrun.Options{
		Requests: requests, Shape: localrun.Shape{Nodes: f.nodes, GPUsPerNode: f.gpus}, StateDir: f.stateDir,
		Raw: f.raw, Quiet: f.quiet, Strict: f.strict, Grace: f.grace, Out: os.Stdout, Err: os.Stderr, Terminal: terminal, Width: width,
		Signals: signals, Log: log, Who: cli.Caller().User,
		OpenEngine: openLocal(log, f.byAddress, f.share, own), Machine: here,
	})
}

func (f *runFlags) checkFlags() error {
	switch {
	case f.nodes < 0 || f.nodes > 1000:
		return fault.New(fault.Invalid, "--nodes %d: a room has 1 to 1000 nodes", f.nodes)
	case f.gpus < -1 || f.gpus > 64:
		return fault.New(fault.Invalid, "--gpus-per-node %d: a node has 0 to 64 GPUs", f.gpus)
	case f.tasks < 0:
		return fault.New(fault.Invalid, "--ntasks %d: a gang has at least one task", f.tasks)
	case f.grace < 0:
		return fault.New(fault.Invalid, "--grace %s: it cannot be negative", f.grace)
	}
	return nil
}

// readRequests reads the scripts, or the command, to run.
func (f *runFlags) readRequests(cmd *cobra.Command, args []string) ([]*intake.Request, error) {
	var out []*intake.Request
	switch {
	case len(args) > 0 && cmd.ArgsLenAtDash() == 0:
		if len(f.options) > 0 {
			return nil, fault.New(fault.Invalid, "--sbatch %s goes with FILE, not with a command", f.options[0]).
				Advise("-n, -t, --nodes and --gpus-per-node say the shape of a command; cox submit -N2 -- COMMAND takes more")
		}
		r, err := f.commandRequest(args)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	case len(args) > 0:
		r, err := f.scriptRequest(args[0], args[1:], f.shapeOptions())
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	case f.stateDir == "":
		return nil, fault.New(fault.Invalid, "there is nothing to run").Advise("cox run FILE, cox run - for standard input, or cox run -- COMMAND")
	}
	for _, name := range f.also {
		r, err := f.scriptRequest(name, nil, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	for _, r := range out { // somebody waits for it here: it runs once, unless it says otherwise
		_, r.Spec.Requeue = r.Spec.Source.Given["requeue"]
	}
	return out, nil
}

// commandRequest makes the request for "-- COMMAND": one task per node of the room unless
// more are asked for.
func (f *runFlags) commandRequest(args []string) (*intake.Request, error) {
	nodes := max(f.nodes, 1)
	tasks := f.tasks
	if tasks == 0 {
		tasks = nodes
	}
	if tasks < nodes {
		nodes = tasks
	}
	perNode := (tasks + nodes - 1) / nodes
	g := job.TaskGroup{
		Nodes: job.Range{Min: nodes, Max: nodes}, Tasks: job.Count{Want: tasks}, TasksPerNode: perNode,
		PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(1)}},
	}
	if f.gpus > 0 {
		g.PerNode.Devices = []resource.DeviceRequest{{Count: f.gpus}}
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	s := &job.Spec{
		Name: filepath.Base(args[0]), Owner: cli.Caller(), Groups: []job.TaskGroup{g}, WorkDir: dir, KillOnBadExit: true,
		Program: job.Program{Kind: job.Direct, Args: args},
		Source:  job.Source{Form: "command", Submit: dir, Host: cli.Hostname(), Given: map[string]string{"ntasks": strconv.Itoa(tasks), "nodes": strconv.Itoa(nodes)}},
	}
	if f.time != "" {
		if s.TimeLimit, err = slurmfmt.ParseTimeLimit(f.time); err != nil {
			return nil, fault.New(fault.Invalid, "--time %s: %w", f.time, err)
		}
	}
	return &intake.Request{Text: intake.Text{Form: api.FormCommand, Command: args}, Spec: s, Env: os.Environ()}, nil
}

// scriptRequest reads and parses a file in any form, "-" for standard input.
func (f *runFlags) scriptRequest(name string, args, shape []string) (*intake.Request, error) {
	data, err := readScript(name, os.Stdin)
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return intake.Read(intake.Text{Form: intake.Detect(name, data), Name: name, Data: data}, intake.Options{
		Owner: cli.Caller(), Args: append(shape, f.options...), ScriptArgs: args, Environ: os.Environ(), Dir: dir, Host: cli.Hostname(), Strict: f.strict, ReadFile: os.ReadFile,
	})
}

// shapeOptions are -n and -t as options of sbatch, which outrank those of FILE.
func (f *runFlags) shapeOptions() (out []string) {
	if f.tasks > 0 {
		out = append(out, fmt.Sprintf("--ntasks=%d", f.tasks))
	}
	if f.time != "" {
		out = append(out, "--time="+f.time)
	}
	return out
}

func wantGPUs(requests []*intake.Request) bool {
	for _, r := range requests {
		for _, g := range r.Spec.Groups {
			if g.PerNode.DeviceCount()+g.PerTask.DeviceCount()+g.Total.DeviceCount() > 0 {
				return true
			}
		}
	}
	return false
}
