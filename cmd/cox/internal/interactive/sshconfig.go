package interactive

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// hostPrefix begins the names of jobs as hosts of ssh.
const hostPrefix = "cox."

func sshConfigCommand(a *cli.App) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "ssh-config",
		Short: "Write an SSH configuration that reaches running jobs, for VS Code and scp",
		Long: `Prints a configuration of ssh under which cox.7 is job 7, and cox.7.v2 its node v2: for
ssh, scp, sftp, rsync and VS Code (Remote-SSH: connect to the host cox.7). --write puts
it into ~/.ssh/coxswain and has ~/.ssh/config include it.

ssh starts "cox ssh-proxy", which starts a server of SSH inside the job through the
API. Nothing listens on the nodes. The API decides who may do it: the owner of the job
and administrators. So there are no keys to exchange.`,
		Example: `  cox ssh-config --write
  ssh cox.7
  scp model.pt cox.7:
  code --remote ssh-remote+cox.7 ~/project`,
		Args: cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			if _, err := c.Info(cmd.Context()); err != nil { // before ssh says only that its proxy failed
				return err
			}
			text, err := sshConfig(a)
			if err != nil {
				return err
			}
			if write {
				return writeSSHConfig(a, text)
			}
			_, err = fmt.Fprint(a.Out, text)
			return err
		}),
	}
	cmd.Flags().BoolVar(&write, "write", false, "write it to ~/.ssh/coxswain, included by ~/.ssh/config")
	return cmd
}

// sshConfig is the text of the configuration. It names the server that this command was told of, for
// ssh may be started without the variables of this shell.
func sshConfig(a *cli.App) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	proxy := sshWord(self)
	if server := cmp.Or(a.Server, a.Getenv("COX_SERVER")); server != "" {
		proxy += " --server " + sshWord(server)
	}
	return "# Jobs of Coxswain as hosts of ssh: cox.7 is job 7, cox.7.v2 its node v2.\n" +
		"# cox ssh-config wrote this. The API decides who may connect, so keys of hosts say nothing here.\n" +
		"Host " + hostPrefix + "*\n" +
		"  ProxyCommand " + proxy + " ssh-proxy %n\n" +
		"  StrictHostKeyChecking no\n" +
		"  UserKnownHostsFile /dev/null\n" +
		"  GlobalKnownHostsFile /dev/null\n" +
		"  LogLevel ERROR\n" +
		"  ServerAliveInterval 30\n", nil
}

// sshWord quotes a word for the shell that runs a ProxyCommand, and for ssh, which reads % in it.
func sshWord(s string) string {
	s = strings.ReplaceAll(s, "%", "%%")
	if strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/.:_-+@%=,", r))
	}) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// writeSSHConfig writes the configuration to a file of its own, and includes it once.
func writeSSHConfig(a *cli.App, text string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return fault.New(fault.Invalid, "your home directory is not known: %w", err).Advise("set HOME, or put the output of cox ssh-config where ssh reads it")
	}
	dir := filepath.Join(home, ".ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	own, main := filepath.Join(dir, "coxswain"), filepath.Join(dir, "config")
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		return err
	}
	const include = "Include coxswain\n"
	had, err := os.ReadFile(main)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Contains(had, []byte(include)) { // first: below a Host line it would be a part of that
		next := main + ".cox"
		if err := os.WriteFile(next, append([]byte(include+"\n"), had...), 0o600); err != nil {
			return err
		}
		if err := os.Rename(next, main); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.Out, "wrote %s, included by %s: ssh %s7 connects to job 7\n", own, main, hostPrefix)
	return err
}

// sshServer starts the server of SSH inside a job.
const sshServer = `command -v cox-ssh >/dev/null && exec cox-ssh; echo "cox-ssh is not there: the server or the pods of this job are older than this cox, or its engine does not have it" >&2; exit 127`

func sshProxyCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    "ssh-proxy JOB[.RANK | .NODE]",
		Short:  "Carry a connection of ssh to a running job",
		Long:   `Starts a server of SSH inside the job and carries its connection on standard input and output: for the ProxyCommand of cox ssh-config.`,
		Hidden: true,
		Args:   cobra.MatchAll(cli.RequireJobs("ssh-proxy"), cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			args[0] = strings.TrimPrefix(args[0], hostPrefix)
			return a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
				p, err := parsePlace(args[0])
				if err != nil {
					return err
				}
				ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGHUP)
				defer stop()
				code, err := c.Exec(ctx, p.job, p.command("/bin/sh", "-c", sshServer), client.ExecStreams{Stdin: a.In, Stdout: a.Out, Stderr: a.Err})
				if ctx.Err() != nil {
					return nil
				}
				a.Code = code.Shell()
				return err
			})(cmd, args)
		},
	}
}
