package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/snapshot"
)

func snapshotCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "snapshot > FILE",
		Short: "Write the state of the scheduling core, to repeat its decisions",
		Long: `Writes the state of the core some steps ago (nodes, rules, waiting and running jobs,
reservations) and all events and decisions since, as JSON. cox replay makes the same
decisions from it, on any machine. docs/explanation/whatif.md says more.

The file contains names of jobs, users, accounts and nodes, and no scripts,
commands, environments and comments.`,
		Example: "  cox snapshot > monday.json\n  cox replay monday.json",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			body, err := c.Snapshot(cmd.Context())
			if err != nil {
				return err
			}
			defer body.Close()
			_, err = io.Copy(a.Out, body)
			return err
		}),
	}
}

func replayCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Repeat the decisions of a snapshot and compare them",
		Long: `Loads the state that cox snapshot wrote, repeats the same events, and compares each
decision with the recorded one, byte for byte. It asks no server.

Exit code 0: all are the same. 4: some are not; it prints the first one. Another
version of cox may decide otherwise, on purpose.`,
		Example: "  cox replay monday.json\n  cox replay monday.json --decisions | grep '\"Job\":4211'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := os.Open(args[0])
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fault.New(fault.KindOf(err), "read the snapshot: %w", err)
			}
			if err != nil {
				return fault.New(fault.NotFound, "%s: no such file", args[0]).Advise("cox snapshot > FILE writes a snapshot")
			}
			defer in.Close()
			f, err := snapshot.Read(in, args[0])
			if err != nil {
				return err
			}
			return printReplay(cmd.OutOrStdout(), f, args[0], all)
		},
	}
	cmd.Flags().BoolVar(&all, "decisions", false, "print every decision, one step on each line")
	return cmd
}

// printReplay prints what became of the steps of a snapshot when they were made anew.
func printReplay(w io.Writer, f *snapshot.File, name string, all bool) error {
	decided := 0
	var differs error
	f.Replay(func(i int, s *snapshot.Step, out []byte, same bool) bool {
		if string(out) != "[]" {
			decided++
		}
		if all && string(out) != "[]" {
			fmt.Fprintf(w, "%s %s\n", formatInstant(s.Now), out)
		}
		if !same {
			differs = fault.New(fault.Conflict, "step %d of %d, at %s, is decided otherwise now\n  then  %s\n  now   %s", i+1, len(f.Steps), formatInstant(s.Now), s.Out, out).
				Advise("replay it with the cox that wrote it; with the same one this is a defect, and the file shows it")
		}
		return same
	})
	if differs != nil || all {
		return differs
	}
	st := f.State
	fmt.Fprintf(w, "%s: %s, %s waiting, %d running at %s\n", name, printer.Count(len(st.Nodes), "node"), printer.Count(len(st.Queue), "job"), len(st.Running), formatInstant(st.At))
	if len(f.Steps) > 0 {
		fmt.Fprintf(w, "%d steps until %s, %d of them with decisions: the same, to the byte\n", len(f.Steps), formatInstant(f.Steps[len(f.Steps)-1].Now), decided)
	}
	return nil
}

func formatInstant(t sched.Instant) string {
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02T15:04:05.000Z")
}
