package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md anew")

// TestDocument keeps docs/reference/cli.md what the commands say of themselves. The
// transcripts in it are those of testdata/transcript.
func TestDocument(t *testing.T) {
	const path = "../../docs/reference/cli.md"
	want := document(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("docs/reference/cli.md is not what the commands say (%v): make docs", err)
	}
}

// TestEveryCommandHasAnExample: one that can be pasted.
func TestEveryCommandHasAnExample(t *testing.T) {
	walk(rootCommand(cli.New()), func(c *cobra.Command) {
		if c.Short == "" || c.Runnable() && !c.HasSubCommands() && c.Example == "" {
			t.Errorf("%s has no description or no example", c.CommandPath())
		}
		for _, line := range strings.Split(c.Example, "\n") {
			if line != "" && !strings.Contains(line, "cox") {
				t.Errorf("%s: %q is no example of cox", c.CommandPath(), line)
			}
		}
	})
}

func walk(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			walk(sub, f)
		}
	}
}

func document(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	root := rootCommand(cli.New())
	b.WriteString(`# The commands of cox

Made from the commands themselves by ` + "`make docs`" + `; the transcripts are real output, of a server with two virtual nodes of
four declared GPUs each. ` + "`cox COMMAND --help`" + ` says the same.

- The server: ` + "`--server`" + `, else ` + "`COX_SERVER`" + ` (` + "`ssh://host`" + `, ` + "`unix:///path`" + `, ` + "`http://host:port`" + `, or the name of a context), else the
  current context (` + "`cox context`" + `), else the socket of this machine's server. Over TCP a token
  says who asks: ` + "`COX_TOKEN`" + `, or the file ` + "`~/.config/coxswain/token`" + ` (` + "`cox token create`" + `).
- Jobs are named 7, 7_3 (task 3 of array 7), 7_[1-4,9]; with a rank 7.5, with a step and a rank 7.0.5. A job's name will do where one
  job has it, and ` + "`last`" + ` is your newest job.
- Colours and cut columns only on a terminal; a pipe gets every column whole. ` + "`-o json`" + ` and ` + "`-o yaml`" + ` are the types of the API
  ([openapi](api.md)), ` + "`-o name`" + ` prints names to feed to the next command. ` + "`-o jsonpath='{.jobs[*].name}'`" + ` and
  ` + "`-o custom-columns=JOB:.name,STATE:.state`" + ` print parts, as with kubectl; ` + "`--sort-by`" + ` takes a column, or a field such as .submitted.
- Answers go to standard output, remarks and errors to standard error. Exit codes: [exit-codes.md](exit-codes.md).
- Completion of commands, jobs, nodes and users: ` + "`cox completion bash`" + `, zsh, fish.

`)
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "**%s**", strings.TrimSuffix(g.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && c.IsAvailableCommand() && c.Name() != "help" {
				fmt.Fprintf(&b, " · [%s](#cox-%s)", c.Name(), c.Name())
			}
		}
		b.WriteString("  \n")
	}
	for _, g := range root.Groups() {
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				walk(c, func(c *cobra.Command) {
					if c.Name() != "help" {
						section(t, &b, c)
					}
				})
			}
		}
	}
	return b.String()
}

// section documents one command.
func section(t *testing.T, b *strings.Builder, c *cobra.Command) {
	t.Helper()
	level := "##"
	if c.Parent().HasParent() {
		level = "###"
	}
	fmt.Fprintf(b, "\n%s %s\n\n%s.\n", level, c.CommandPath(), c.Short)
	if c.Runnable() && !c.HasSubCommands() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", useLines(c))
	}
	if c.Long != "" {
		fmt.Fprintf(b, "\n%s\n", c.Long)
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", dedent(c.Example))
	}
	if flags := cli.FlagUsages(c.NonInheritedFlags()); flags != "" && !c.HasSubCommands() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.TrimRight(dedent(flags), "\n"))
	}
	name := strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), "cox "), " ", "-")
	said, err := os.ReadFile(filepath.Join("testdata", "transcript", name+".txt"))
	switch {
	case os.IsNotExist(err):
	case err != nil:
		t.Fatal(err)
	default:
		fmt.Fprintf(b, "\n```console\n%s\n```\n", strings.TrimRight(string(said), "\n"))
	}
}

func useLines(c *cobra.Command) string {
	parent := strings.TrimSuffix(c.CommandPath(), c.Name())
	var lines []string
	for _, u := range strings.Split(c.Use, "  |  ") {
		lines = append(lines, parent+u)
	}
	return strings.Join(lines, "\n")
}

// dedent removes the blanks that all lines begin with.
func dedent(s string) string {
	lines := strings.Split(s, "\n")
	least := -1
	for _, l := range lines {
		if n := len(l) - len(strings.TrimLeft(l, " ")); l != "" && (least < 0 || n < least) {
			least = n
		}
	}
	for i, l := range lines {
		if l != "" {
			lines[i] = l[least:]
		}
	}
	return strings.Join(lines, "\n")
}
