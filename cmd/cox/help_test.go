package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// TestHelpFitsATerminal: no line of any command's help is wider than a terminal of 80 columns.
func TestHelpFitsATerminal(t *testing.T) {
	a := cli.New()
	root := rootCommand(a)
	seen := 0
	walk(root, func(c *cobra.Command) {
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		seen++
		for line := range strings.SplitSeq(out.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > cli.HelpWidth {
				t.Errorf("%s --help: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		if !strings.Contains(out.String(), "Usage:\n  "+c.CommandPath()) {
			t.Errorf("%s --help does not say how to call it:\n%s", c.CommandPath(), out.String())
		}
	})
	if seen < 50 {
		t.Errorf("only %d commands were looked at", seen)
	}
}
