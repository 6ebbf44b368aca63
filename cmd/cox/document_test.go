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

var update = flag.Bool("update", false, "write docs/reference/cli.md and docs/reference/cli anew")

// TestDocument keeps docs/reference/cli.md and the page of each command beside it what the
// commands say of themselves. The transcripts in the pages are those of testdata/transcript.
func TestDocument(t *testing.T) {
	const reference = "../../docs/reference"
	pages := documents(t)
	old, err := filepath.Glob(filepath.Join(reference, "cli", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if _, known := pages["cli/"+filepath.Base(path)]; known {
			continue
		}
		if !*update {
			t.Errorf("%s is of no command: make docs", path)
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for page, want := range pages {
		path := filepath.Join(reference, page)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("docs/reference/%s is not what the commands say (%v): make docs", page, err)
		}
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

// documents are the pages of the commands by name: the list, and one of each command.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	var b strings.Builder
	root := rootCommand(cli.New())
	b.WriteString(`# The commands of cox

Each command has a page with its options, examples and real output; ` + "`cox COMMAND --help`" + ` says the same. ` + "`make docs`" + ` makes
the pages from the commands. The output comes from a server with two virtual nodes of four declared GPUs each.

- **Server**: ` + "`--server`" + `, else ` + "`COX_SERVER`" + ` (` + "`ssh://host`" + `, ` + "`unix:///path`" + `, ` + "`http://host:port`" + `, or the name of a context), else the
  current context (` + "`cox context`" + `), else the socket of this machine's server. Over TCP a token says who asks: ` + "`COX_TOKEN`" + `, or
  the file ` + "`~/.config/coxswain/token`" + ` (` + "`cox token create`" + `).
- **Jobs** are named 7, 7_3 (task 3 of array 7) or 7_[1-4,9]; 7.5 is rank 5 of job 7, 7.0.5 rank 5 of its step 0. The name of a job works
  too if only one job has it. ` + "`last`" + ` is your newest job.
- **Formats**: ` + "`-o json`" + ` and ` + "`-o yaml`" + ` print the types of the [API](api.md); ` + "`-o name`" + ` prints names for the next command;
  ` + "`-o jsonpath='{.jobs[*].name}'`" + ` and ` + "`-o custom-columns=JOB:.name,STATE:.state`" + ` print parts, as with kubectl. ` + "`--sort-by`" + ` takes
  a column, or a field such as .submitted.
- **Terminals**: only a terminal gets colours and shortened columns; a pipe gets every column whole. Answers go to standard
  output, remarks and errors to standard error.
- **Exit codes**: [exit-codes.md](exit-codes.md). **Completion** of commands, jobs, nodes and users: ` + "`cox completion bash`" + `, zsh, fish.
`)
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| command | |\n|---|---|\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID != g.ID || !c.IsAvailableCommand() || c.Name() == "help" {
				continue
			}
			fmt.Fprintf(&b, "| [%s](cli/%s.md) | %s |\n", c.CommandPath(), c.Name(), c.Short)
			var page strings.Builder
			walk(c, func(c *cobra.Command) {
				if c.Name() != "help" {
					section(t, &page, c)
				}
			})
			pages["cli/"+c.Name()+".md"] = strings.TrimPrefix(page.String(), "\n")
		}
	}
	pages["cli.md"] = b.String()
	return pages
}

// section documents one command.
func section(t *testing.T, b *strings.Builder, c *cobra.Command) {
	t.Helper()
	level := "#"
	if c.Parent().HasParent() {
		level = "##"
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
