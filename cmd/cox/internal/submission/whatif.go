package submission

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func whatIfCommand(a *cli.App) *cobra.Command {
	var q api.WhatIf
	var quotas, files []string
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "whatif [--add-nodes N] [--drain NODES] [--quota ACCOUNT[/FLAVOR]=GPUS] [--policy FILE] [--submit FILE]",
		Short: "Show what would happen with more nodes, other rules or another job",
		Long: `Lets the server's own scheduling core go on from the state of now, on estimated run
times, once as things are and once with what the flags say, and compares: waits, use of
devices, fairness, and which jobs start at another time. Nothing is kept or changed.

Run times are those that such jobs took (same user and name, then same user and size),
else the time limits. Jobs that come later are not known; jobs that are held or wait for
another job are left as they are. If the file of --policy has handover:, the answer
says which machines would change their pool now. docs/explanation/whatif.md says more.`,
		Example: `  cox whatif --add-nodes 4 --like gpu7
  cox whatif --drain rack-7
  cox whatif --quota team-a=64
  cox whatif --policy queues.yaml
  cox whatif --submit train.sbatch
  cox whatif --add-nodes 8 --quota team-a=128 -o json | jq .after.wait`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readWhatIf(a, cmd, &q, quotas, files); err != nil {
				return err
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			defer c.Close()
			d, err := c.WhatIf(cmd.Context(), &q)
			if err != nil {
				return err
			}
			if f.IsData() {
				return a.WriteData(f, d)
			}
			_, err = fmt.Fprint(a.Out, printer.WhatIf(a.Page(a.Out), &q, d))
			return err
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&q.AddNodes, "add-nodes", 0, "so many nodes more")
	fl.StringVar(&q.Like, "like", "", "with --add-nodes: like this node (default: the first of the pool)")
	fl.StringVar(&q.Pool, "pool", "", "with --add-nodes: in this pool")
	fl.StringVar(&q.Drain, "drain", "", "without these nodes: a host list, or a domain of the topology")
	fl.StringArrayVar(&quotas, "quota", nil, "ACCOUNT=GPUS: an account may hold so many devices; ACCOUNT/FLAVOR=GPUS: its nominal quota of that flavor")
	fl.StringVar(&q.File, "policy", "", "with the rules of this file instead of those in force")
	fl.StringArrayVar(&files, "submit", nil, "with the job of this file (sbatch script, native YAML or JSON)")
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

// readWhatIf fills the question from flags and files.
func readWhatIf(a *cli.App, cmd *cobra.Command, q *api.WhatIf, quotas, files []string) error {
	for _, text := range quotas {
		name, value, ok := strings.Cut(text, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil || n < 0 || name == "" {
			return fault.New(fault.Invalid, "--quota %q is not ACCOUNT=GPUS or ACCOUNT/FLAVOR=GPUS", text).Advise("as in --quota team-a=64")
		}
		if q.Quotas == nil {
			q.Quotas = map[string]int64{}
		}
		q.Quotas[name] = n
	}
	if q.File != "" {
		b, err := os.ReadFile(q.File)
		if err != nil {
			return fault.New(fault.NotFound, "%w", err).Advise("--policy names a file of rules, as cox apply -f reads them")
		}
		q.Policy = string(b)
	}
	for _, name := range files {
		req, err := submitRequest(a, cmd, &submitFlags{}, []string{name})
		if err != nil {
			return err
		}
		_, sent := readHere(req)
		req.Files = sent
		q.Submit = append(q.Submit, *req)
	}
	return nil
}
