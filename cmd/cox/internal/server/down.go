package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func downCommand(a *cli.App) *cobra.Command {
	var socket string
	var cancel bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the server of this machine; running jobs go on",
		Example: `  cox down
  cox down --cancel      # and end all jobs first`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if socket != "" && a.Server != "" {
				return fault.New(fault.Invalid, "--socket and --server both name a server").Advise("give one of them")
			}
			c, err := client.New(client.Options{Socket: socket, URL: a.Server})
			if err != nil {
				return err
			}
			defer c.Close()
			return stopServer(cmd, c, cancel)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the server's unix socket")
	cmd.Flags().BoolVar(&cancel, "cancel", false, "cancel all jobs first, and wait for their end")
	return cmd
}

func stopServer(cmd *cobra.Command, c *client.Client, cancel bool) error {
	ctx := cmd.Context()
	if c.Address().Socket == "" {
		return fault.New(fault.Invalid, "%s is not a server of this machine", c.Address()).Advise("unset COX_SERVER, or stop it where it runs")
	}
	info, err := c.Info(ctx)
	if err != nil {
		return err
	}
	out := cmd.ErrOrStderr()
	if cancel {
		done, err := c.Change(ctx, &api.Change{Select: api.Select{All: true}, Verb: api.VerbCancel})
		if err != nil {
			return err
		}
		if done.Changed == 0 {
			fmt.Fprintln(out, "no job waited or ran: nothing to cancel")
		} else {
			fmt.Fprintf(out, "cancelled %s\n", printer.Count(done.Changed, "job"))
		}
		for _, name := range done.Names {
			if _, err := c.Wait(ctx, name); err != nil {
				return err
			}
		}
	}
	running := 0
	for _, err := range c.Jobs(ctx, client.Query{Select: api.Select{States: []string{"RUNNING"}}}) {
		if err != nil {
			return err
		}
		running++
	}
	wait := watchGone(info.PID)
	if err := syscall.Kill(info.PID, syscall.SIGTERM); err != nil {
		if errors.Is(err, os.ErrPermission) {
			return fault.New(fault.Permission, "the server (process %d) belongs to another user, and you may not stop it", info.PID).Advise("only that user and root can stop it")
		}
		return fmt.Errorf("stop process %d: %w", info.PID, err)
	}
	if err := wait(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "stopped  process %d\n", info.PID)
	if err := stopGateway(ctx, out, info.Gateway); err != nil {
		return err
	}
	switch {
	case slices.Contains(info.Features, api.FeatureThrowAway):
		fmt.Fprintln(out, "removed  its jobs and its state: it was a throw-away server")
	case running > 0:
		fmt.Fprintf(out, "jobs     %d go on running; cox up takes them up again\n", running)
	}
	return nil
}

// stopGateway ends the gateway that a server left behind. It lets requests in flight end.
func stopGateway(ctx context.Context, out io.Writer, g *api.GatewayInfo) error {
	if g == nil || g.PID == 0 {
		return nil
	}
	wait := watchGone(g.PID)
	if err := syscall.Kill(g.PID, syscall.SIGTERM); errors.Is(err, syscall.ESRCH) {
		return nil // it has ended with a throw-away server
	} else if err != nil {
		return fmt.Errorf("stop the gateway, process %d: %w", g.PID, err)
	}
	if err := wait(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "stopped  the gateway, process %d\n", g.PID)
	return nil
}

// stopTime is how long a server may take to end.
const stopTime = time.Minute

// notEndedError is the error about a server that does not end.
func notEndedError(pid int) error {
	return fault.New(fault.Unavailable, "process %d has not ended", pid).Advise("look at its log; kill -9 %d loses nothing that was accepted", pid)
}

// pollGone waits for the end of a process that is not our child by asking for it.
func pollGone(ctx context.Context, pid int) error {
	ctx, stop := context.WithTimeout(ctx, stopTime)
	defer stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return notEndedError(pid)
		}
	}
}
