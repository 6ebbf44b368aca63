package policy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec/input"
)

// previous is the value of --back without a number: the rules before the present ones.
const previous = "previous"

// applying is one call of cox apply.
type applying struct {
	file, note, back string
	dryRun, yes      bool
	data             []byte // of file
	format           cli.Format
}

func applyCommand(a *cli.App) *cobra.Command {
	var p applying
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Put a file in force: the site's rules, or work as cox submit takes it",
		Long: `A file of work (a Kubernetes manifest, an sbatch script, native YAML) is submitted, as
cox submit does it; a service that is there begins its next revision.

Of any other file it reads the site's rules, shows the difference from the rules in force and
its immediate effect on jobs, and puts them in force: all of them, or none if anything
in the file is wrong. It ends no running job. On a terminal it asks first. If somebody
else has changed the rules meanwhile, it changes nothing.

docs/reference/queues.md has every field. cox policy show prints the rules in force,
and cox import makes such a file from Slurm or Kueue. For administrators.`,
		Example: `  cox apply -f queues.yaml
  cox apply -f queues.yaml --dry-run
  cox apply -f deployment.yaml
  cox apply -f queues.yaml --yes --note "nlp has new nodes"
  cox apply --back            # to the revision before this one
  cox apply --back=7`,
		Args: cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			if p.file != "" && p.back == "" {
				data, err := a.ReadDocument(p.file)
				if err != nil {
					return err
				}
				if describesWork(p.file, data) {
					return a.SubmitFile(cmd, p.file, data, p.dryRun, p.format)
				}
				p.data = data
			}
			return applyPolicy(a, cmd.Context(), c, &p)
		}),
	}
	fl := cmd.Flags()
	fl.StringVarP(&p.file, "file", "f", "", "file of rules or of work; - reads standard input")
	fl.StringVar(&p.back, "back", "", "go back to an older revision, the previous one if none is named")
	fl.Lookup("back").NoOptDefVal = previous
	fl.BoolVarP(&p.dryRun, "dry-run", "n", false, "show what would change, and change nothing")
	fl.BoolVarP(&p.yes, "yes", "y", false, "do not ask")
	fl.StringVarP(&p.note, "note", "m", "", "why, for the history")
	cli.AllowEmpty(cmd, "note")
	cli.HintArgument(cmd, "cox apply -f %s puts the rules of a file in force; cox apply --back=7 puts back a revision")
	cli.FormatFlag(cmd, &p.format, cli.AsJSON, cli.AsYAML)
	return cmd
}

func applyPolicy(a *cli.App, ctx context.Context, c *client.Client, p *applying) error {
	req, err := toApply(a, ctx, c, p)
	if err != nil {
		return err
	}
	req.DryRun = true
	would, err := c.SetPolicy(ctx, req)
	if err != nil {
		return cli.NotDone(err, "nothing was changed")
	}
	if !p.format.IsData() {
		io.WriteString(a.Out, printer.PolicyChanges(a.Page(a.Out), would))
	}
	switch {
	case !would.Changed:
		if p.format.IsData() {
			return a.WriteData(p.format, would)
		}
		if would.Policy.Revision == 0 {
			fmt.Fprintln(a.Out, "nothing changes: the file has no rules, and none are in force")
			return nil
		}
		fmt.Fprintf(a.Out, "nothing changes: revision %d is in force already\n", would.Policy.Revision)
		return nil
	case p.dryRun:
		if p.format.IsData() {
			return a.WriteData(p.format, would)
		}
		fmt.Fprintln(a.Out, "\na dry run: nothing was changed")
		return nil
	case !p.yes && cli.IsTerminal(a.In) && cli.IsTerminal(a.Err) && !askYes(a, "\nput this in force? [y/N] "):
		fmt.Fprintln(a.Err, "nothing was changed")
		a.Code = fault.Conflict.ExitCode()
		return nil
	}
	base := would.Policy.Revision // what was shown is what is done
	req.DryRun, req.Base = false, &base
	done, err := c.SetPolicy(ctx, req)
	if err != nil {
		return cli.NotDone(err, "nothing was changed")
	}
	if p.format.IsData() {
		return a.WriteData(p.format, done)
	}
	fmt.Fprintf(a.Out, "revision %d is in force\n", done.Policy.Revision)
	return nil
}

// toApply reads the rules to put in force.
func toApply(a *cli.App, ctx context.Context, c *client.Client, p *applying) (*api.SetPolicy, error) {
	req := &api.SetPolicy{Note: p.note}
	switch {
	case p.file != "" && p.back != "":
		return nil, fault.New(fault.Invalid, "-f and --back do not go together").Advise("name a file, or a revision to put back")
	case p.file != "":
		req.Text, req.File = string(p.data), filepath.Base(p.file)
		return req, checkRules(p.file, p.data)
	case p.back == "":
		return nil, fault.New(fault.Invalid, "cox apply needs a file of rules").Advise("for example: cox apply -f queues.yaml; cox policy show prints the rules in force, docs/reference/queues.md has every field")
	case p.back != previous:
		n, err := strconv.ParseUint(p.back, 10, 64)
		if err != nil || n == 0 {
			return nil, fault.New(fault.Invalid, "--back=%s: a revision is a number", p.back).Advise("cox policy history lists them")
		}
		req.Back = n
		return req, nil
	}
	h, err := c.PolicyHistory(ctx)
	if err != nil {
		return nil, err
	}
	if len(h.Policies) < 2 {
		return nil, fault.New(fault.NotFound, "there is no revision before the one in force").Advise("cox policy history lists them")
	}
	req.Back = h.Policies[len(h.Policies)-2].Revision
	return req, nil
}

// askYes asks on the terminal.
func askYes(a *cli.App, question string) bool {
	fmt.Fprint(a.Err, question)
	line, err := bufio.NewReader(a.In).ReadString('\n')
	return err == nil && strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y")
}

// checkRules refuses a file that is no rules of a site.
func checkRules(name string, data []byte) error {
	return cli.CheckInput(name, data, input.Rules, "rules of a site", "docs/reference/queues.md shows what rules look like; cox policy show prints those in force")
}
