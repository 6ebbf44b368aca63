package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// callable is how each command is called, without its name, so that it does something. FILE
// is a script, RULES a file of rules, DIR an empty folder.
var callable = map[string]string{
	"advise":           "FILE",
	"apply":            "-f RULES --yes",
	"audit":            "",
	"backup":           "DIR",
	"cancel":           "7",
	"checkpoint-done":  "7",
	"completion":       "bash",
	"config check":     "",
	"config show":      "",
	"context":          "",
	"context add":      "name ssh://host",
	"context list":     "",
	"context remove":   "name",
	"context use":      "name",
	"convert":          "FILE --to native",
	"defrag":           "",
	"defrag approve":   "3",
	"down":             "",
	"exec":             "7 -- true",
	"forward":          "7 8888",
	"gateway":          "--listen 127.0.0.1:0",
	"gateway manifest": "",
	"get":              "jobs",
	"history":          "",
	"hold":             "7",
	"import kueue":     "FILE",
	"import slurm":     "FILE",
	"info":             "",
	"install-names":    "DIR",
	"jupyter":          "",
	"licenses":         "",
	"logs":             "7",
	"doctor":           "",
	"machines":         "",
	"node check":       "n1",
	"node drain":       "n1 --reason broken",
	"node fence":       "n1 --reason open",
	"node move":        "n1 --to p",
	"node resume":      "n1",
	"node show":        "n1",
	"node unfence":     "n1",
	"nodes":            "",
	"partitions":       "",
	"ping":             "",
	"policy check":     "RULES",
	"policy history":   "",
	"policy schema":    "",
	"policy show":      "",
	"pool add":         "p --engine local",
	"pool check":       "p",
	"pool list":        "",
	"pool remove":      "p",
	"pool show":        "p",
	"priority":         "",
	"queue":            "",
	"pull":             "7",
	"quota":            "",
	"registry list":    "",
	"registry login":   "reg.io",
	"registry logout":  "reg.io",
	"release":          "7",
	"replay":           "FILE",
	"report cost":      "", "report efficiency": "", "report fairness": "", "report usage": "", "report waits": "",
	"requeue":     "7",
	"secret list": "", "secret set": "s", "secret remove": "s",
	"schedule list": "", "schedule show": "s", "schedule suspend": "s", "schedule resume": "s", "schedule run": "s", "schedule stop": "s",
	"service list": "", "service show": "s", "service scale": "s 2", "service stop": "s",
	"service rollout status": "s", "service rollout pause": "s", "service rollout resume": "s", "service rollout undo": "s",
	"reserve create": "r --duration 1h",
	"reserve delete": "r",
	"reserve list":   "",
	"reserve show":   "r",
	"reserve update": "r --duration 1h",
	"restore":        "DIR",
	"resume":         "7",
	"run":            "-- true",
	"shares":         "",
	"shell":          "7",
	"show":           "7",
	"signal":         "USR1 7",
	"simulate":       "--demo deadlock",
	"snapshot":       "",
	"ssh-config":     "",
	"submit":         "FILE",
	"suspend":        "7",
	"token create":   "",
	"token list":     "",
	"token revoke":   "t1",
	"top":            "",
	"up":             "",
	"update":         "7 --time 5",
	"verify":         "p",
	"version":        "",
	"wait":           "7",
	"watch":          "",
	"web":            "--print",
	"whatif":         "--add-nodes 1",
	"why":            "7",
}

// eachCommand calls f for every command that does something, with words that call it.
func eachCommand(t *testing.T, f func(cmd *cobra.Command, args []string)) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // some change contexts
	t.Helper()
	dir := t.TempDir()
	files := strings.NewReplacer("FILE", filepath.Join(dir, "job.sh"), "RULES", filepath.Join(dir, "queues.yaml"), "DIR", filepath.Join(dir, "empty"))
	for name, text := range map[string]string{"job.sh": "#!/bin/sh\ntrue\n", "queues.yaml": "accounts: []\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := len(callable)
	walk(rootCommand(cli.New()), func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "cox ")
		words, ok := callable[name]
		switch {
		case ok:
			left--
			f(c, append(strings.Fields(name), strings.Fields(files.Replace(words))...))
		case c.Runnable() && !c.HasSubCommands():
			t.Errorf("%s is not in the table of this test", c.CommandPath())
		}
	})
	if left != 0 {
		t.Errorf("%d commands of the table do not exist", left)
	}
}

// TestEveryCommandHonoursServer: with --server a command asks that server and none else, or
// it refuses the flag by name because it asks none.
func TestEveryCommandHonoursServer(t *testing.T) {
	other := newFake(t)
	t.Setenv("COX_SERVER", other.URL)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	eachCommand(t, func(c *cobra.Command, args []string) {
		if c.Name() == "top" {
			return // it becomes another program, which has the server from COX_SERVER
		}
		named := newFake(t)
		r := runBriefly(t, append([]string{"--server", named.URL}, args...))
		switch {
		case len(named.Requests()) > 0 && cli.IsLocal(c):
			t.Errorf("%s asked the server, and is said to ask none", c.CommandPath())
		case len(named.Requests()) == 0 && (r.code == 0 || !strings.Contains(r.err, "--server") && !strings.Contains(r.err, named.URL)):
			t.Errorf("%s did not ask the server that --server names: exit %d\n%s%s", c.CommandPath(), r.code, r.out, r.err)
		}
	})
	if asked := other.Requests(); len(asked) > 0 {
		t.Errorf("the server of COX_SERVER was asked: %q", asked)
	}
}

// TestEveryFlagRefusesEmpty: a flag of any command that is given an empty value is refused
// and nothing is asked, unless its empty value has a meaning.
func TestEveryFlagRefusesEmpty(t *testing.T) {
	s := newFake(t)
	allowed := map[string]bool{}
	eachCommand(t, func(c *cobra.Command, args []string) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			_, isList := f.Value.(pflag.SliceValue)
			if f.Value.Type() != "string" && !isList || f.Name == "server" {
				return
			}
			if cli.AllowsEmpty(f) {
				allowed[f.Name] = true
				return
			}
			values := []string{""}
			if isList && strings.HasSuffix(f.Value.Type(), "Slice") {
				values = append(values, ",", "a,")
			}
			for _, v := range values {
				before := len(s.Requests())
				r := runBriefly(t, append(serverFlag(c, s.URL), withFlag(args, "--"+f.Name+"="+v)...))
				if r.code != 2 || !strings.Contains(r.err, "--"+f.Name+" is empty") || len(s.Requests()) > before {
					t.Errorf("%s --%s=%q: exit %d %s, asked %q", c.CommandPath(), f.Name, v, r.code, r.err, s.Requests()[before:])
				}
			}
		})
	})
	for f := range allowed {
		if !strings.Contains(" account qos comment dependency nodelist exclude constraint every note reason back print-rbac print-policy ", " "+f+" ") {
			t.Errorf("--%s may be empty: is it no filter?", f)
		}
	}
	if r := runBriefly(t, []string{"--server=", "queue"}); r.code != 2 || !strings.Contains(r.err, "--server is empty") {
		t.Errorf("--server='': %+v", r)
	}
}

// TestEmptyWordsAreRefused: an empty word where a job, node or file is named is no word that
// was left out.
func TestEmptyWordsAreRefused(t *testing.T) {
	s := newFake(t)
	eachCommand(t, func(c *cobra.Command, args []string) {
		switch c.Name() {
		case "run", "submit", "exec", "convert": // their words are a program's
			return
		}
		before := len(s.Requests())
		r := runBriefly(t, append(serverFlag(c, s.URL), append(args, "")...))
		if r.code == 0 || len(s.Requests()) > before {
			t.Errorf("%s %q '': exit %d %s, asked %q", c.CommandPath(), args, r.code, r.err, s.Requests()[before:])
		}
	})
}

// withFlag puts a flag behind the others, and before the words of a program.
func withFlag(args []string, flag string) []string {
	n := slices.Index(args, "--")
	if args[0] == "submit" || args[0] == "run" {
		n = 1
	}
	if n < 0 {
		n = len(args)
	}
	return slices.Insert(slices.Clone(args), n, flag)
}

// serverFlag is --server for the commands that take it.
func serverFlag(c *cobra.Command, url string) []string {
	if cli.IsLocal(c) {
		return nil
	}
	return []string{"--server", url}
}

type ended struct {
	out, err string
	code     int
}

// runBriefly runs a command of cox that is not left waiting for what the server of a test
// never sends.
func runBriefly(t *testing.T, args []string) ended {
	t.Helper()
	var out, err bytes.Buffer
	a := cli.New()
	a.In, a.Out, a.Err = strings.NewReader(""), &out, &err
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	code := a.Execute(ctx, rootCommand(a), args)
	return ended{out.String(), err.String(), code}
}
