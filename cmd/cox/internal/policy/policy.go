package policy

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/spec"
)

func policyCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Show the site's rules and their history, or check a file of rules",
		Long: `The site's rules are one file, queues.yaml: accounts, QOS, limits, quotas,
priorities. cox apply puts it in force. docs/reference/queues.md has every field.`,
		Example: "  cox policy show",
	}
	cmd.AddCommand(policyShowCommand(a), policyHistoryCommand(a), cli.Local(policyCheckCommand(a)), cli.Local(policySchemaCommand(a)))
	return cli.Group(cmd)
}

func policyShowCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:     "show [REVISION]",
		Short:   "Print the rules in force, or those of a former revision, as they were written",
		Example: "  cox policy show > queues.yaml\n  cox policy show 7",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			rev := uint64(0)
			if len(args) > 0 {
				n, err := strconv.ParseUint(args[0], 10, 64)
				if err != nil || n == 0 {
					return fault.New(fault.Invalid, "%q is no revision", args[0]).Advise("cox policy history lists them")
				}
				rev = n
			}
			p, err := c.Policy(cmd.Context(), rev)
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, p)
			case p.Revision == 0:
				fmt.Fprintln(a.Err, "no rules were ever set: jobs go by their own priority, first come, first served (cox apply sets some)")
				return nil
			}
			_, err = io.WriteString(a.Out, p.Text)
			return err
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

func policyHistoryCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:     "history",
		Short:   "List who set the rules when, the newest first",
		Long:    "Lists the revisions of the site's rules: who set each, when, from which file and why.",
		Example: "  cox policy history\n  cox policy history -o json",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			h, err := c.PolicyHistory(cmd.Context())
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, h)
			case f == cli.AsName:
				var names []string
				for i := range h.Policies {
					names = append(names, strconv.FormatUint(h.Policies[i].Revision, 10))
				}
				return a.WriteNames(names)
			case len(h.Policies) == 0:
				fmt.Fprintln(a.Err, "no rules were ever set")
				return nil
			}
			return printer.Policies(a.Page(a.Out), h.Policies).Write(a.Out, a.Page(a.Out))
		}),
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}

func policyCheckCommand(a *cli.App) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Read a file of rules and say what is wrong with it, without a server",
		Long: `Says whether a file can be applied. With --print it writes the file in its standard
form: without comments, in the order of docs/reference/queues.md.`,
		Example: "  cox policy check queues.yaml\n  cox policy check --print queues.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fault.New(fault.Invalid, "cox policy check needs a file of rules").Advise("for example: cox policy check queues.yaml")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := a.ReadDocument(args[0])
			if err != nil {
				return err
			}
			if err := checkRules(args[0], data); err != nil {
				return cli.NotDone(err, "it cannot be applied")
			}
			p, err := policy.Parse(args[0], data)
			var located *spec.Error
			switch {
			case errors.As(err, &located):
				return cli.NotDone(err, "it cannot be applied")
			case err != nil:
				return err
			case write:
				_, err := a.Out.Write(policy.Write(p))
				return err
			}
			fmt.Fprintf(a.Out, "%s can be applied: %s\n", args[0], policy.Count(p))
			return nil
		},
	}
	cmd.Flags().BoolVarP(&write, "print", "p", false, "print the file in its standard form")
	return cmd
}

func policySchemaCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of queues.yaml, for editors",
		Example: "  cox policy schema > queues.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Out.Write(policy.Schema())
			return err
		},
	}
}
