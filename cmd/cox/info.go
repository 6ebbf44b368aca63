package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/printer"
)

func (a *app) infoCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:     "info",
		Short:   "Say which server answers, what it can do, and who you are to it",
		Example: "  cox info\n  cox info -o json | jq .you",
		Args:    cobra.NoArgs,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			i, err := c.Info(cmd.Context())
			if err != nil {
				return err
			}
			if f.machine() {
				return f.write(a.out, i)
			}
			_, err = fmt.Fprint(a.out, printer.Info(a.page(a.out), i, c.Address().String()))
			return err
		}),
	}
	formatFlag(cmd, &f, asJSON, asYAML)
	return cmd
}

func (a *app) pingCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "ping",
		Short:   "Ask whether the server answers, and how fast",
		Long:    "Asks the server for nothing but an answer. Exit code 0: it answers; 75: it does not.",
		Example: "  cox ping\n  until cox ping --timeout 1s; do sleep 1; done",
		Args:    cobra.NoArgs,
		RunE: a.asks(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			began := time.Now()
			i, err := c.Info(ctx)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%s answers at %s in %.1f ms\n", printer.Clean(i.Name), c.Address(), float64(time.Since(began).Microseconds())/1000)
			return err
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "wait no longer than this for an answer")
	return cmd
}

// quick bounds what may be asked of a server on the way to something else.
const quick = 250 * time.Millisecond

// serverVersion is the version of the server, "" if none answers at once.
func (a *app) serverVersion(ctx context.Context) string {
	c, err := a.client()
	if err != nil {
		return ""
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	i, err := c.Info(ctx)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s, API %s, at %s", printer.Clean(i.Version), printer.Clean(i.API), c.Address())
}
