package server

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func infoCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:     "info",
		Short:   "Say which server answers, what it can do, and who you are to it",
		Example: "  cox info\n  cox info -o json | jq .you",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			i, err := c.Info(cmd.Context())
			if err != nil {
				return err
			}
			if f.IsData() {
				return a.WriteData(f, i)
			}
			_, err = fmt.Fprint(a.Out, printer.Info(a.Page(a.Out), i, c.Address().String()))
			return err
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

func pingCommand(a *cli.App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "ping",
		Short:   "Ask whether the server answers, and how fast",
		Long:    "Asks the server only for an answer. Exit code 0: it answers; 75: it does not.",
		Example: "  cox ping\n  until cox ping --timeout 1s; do sleep 1; done",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			began := time.Now()
			i, err := c.Info(ctx)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s answers at %s in %.1f ms\n", printer.Clean(i.Name), c.Address(), float64(time.Since(began).Microseconds())/1000)
			return err
		}),
	}
	cli.DurationFlag(cmd.Flags(), &timeout, "timeout", 10*time.Second, "longest time to wait for an answer")
	return cmd
}
