package submission

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/internal/localrun"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/service"
)

// runFlags are the flags of cox run.
type runFlags struct {
	queued    bool // the job goes through the queue of a server
	once      bool // a text has a schedule, and its job runs once
	job       jobOptions
	nodes     int // of the room
	gpus      int // of each node of the room
	stateDir  string
	also      []string
	raw       bool
	quiet     bool
	verbose   bool
	byAddress bool
	network   string
	strict    bool
	share     bool
	here      bool
	grace     time.Duration
}

func runCommand(a *cli.App) *cobra.Command { return runCommandOf(a, &runFlags{}) }

// runCommandOf is cox run with its flags.
func runCommandOf(a *cli.App, f *runFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [flags] FILE [ARG…]  |  run [flags] -- COMMAND [ARG…]",
		Short: "Run a script or a command on this machine and show it to its end",
		Long: `Runs an sbatch script as on a Slurm cluster, on virtual nodes of this machine: all
nodes at once or none, all ranks together. It shows the output by rank and a summary
at the end. "-" reads the script from standard input. After "--" comes a command that
every task runs.

All options of sbatch work, with sbatch's letters and meaning, for every kind of
FILE (docs/reference/sbatch.md lists them). Options come before FILE; words after FILE go to
the script. This machine plays as many virtual nodes as the job asks for;
--virtual-nodes and --virtual-gpus fix how many there are. The exit code is the
job's (docs/reference/exit-codes.md). Ctrl-C cancels, a second Ctrl-C kills.

If a server of this machine answers (cox up), the job goes through its queue, and
cox run follows it there. --here runs it on virtual nodes of its own instead; nothing
counts its CPUs and memory then.`,
		Example: `  cox run examples/train.sbatch
  cox run -N 2 --gpus-per-node 4 train.sbatch --epochs 3
  cox run -t 10 --mem 8G -o out-%j.log train.yaml
  cox run --virtual-nodes 1 --also second.sbatch first.sbatch
  cox run -N 4 -n 8 -- sh -c 'echo rank $SLURM_PROCID on $(hostname)'
  generate | cox run -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			a.Code, err = f.runJobs(a, cmd, args)
			return err
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // what follows FILE is the script's
	fl.IntVar(&f.nodes, "virtual-nodes", 0, "number of virtual nodes (default: as the job asks for)")
	fl.IntVar(&f.gpus, "virtual-gpus", -1, "GPUs of each virtual node (default: as the job asks for)")
	fl.StringArrayVar(&f.also, "also", nil, "another FILE to run beside the first, or after it if both do not fit")
	fl.StringVar(&f.stateDir, "state-dir", "", "keep the journal and logs here (default: a temporary folder)")
	cli.DurationFlag(fl, &f.grace, "grace", 30*time.Second, "time between the signal and the kill")
	fl.BoolVar(&f.raw, "raw", false, "print output lines without the rank")
	fl.BoolVar(&f.strict, "strict", false, "treat warnings as errors")
	fl.BoolVar(&f.here, "here", false, "run it on virtual nodes of its own, not through the server's queue")
	fl.BoolVar(&f.share, "share", false, "also use GPUs that others on this machine use")
	fl.BoolVarP(&f.quiet, "quiet", "Q", false, "print only the job's output and errors")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "print what the control plane does")
	fl.BoolVar(&f.byAddress, "by-address", false, "name virtual nodes by their addresses, without host names")
	fl.StringVar(&f.network, "network", "", "of virtual nodes: own or shared (default: own for root)")
	f.job.addTo(a, cmd)
	return cmd
}

func (f *runFlags) runJobs(a *cli.App, cmd *cobra.Command, args []string) (int, error) {
	if err := f.checkFlags(); err != nil {
		return 0, err
	}
	server, err := serverHere(a, cmd.Context())
	if err != nil {
		return 0, err
	}
	if server != nil {
		defer server.Close()
	}
	if server != nil && !f.here {
		if err := checkRoomFlags(cmd, server); err != nil {
			return 0, err
		}
	}
	if f.queued = server != nil && !f.here; !f.queued && f.job.webhook != "" {
		return 0, fault.New(fault.Unsupported, "--notify-url: no server runs this job, and a server sends the webhooks").Advise("hand it to a server: cox submit; or leave --notify-url out")
	}
	requests, sources, err := f.readRequests(a, cmd, args)
	if err != nil {
		return 0, err
	}
	if server != nil && f.here && !f.quiet {
		fmt.Fprintf(os.Stderr, "here     past the queue of the server at %s: its jobs and this one share CPUs and memory\n", server.Address())
	}
	level := slog.LevelError
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	input, closeInput, err := passInput(requests)
	if err != nil {
		return 0, err
	}
	defer closeInput()
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
	if i := slices.IndexFunc(requests, func(r *intake.Request) bool { return r.Service != nil }); i >= 0 {
		if len(requests) > 1 || f.stateDir != "" || input != "" {
			return 0, fault.New(fault.Unsupported, "%s is a service: it runs alone, without --also, --state-dir and standard input", requests[i].Text.Name).Advise("start a server for several (cox up -d), and submit each")
		}
		list, err := f.submissions(cmd, sources, requests)
		if err != nil {
			return 0, err
		}
		if f.here {
			server = nil
		}
		return f.runService(cmd.Context(), a, server, list[0], service.FullName(requests[0].Service.Account, requests[0].Service.Name), log, signals)
	}
	opt := localrun.Options{
		Requests: requests, Shape: localrun.Shape{Nodes: f.nodes, GPUsPerNode: f.gpus}, StateDir: f.stateDir,
		Raw: f.raw, Quiet: f.quiet, Strict: f.strict, Grace: f.grace, Out: os.Stdout, Err: os.Stderr, Terminal: terminal, Width: width,
		Signals: signals, Log: log, Who: cli.Caller().User,
	}
	if server != nil && !f.here {
		jobs, err := f.submissions(cmd, sources, requests)
		if err != nil {
			return 0, err
		}
		if input != "" {
			jobs[0].Args = append(jobs[0].Args, "--input="+input)
		}
		q := localrun.Queued{Client: server, Jobs: jobs}
		if cmd.Flags().Changed("grace") {
			q.Grace = &f.grace
		}
		return localrun.RunQueued(cmd.Context(), opt, q)
	}
	here, own, err := openMachine(cmd.Context(), log, wantGPUs(requests))
	if err == nil && !f.share {
		err = freeDevices(&here, f.stateDir)
	}
	if err != nil {
		return 0, err
	}
	opt.Machine, opt.OpenEngine = here, openLocal(log, f, own)
	return localrun.Run(cmd.Context(), opt)
}

func (f *runFlags) checkFlags() error {
	switch {
	case f.nodes < 0 || f.nodes > 1000:
		return fault.New(fault.Invalid, "--virtual-nodes %d: there can be 1 to 1000", f.nodes)
	case f.gpus < -1 || f.gpus > 64:
		return fault.New(fault.Invalid, "--virtual-gpus %d: a node has 0 to 64 GPUs", f.gpus)
	case f.grace < 0:
		return fault.New(fault.Invalid, "--grace %s: it cannot be negative", f.grace)
	}
	return nil
}

// readRequests reads the scripts, or the command, to run.
func (f *runFlags) readRequests(a *cli.App, cmd *cobra.Command, args []string) (out []*intake.Request, sources []source, err error) {
	if len(args) > 0 || f.job.wrap != "" || f.stateDir == "" { // else what the state directory has goes on
		src, err := f.job.readSource(a, cmd, args, "")
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, src)
	}
	for _, name := range f.also {
		data, err := readScript(name, cmd.Name(), a.In)
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, source{text: intake.Text{Form: intake.Detect(name, data), Name: name, Data: data}})
	}
	if sources, err = splitSources(sources); err != nil {
		return nil, nil, err
	}
	for _, src := range sources {
		r, err := f.readRequest(src)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, r)
	}
	return out, sources, nil
}

// readRequest reads one text, with the options of the command line.
func (f *runFlags) readRequest(src source) (*intake.Request, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	env, err := f.job.variables()
	if err != nil {
		return nil, err
	}
	o := intake.Options{
		Owner: cli.Caller(), Args: f.job.args(), Set: env, Image: f.job.image, ScriptArgs: src.args, Environ: os.Environ(),
		Dir: dir, Host: cli.Hostname(), Strict: f.strict, ReadFile: os.ReadFile,
	}
	if f.queued { // the server says what it sends
		o.Webhook = func(string) error { return nil }
	}
	r, err := intake.Read(src.text, o)
	if err != nil {
		return nil, err
	}
	if !f.queued {
		if err := r.CheckFields(""); err != nil {
			return nil, err
		}
	}
	if r.Spec.Held {
		if _, given := r.Spec.Source.Given["hold"]; !given && r.Text.Form == api.FormManifest {
			return nil, fault.New(fault.Invalid, "%s: suspend: true: cox run waits for its job, and nobody could release it", r.Text.Name).Advise("take suspend out, or hand the job to a server: cox submit %s", r.Text.Name)
		}
		return nil, fault.New(fault.Invalid, "--hold: cox run waits for its job, and nobody could release it").Advise("leave --hold out, or hand the job to a server: cox submit --hold")
	}
	if _, given := r.Spec.Source.Given["output"]; !given && src.text.Form == api.FormCommand {
		r.Spec.Output.Stdout = "" // it is shown, and leaves no file behind
	}
	if r.Service != nil {
		return r, nil
	}
	if r.Schedule != nil {
		f.once, r.Schedule = true, nil
		if !f.quiet {
			fmt.Fprintf(os.Stderr, "once     %s has a schedule; this runs its job once, now; cox submit %s keeps the schedule\n", src.text.Name, src.text.Name)
		}
	}
	_, r.Spec.Requeue = r.Spec.Source.Given["requeue"] // somebody waits for it: it runs once, unless it says otherwise
	return r, nil
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
