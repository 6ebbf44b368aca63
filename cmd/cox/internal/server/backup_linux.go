package server

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
)

func backupCommand(a *cli.App) *cobra.Command {
	var verify, withSecrets bool
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the server's state while it works",
		Long: `Writes the present journal, history, scripts, environments and uploaded directories
into a new folder on the server's machine. Running processes are not in it, nor are
users' secrets without --with-secrets.
docs/how-to/back-up-and-restore.md says how to restore.`,
		Example: `  cox backup /backup/cox-monday
  cox backup --verify /backup/cox-monday
  cox restore /backup/cox-monday --state-dir /var/lib/coxswain`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if verify {
				if withSecrets {
					return fault.New(fault.Invalid, "--with-secrets is for making a backup, and --verify checks one").Advise("leave one of them out")
				}
				if a.Server != "" {
					return fault.New(fault.Invalid, "cox backup --verify asks no server: --server has no meaning here").Advise("leave --server out")
				}
				got, err := daemon.Verify(cmd.Context(), dir)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.Out, "%s is whole: journal up to record %d, %s, %d live\n", dir, got.Last, printer.Count(int(got.Jobs), "job"), got.Live)
				return nil
			}
			return a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
				done, err := c.Backup(cmd.Context(), api.Backup{Dir: dir, WithSecrets: withSecrets})
				if err != nil {
					return err
				}
				fmt.Fprintf(a.Out, "%s: %s, the state up to record %d\n", done.Dir, resource.FormatBytes(resource.Amount(done.Bytes)), done.Seq)
				return nil
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&withSecrets, "with-secrets", false, "also copy the values of users' secrets (cox secret)")
	cmd.Flags().BoolVar(&verify, "verify", false, "check a whole backup instead of making one")
	return cmd
}

func restoreCommand(a *cli.App) *cobra.Command {
	var file, stateDir string
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Make a state directory from a backup",
		Long: `Verifies the backup and copies it into the state directory, which must be empty and
not in use. The next cox up continues from there, and asks the engines about jobs
that ran at the time of the backup.`,
		Example: `  cox restore /backup/cox-monday
  cox restore /backup/cox-monday --state-dir /var/lib/coxswain`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := config.Load(file)
			if err != nil {
				return err
			}
			if stateDir != "" {
				if c.State.Dir, err = filepath.Abs(stateDir); err != nil {
					return err
				}
			}
			got, err := daemon.Restore(cmd.Context(), args[0], c.State)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "%s: journal up to record %d, %s, %d live; cox up goes on from there\n", c.State.Dir, got.Last, printer.Count(int(got.Jobs), "job"), got.Live)
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file that names the state directory")
	cmd.Flags().StringVar(&stateDir, "state-dir", "", "state directory")
	return cmd
}
