package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
	"github.com/coxswain-sched/coxswain/server/serverlog"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// upFlags outrank the configuration file.
type upFlags struct {
	file, stateDir, socket, tcp string
	network                     string
	nodes, gpus                 int
	detach, unit, userUnit      bool
	verbose, share, dev         bool
	noGateway                   bool
	named                       bool // a configuration file or --state-dir says where the state is
}

func upCommand(a *cli.App) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a server on this machine: durable queue, unix socket, loopback TCP with a token",
		Long: `Starts the server in the foreground (-d: in the background). It may be killed at
any moment: accepted jobs are durable, running jobs continue, and the next cox up
takes them up again. Only one server can use a state directory at a time.

Without a configuration the server offers this machine as one node; --nodes divides
it into virtual nodes. --dev starts a temporary server: its state is in a temporary
folder, and ends with the server, as do its jobs.`,
		Example: `  cox up
  cox up -d --nodes 4 --gpus-per-node 8
  cox up --dev --nodes 2 --gpus-per-node 4
  cox up --config /etc/coxswain/cox.yaml
  cox up --systemd-unit > /etc/systemd/system/coxswain.service`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.file, "config", "", "configuration file (default: see docs/reference/configuration.md)")
	fl.StringVar(&f.stateDir, "state-dir", "", "state directory")
	fl.StringVar(&f.socket, "socket", "", "unix socket")
	fl.StringVar(&f.tcp, "tcp", "", "loopback address, auto or none")
	fl.IntVar(&f.nodes, "nodes", 0, "virtual nodes of this machine (0: this machine as one node)")
	fl.IntVar(&f.gpus, "gpus-per-node", -1, "GPUs of each virtual node (-1: the real ones)")
	fl.StringVar(&f.network, "network", "", "network of virtual nodes: own or shared (default: own for root)")
	fl.BoolVarP(&f.detach, "detach", "d", false, "run in the background; return when the server answers")
	fl.BoolVar(&f.unit, "systemd-unit", false, "print a systemd unit and start nothing")
	fl.BoolVar(&f.userUnit, "user", false, "with --systemd-unit: for a user's own systemd")
	fl.BoolVar(&f.dev, "dev", false, "temporary server: its state and its jobs end with it")
	fl.BoolVar(&f.noGateway, "no-gateway", false, "start no gateway for services")
	fl.BoolVar(&f.share, "share", false, "also hand out GPUs that others on this machine use")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log at level debug")
	return cmd
}

// loadConfig reads the file and lays the flags over it.
func (f *upFlags) loadConfig(cmd *cobra.Command) (config.Config, string, error) {
	set := cmd.Flags().Changed
	c, file, err := config.Default(), "", error(nil)
	if !f.dev || f.file != "" { // the site's file is not a throw-away server's
		c, file, err = config.Load(f.file)
	}
	if err != nil {
		return c, file, err
	}
	f.named = file != "" || set("state-dir") || os.Getenv("NOTIFY_SOCKET") != "" // a unit of systemd's is a configuration, too
	if f.dev {
		if err := f.useTemporaryState(&c, set); err != nil {
			return c, file, err
		}
	}
	if set("state-dir") {
		if c.State.Dir, err = filepath.Abs(f.stateDir); err != nil {
			return c, file, err
		}
		if c.Listen.Socket == config.Default().Listen.Socket && c.State.Dir != config.Default().State.Dir {
			c.Listen.Socket = filepath.Join(c.State.Dir, "cox.sock") // another state directory is another server
		}
	}
	if set("socket") {
		if c.Listen.Socket, err = filepath.Abs(f.socket); err != nil {
			return c, file, err
		}
	}
	if set("tcp") {
		c.Listen.TCP = f.tcp
	}
	if f.noGateway {
		c.Gateway.Listen = "none"
	}
	if set("nodes") {
		c.Room.Nodes = f.nodes
	}
	if set("gpus-per-node") {
		c.Room.GPUsPerNode = f.gpus
		c.Room.Nodes = max(c.Room.Nodes, 1)
	}
	if set("network") {
		c.Room.Network = f.network
	}
	if f.verbose {
		c.Log.Level = "debug"
	}
	if err = c.Check(); err != nil && f.dev {
		err = errors.Join(err, os.RemoveAll(c.State.Dir))
	}
	return c, file, err
}

func (f *upFlags) serve(cmd *cobra.Command) error {
	c, file, err := f.loadConfig(cmd)
	if err != nil {
		return cli.NotDone(explainOtherFile(f.file, err), "not started")
	}
	switch {
	case f.unit:
		binary, err := os.Executable()
		if err != nil {
			return err
		}
		_, err = io.WriteString(cmd.OutOrStdout(), daemon.Unit(binary, file, f.userUnit))
		return err
	case f.detach:
		return f.startInBackground(cmd, &c)
	}
	if f.dev {
		defer os.RemoveAll(c.State.Dir)
	}
	printStart(cmd.ErrOrStderr(), &c)
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if os.Getenv(detachedVariable) != "" {
		signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
	}
	log, err := openLog(&c)
	if err != nil {
		return err
	}
	if log != os.Stderr {
		defer log.Close()
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	return daemon.Run(ctx, daemon.Options{
		Gateway: binary,
		Config:  c, Share: f.share, Caller: f.caller(), ThrowAway: f.dev,
		Cox: cli.SlurmBinaryPath(), Version: cli.Version(), Log: newLogger(&c, log), Ready: func(i daemon.Info) { f.printReady(cmd.ErrOrStderr(), &i) },
	})
}

// caller is who starts the server, where nobody has named the state directory.
func (f *upFlags) caller() *daemon.Invocation {
	if f.named || f.dev {
		return nil
	}
	i := daemon.ThisInvocation()
	return &i
}

// temporaryState names, for the server that cox up -d starts, the folder of --dev.
const temporaryState = "COX_DEV_STATE"

// useTemporaryState makes the state directory of a throw-away server.
func (f *upFlags) useTemporaryState(c *config.Config, set func(string) bool) error {
	switch {
	case set("state-dir"):
		return fault.New(fault.Invalid, "--dev and --state-dir: a throw-away server keeps no state directory").Advise("give one of them")
	case f.unit:
		return fault.New(fault.Invalid, "--dev and --systemd-unit: a throw-away server is no service").Advise("give one of them")
	}
	dir := os.Getenv(temporaryState)
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "cox-dev-"); err != nil {
			return fault.New(fault.Exhausted, "make a temporary state directory: %w", err).Advise("set TMPDIR to a folder with room")
		}
		if os.Getuid() == 0 { // as a state directory of root's: users pass through to their own jobs
			if err := os.Chmod(dir, 0o711); err != nil {
				return err
			}
		}
	}
	c.State.Dir, c.Listen.Socket, c.Listen.TCP = dir, filepath.Join(dir, "cox.sock"), "none"
	c.Jobs.UploadDir = "" // copies of the working directories go with the state
	return nil
}

// openLog is where the server logs: standard error, or its file if it is in the background.
func openLog(c *config.Config) (io.WriteCloser, error) {
	if os.Getenv(detachedVariable) == "" {
		return os.Stderr, nil
	}
	if err := daemon.MakeState(c.State); err != nil {
		return nil, err
	}
	return serverlog.OpenFile(logName(c))
}

// logName is the log of a server in the background.
func logName(c *config.Config) string { return filepath.Join(c.State.Dir, "server.log") }

func newLogger(c *config.Config, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		level = slog.LevelInfo
	}
	opt := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(w, opt)
	if c.Log.Format == "json" {
		h = slog.NewJSONHandler(w, opt)
	}
	return slog.New(serverlog.NewBounded(h, time.Now))
}

// readyLine is the last line printed at the start; cox up -d waits for it.
const readyLine = "ready"

// detachedVariable marks the server that cox up -d started.
const detachedVariable = "COX_DETACHED"

// printStart says at every start, also of a server that is refused then, where its state is.
func printStart(w io.Writer, c *config.Config) {
	fmt.Fprintf(w, "cluster  %s\n", c.Name)
	fmt.Fprintf(w, "state    %s\n", c.State.Dir)
}

func (f *upFlags) printReady(w io.Writer, i *daemon.Info) {
	fmt.Fprintf(w, "socket   %s\n", i.Config.Listen.Socket)
	if i.TCP != "" {
		fmt.Fprintf(w, "tcp      %s, token in %s\n", i.TCP, i.Token)
	}
	if i.Gateway != nil {
		fmt.Fprintf(w, "gateway  %s, for services\n", i.Gateway.Address)
	}
	fmt.Fprintf(w, "nodes    %s\n", describeNodes(i.Nodes))
	for _, n := range i.Notes {
		fmt.Fprintf(w, "  · %s\n", n)
	}
	if i.HasConsole && i.TCP != "" {
		fmt.Fprintf(w, "console  http://%s  (cox web opens it)\n", i.TCP)
	}
	end := "Ctrl-C stops the server; jobs go on, and the next cox up takes them up"
	detached := os.Getenv(detachedVariable) != ""
	switch {
	case f.dev && detached:
		end = "cox down stops the server, ends its jobs and removes its state"
	case f.dev:
		end = "Ctrl-C stops the server, ends its jobs and removes its state"
	case detached:
		end = "cox down stops the server"
	}
	if f.dev {
		fmt.Fprintf(w, "use      export COX_SERVER=unix://%s\n", i.Config.Listen.Socket)
	}
	fmt.Fprintf(w, "%s    %s\n", readyLine, end)
}

// describeNodes says what the nodes, which are all alike, have.
func describeNodes(nodes []fleet.Node) string {
	if len(nodes) == 0 {
		return "none"
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	n := nodes[0]
	text := fmt.Sprintf("%s: %s CPUs, %s", hostlist.Compress(names), resource.FormatCPU(n.Capacity.CPU), resource.FormatBytes(n.Capacity.Memory))
	if len(n.Devices) > 0 {
		text += fmt.Sprintf(", %d × %s", len(n.Devices), n.Devices[0].Type)
	}
	if len(nodes) > 1 {
		text += " each"
	}
	return text
}

// startInBackground starts the server anew, apart from this terminal, and waits until it
// answers or says why it cannot.
func (f *upFlags) startInBackground(cmd *cobra.Command, c *config.Config) (err error) {
	if f.dev {
		defer func() {
			if err != nil {
				err = errors.Join(err, os.RemoveAll(c.State.Dir))
			}
		}()
	}
	if caller := f.caller(); caller != nil {
		if err := daemon.CheckInvocation(c.State.Dir, *caller); err != nil {
			return err
		}
	}
	if err := daemon.MakeState(c.State); err != nil {
		return err
	}
	name := logName(c)
	if err := beginLog(c.State.Dir, name); err != nil {
		return err
	}
	log, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fault.New(fault.KindOf(err), "the server's log: %w", err)
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var args []string
	for _, a := range os.Args[1:] {
		if a != "-d" && a != "--detach" && a != "--detach=true" {
			args = append(args, a)
		}
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	server := exec.Command(binary, args...)
	server.Env = append(os.Environ(), detachedVariable+"=1")
	if f.dev {
		server.Env = append(server.Env, temporaryState+"="+c.State.Dir)
	}
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := server.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	return waitReady(cmd.Context(), cmd.ErrOrStderr(), name, from, server.Process.Pid, ended)
}

// beginLog begins a new file of the log if the newest one is half full. A server that runs in the
// directory is an error: the log is that server's.
func beginLog(dir, name string) error {
	unlock, err := sqlite.Lock(dir, "cox up -d")
	if err != nil {
		return err
	}
	defer unlock()
	log, err := serverlog.OpenFile(name)
	if err != nil {
		return err
	}
	log.BeginFile()
	return log.Close()
}

// waitReady shows what the server says until it is ready. The log is a file that
// somebody else writes, so it is looked at again and again.
func waitReady(ctx context.Context, w io.Writer, name string, from int64, pid int, ended <-chan error) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		var gone bool
		select {
		case <-ended:
			gone = true
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		lines, err := linesFrom(name, from)
		if err != nil {
			return err
		}
		for i, line := range lines {
			if strings.HasPrefix(line, readyLine+" ") {
				for _, said := range lines[:i+1] {
					if !strings.HasPrefix(said, "time=") && !strings.HasPrefix(said, "{") {
						fmt.Fprintln(w, said)
					}
				}
				fmt.Fprintf(w, "server   process %d, log %s\n", pid, name)
				return nil
			}
		}
		if gone {
			return fault.New(fault.Unavailable, "the server did not start:\n%s", strings.Join(lines, "\n")).Advise("its log: %s", name)
		}
	}
}

func linesFrom(name string, from int64) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	var lines []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	return lines, s.Err()
}
