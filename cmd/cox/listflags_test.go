package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// noList are the commands with -o that print no list: why each needs no --sort-by.
var noList = map[string]string{
	"advise":        "one answer",
	"apply":         "what it did",
	"defrag":        "one proposal",
	"doctor":        "one report",
	"info":          "one server",
	"node check":    "one report",
	"node drain":    "what it did",
	"node fence":    "what it did",
	"node move":     "what it did",
	"node resume":   "what it did",
	"node show":     "one node",
	"node unfence":  "what it did",
	"policy show":   "one file",
	"pool add":      "what it did",
	"pool check":    "one check",
	"pool show":     "one pool",
	"schedule show": "one schedule", "service show": "one service", "service rollout status": "one update",
	"reserve show":    "the reservations that it is given",
	"show":            "the jobs that it is given",
	"simulate":        "one report",
	"token create":    "what it did",
	"verify":          "one report",
	"wait":            "the jobs that it is given",
	"watch":           "it never ends",
	"whatif":          "one report",
	"why":             "the jobs that it is given",
	"hold":            "what it did",
	"cancel":          "what it did",
	"release":         "what it did",
	"requeue":         "what it did",
	"resume":          "what it did",
	"signal":          "what it did",
	"suspend":         "what it did",
	"update":          "what it did",
	"checkpoint-done": "what it did",
}

// TestEveryListHasTheFlagsOfAList: a command that prints a format for programs is a list, with
// --sort-by, --no-headers, --limit and -o name, or it is in noList with the reason.
//
// Seen to fail with: cox quota without them.
func TestEveryListHasTheFlagsOfAList(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	seen := map[string]bool{}
	walk(rootCommand(cli.New()), func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "cox ")
		out := c.Flags().Lookup("output")
		if out == nil || out.Shorthand != "o" || !strings.Contains(out.Usage, "json") {
			return
		}
		seen[name] = true
		lacks := ""
		for _, flag := range []string{"sort-by", "no-headers", "limit"} {
			if c.Flags().Lookup(flag) == nil {
				lacks += " --" + flag
			}
		}
		if !strings.Contains(out.Usage, "name") {
			lacks += " -o name"
		}
		switch _, listed := noList[name]; {
		case lacks != "" && !listed:
			t.Errorf("cox %s lacks%s: add a.ListFlags, or say in noList why it is no list", name, lacks)
		case lacks == "" && listed:
			t.Errorf("cox %s has the flags of a list: take it out of noList", name)
		}
	})
	for name := range noList {
		if !seen[name] {
			t.Errorf("noList has %s, which has no -o json", name)
		}
	}
}
