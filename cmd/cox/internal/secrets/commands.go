package secrets

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return cli.InGroup(cli.GroupWork, secretCommand(a))
}

func secretCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Keep values that your jobs get: tokens, keys",
		Long: `A job that names a secret (secrets: in YAML) gets its value when it is launched, in a
variable or a file. The server keeps values in files that only it can read, outside
of its journal and of backups, and never sends one back.`,
		Example: "  cox secret set hf-token < token.txt\n  cox secret list\n  cox secret remove hf-token",
	}
	cmd.AddCommand(setCommand(a), listCommand(a), removeCommand(a))
	return cli.Group(cmd)
}

func completeSecrets(a *cli.App) cobra.CompletionFunc {
	return a.CompleteArgument(func(ctx context.Context, c *client.Client) ([]string, error) {
		all, err := c.Secrets(ctx)
		if err != nil {
			return nil, err
		}
		names := make([]string, len(all.Secrets))
		for i := range all.Secrets {
			names[i] = all.Secrets[i].Name
		}
		return names, nil
	})
}

func setCommand(a *cli.App) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Keep a value; one of this name is replaced", Args: cobra.ExactArgs(1),
		Long: `Reads the value from standard input, or asks for it on a terminal, and keeps it. One
line end at its end is left out. Jobs that run keep what they were given.`,
		Example: "  cox secret set hf-token < token.txt\n  cox secret set tls-key --from-file key.pem",
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if err := job.CheckSecretName(args[0]); err != nil {
				return fault.New(fault.Invalid, "%w", err).Advise("for example: cox secret set hf-token")
			}
			value, err := readValue(a, args[0], file)
			if err != nil {
				return err
			}
			if err := c.SetSecret(cmd.Context(), args[0], value); err != nil {
				return err
			}
			as := job.Secret{Name: args[0], Env: job.SecretVariable(args[0])}
			hint := fmt.Sprintf("secrets: [%s] in YAML gives it to a job as $%s", as.Name, as.Env)
			if as.Check() != nil {
				hint = fmt.Sprintf("secrets: [{name: %s, env: NAME}] in YAML gives it to a job as $NAME", as.Name)
			}
			_, err = fmt.Fprintf(a.Out, "secret %s is kept          %s\n", as.Name, hint)
			return err
		}),
	}
	cmd.Flags().StringVar(&file, "from-file", "", "`FILE` that has the value, byte by byte")
	return cmd
}

// readValue reads a value from a file as it is, or from standard input without a line end.
func readValue(a *cli.App, name, file string) ([]byte, error) {
	if file != "" {
		value, err := os.ReadFile(file)
		if err != nil {
			return nil, fault.New(fault.Invalid, "--from-file: %w", err)
		}
		return value, nil
	}
	if fd, ok := cli.TerminalFd(a.In); ok {
		fmt.Fprintf(a.Err, "value of %s (it is not shown): ", name)
		value, err := term.ReadPassword(fd)
		fmt.Fprintln(a.Err)
		return value, err
	}
	value, err := io.ReadAll(a.In)
	return bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r")), err
}

func listCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List your secrets", Args: cobra.NoArgs,
		Example: "  cox secret list",
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			all, err := c.Secrets(cmd.Context())
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, all.Secrets)
			case f == cli.AsName:
				var names []string
				for i := range all.Secrets {
					names = append(names, all.Secrets[i].Name)
				}
				return a.WriteNames(names)
			case len(all.Secrets) == 0:
				fmt.Fprintln(a.Err, "you have no secrets; cox secret set NAME keeps one")
				return nil
			}
			return printer.Secrets(a.Page(a.Out), all.Secrets).Write(a.Out, a.Page(a.Out))
		}),
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}

func removeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Aliases: []string{"delete", "rm"}, Short: "Forget a secret", Args: cobra.ExactArgs(1),
		Example:           "  cox secret remove hf-token",
		ValidArgsFunction: completeSecrets(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if err := c.RemoveSecret(cmd.Context(), args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.Out, "secret %s is gone\n", args[0])
			return err
		}),
	}
}
