package jobs

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/internal/joboutput"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func execCommand(a *cli.App) *cobra.Command {
	var node string
	var env []string
	var noTTY, tty, stdin bool
	cmd := &cobra.Command{
		Use:   "exec JOB[.RANK] -- COMMAND [ARG…]",
		Short: "Run a command inside a running job",
		Long: `Runs a command beside the tasks of a running job: in its allocation, its environment
and its cgroup, on the node of the batch script or of a rank. On a terminal the
command gets a terminal too. The exit code is the command's.`,
		Example: `  cox exec 7 -- nvidia-smi
  cox exec 7.5 -- py-spy dump --pid 4711
  cox exec 7 -- bash
  cox exec --node v3 7 -- top
  tar c src | cox exec 7 -- tar x -C /tmp`,
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash < 0 && len(args) > 1 {
				dash = 1 // the command has no flags that could be taken for ours
			}
			if dash != 1 || len(args) < 2 {
				return fault.New(fault.Invalid, "cox exec needs a job, and a command after --").Advise("for example: cox exec 7 -- nvidia-smi")
			}
			t, err := joboutput.ParseTarget(args[0])
			if err != nil {
				return err
			}
			if t.Step != nil {
				return fault.New(fault.Invalid, "%s: exec knows jobs and ranks, not steps", args[0]).Advise("cox exec %s.%d -- %s", t.Job, *t.Rank, strings.Join(args[1:], " "))
			}
			if _, ok := cli.TerminalFd(a.In); tty && (!ok || !cli.IsTerminal(a.Out)) {
				return fault.New(fault.Invalid, "-t asks for a terminal, and this is no terminal").Advise("leave -t out: the command has a terminal wherever this one has")
			}
			if !stdin {
				a.In = strings.NewReader("")
			}
			return ExecInJob(a, cmd.Context(), c, t.Job, api.Exec{Command: args[1:], Node: node, Rank: t.Rank, Env: env}, noTTY)
		}),
	}
	fl := cmd.Flags()
	fl.SetInterspersed(true)
	fl.StringVar(&node, "node", "", "run it on this node of the job")
	fl.StringArrayVarP(&env, "env", "e", nil, "NAME=VALUE, added to the environment")
	fl.BoolVarP(&tty, "tty", "t", false, "refuse to run without a terminal")
	fl.BoolVarP(&stdin, "stdin", "i", true, "pass standard input on (--stdin=false: none)")
	fl.BoolVarP(&noTTY, "no-tty", "T", false, "use no terminal, even on one")
	a.CompleteFlag(cmd, "node", a.NodeNames)
	return cmd
}

// ExecInJob runs a command in a job, and leaves its exit code. With a terminal at both ends the
// command has one, unless noTTY, which takes keys as they are, Ctrl-C included.
func ExecInJob(a *cli.App, ctx context.Context, c *client.Client, job string, e api.Exec, noTTY bool) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	s := client.ExecStreams{Stdin: a.In, Stdout: a.Out, Stderr: a.Err}
	if fd, ok := cli.TerminalFd(a.In); ok && !noTTY && cli.IsTerminal(a.Out) {
		e.TTY, e.Window = true, windowSize(fd)
		if t := a.Getenv("TERM"); t != "" {
			e.Env = append([]string{"TERM=" + t}, e.Env...)
		}
		sizes, end := watchWindowSize(fd)
		defer end()
		s.Resize = sizes
		old, err := term.MakeRaw(fd)
		if err != nil {
			return fault.New(fault.Unavailable, "set the terminal up: %w", err).Advise("cox exec -T works without")
		}
		defer term.Restore(fd, old)
	}
	code, err := c.Exec(ctx, job, e, s)
	if ctx.Err() != nil {
		a.Code = 128 + int(syscall.SIGTERM)
		return nil
	}
	if err != nil {
		return err
	}
	a.Code = code.Shell()
	return nil
}

func windowSize(fd int) api.Window {
	cols, rows, err := term.GetSize(fd)
	if err != nil {
		return api.Window{Rows: 24, Cols: 80}
	}
	return api.Window{Rows: uint16(rows), Cols: uint16(cols)}
}

// watchWindowSize sends the size of a terminal whenever it changes, until end is called.
func watchWindowSize(fd int) (sizes <-chan api.Window, end func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	out, done := make(chan api.Window), make(chan struct{})
	go func() {
		for {
			select {
			case <-changed:
			case <-done:
				return
			}
			select {
			case out <- windowSize(fd):
			case <-done:
				return
			}
		}
	}()
	return out, func() { signal.Stop(changed); close(done) }
}
