package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

var updateMessages = flag.Bool("update-messages", false, "write testdata/messages.txt anew, and read it aloud")

// mistaken are the files that the commands of testdata/messages.txt are about.
var mistaken = map[string]string{
	"train.sbatch": "#!/bin/sh\n#SBATCH -J train\n#SBATCH --time=10:00\ntrue\n",
	"train.yaml":   "name: train\ncommand: python3 train.py\nnodes: 1\n",
	"train.py":     "import torch\nprint(1)\n",
	"page.html":    "<!DOCTYPE html><html></html>\n",
	"Dockerfile":   "FROM python:3\n",
	"note.ipynb":   "{\"cells\": [], \"nbformat\": 4}\n",
	"job.yaml":     "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, comand: [env]}]}}}\n",
	"compose.yaml": "services:\n  web:\n    image: nginx\n",
	"queues.yaml":  "accounts: [{name: lab, users: [root, daemon], qos: normal}]\nqos: [normal]\n",
	"wrong.yaml":   "accounts: [{name: lab, limit: 3}]\n",
	"parts.yaml":   "partitions: [{name: gpu, tier: 2}]\n",
	"cox.yaml":     "name: hpc\nroom: {nods: 3}\n",
	"empty.yaml":   "",
	"colon.yaml":   "name: a: b\ncommand: true\n",
	"tab.yaml":     "name: a\nenv:\n\tA: b\n",
	"indent.yaml":  "name: a\n  command: true\n",
	"quote.yaml":   "name: \"a\ncommand: true\n",
	"at.yaml":      "name: @a\ncommand: true\n",
	"list.yaml":    "name: a\ncommand: [true\nnodes: 2\n",
	"dash.yaml":    "command: - true\n",
	"nocolon.yaml": "name: a\ncommand\nnodes: 2\n",
	"hook.yaml":    "command: true\nnotify: end\n",
	"hook2.yaml":   "command: true\nnotify: {webhook: hooks.slack.com/x}\n",
	"hook3.yaml":   "command: true\nnotify: {webhook: 'http://169.254.169.254/x'}\n",
	"hook4.yaml":   "command: true\nnotify: {webhook: 'https://hooks.slack.com/x', on: [start]}\n",
	"hook5.yaml":   "command: true\nnotify: {on: [end]}\n",
	"colon.cox":    "name: hpc: a\n",
	"type.cox":     "room: 3\n",
	"hook.cox":     "notify:\n  job_webhooks: [https://a.org]\n",
	"broken.yaml":  "accounts: [\n",
	"slurm.conf":   "ClusterName=lab\nNodeName=n[1-2] CPUs=8\nPartitionName=gpu Nodes=ALL\nDefMemPerCPU=100\n",
	"gpus.sbatch":  "#!/bin/sh\n#SBATCH --gpus-per-node=64\ntrue\n",
	"nodes.sbatch": "#!/bin/sh\n#SBATCH --nodes=99\ntrue\n",
}

// TestMessages runs the commands of testdata/messages.txt against a real server and compares all that
// they print, and their exit codes. A line that begins with $ is a command of the user who runs the
// test, one with daemon$ a command of a plain user, for which the test needs to be root.
//
// The table holds mistakes that people make. Read what it says aloud: a person who has never seen the
// product must know what is wrong and what to type instead. -update-messages writes it anew.
//
// Jobs: 1 COMPLETED, 2 FAILED, 3 RUNNING on all GPUs, 4 held, 5 waits for GPUs, 6 a held array, 9 held, of daemon.
//
// Seen to fail with: cancel of an ended job that says "cancelled 1".
func TestMessages(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, whose words and a plain user's differ")
	}
	m := startMessages(t)
	name, err := filepath.Abs(filepath.Join("testdata", "messages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(m.dir)
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		command, asDaemon := strings.CutPrefix(line, "daemon$ ")
		mine, asRoot := strings.CutPrefix(line, "$ ")
		switch {
		case asDaemon:
			got.WriteString(line + indent(m.runAs(t, command)))
		case asRoot:
			got.WriteString(line + indent(m.run(t, mine)))
		case strings.HasPrefix(line, "#") || line == "\n":
			got.WriteString(line)
		}
	}
	if *updateMessages {
		if err := os.WriteFile(name, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("messages (-want +got)\n%s", diff)
	}
}

// messageLab is a server with jobs, and a folder with mistaken files.
type messageLab struct {
	dir, cox, socket string
	plainUser        *user.User
}

func startMessages(t *testing.T) *messageLab {
	t.Helper()
	daemon, err := user.Lookup("daemon")
	if err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "messages")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &messageLab{dir: filepath.Join(dir, "work"), cox: filepath.Join(dir, "cox"), socket: filepath.Join(dir, "s", "cox.sock"), plainUser: daemon}
	for _, d := range []string{dir, m.dir, filepath.Dir(m.socket)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", self, m.cox).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for name, text := range mistaken {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(m.dir, "private.sbatch"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("TZ", "UTC")
	t.Setenv("COX_SERVER", "unix://"+m.socket)
	m.start(t, "up", "-d", "--state-dir", filepath.Join(dir, "state"), "--socket", m.socket, "--tcp", "none", "--nodes", "2", "--gpus-per-node", "4")
	t.Cleanup(func() { m.start(t, "down", "--cancel") })
	work := func(args string, code string) {
		if said := m.run(t, "cox submit "+args); !strings.HasSuffix(said, "exit "+code+"\n") {
			t.Fatal(said)
		}
	}
	work("-J done --wait -- true", "0")
	work("-J bad --wait -- sh -c 'exit 3'", "3")
	work("-J busy -N 2 --gpus-per-node 4 -- sleep 1000", "0")
	work("-J held -H -- true", "0")
	work("-J waits -N 2 --gpus-per-node 4 -- true", "0")
	work("-J sweep -H -a 1-3 -- true", "0")
	if said := m.runAs(t, "cox submit -J theirs -H -- true"); said != "9 theirs submitted\nexit 0\n" {
		t.Fatal(said)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for !strings.Contains(m.run(t, "cox queue 3"), "RUNNING") {
		if time.Now().After(deadline) {
			t.Fatal(m.run(t, "cox show 3"))
		}
	}
	return m
}

// start runs the program itself, which must succeed.
func (m *messageLab) start(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(m.cox, args...).CombinedOutput(); err != nil {
		t.Fatalf("cox %q: %v\n%s", args, err, out)
	}
}

// run runs a command in this process and returns what it says, with its exit code.
func (m *messageLab) run(t *testing.T, line string) string {
	t.Helper()
	var out bytes.Buffer
	a := cli.New()
	a.In, a.Out, a.Err = strings.NewReader(""), &out, &out
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code := a.Execute(ctx, rootCommand(a), splitWords(line)[1:])
	return m.plain(out.String(), code)
}

// runAs runs a command as daemon.
func (m *messageLab) runAs(t *testing.T, line string) string {
	t.Helper()
	uid, err := strconv.ParseUint(m.plainUser.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), m.cox, splitWords(line)[1:]...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "HOME=/nowhere")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	out, err := cmd.CombinedOutput()
	code := 0
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		code = failed.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return m.plain(string(out), code)
}

// plain is what a command said without what differs from machine to machine.
func (m *messageLab) plain(said string, code int) string {
	said = strings.NewReplacer(m.dir, "/work", filepath.Dir(m.dir), "/lab").Replace(said)
	if said != "" && !strings.HasSuffix(said, "\n") {
		said += "\n"
	}
	said = processNumber.ReplaceAllString(said, "process N")
	said = jobsMatch.ReplaceAllString(said, "N jobs match") // more of them on a slow machine, where some have not ended
	return said + fmt.Sprintf("exit %d\n", code)
}

var (
	processNumber = regexp.MustCompile(`process \d+`)
	jobsMatch     = regexp.MustCompile(`\d+ jobs match`)
)

// indent sets what a command said apart from the commands of the table.
func indent(said string) string {
	var b strings.Builder
	for line := range strings.Lines(said) {
		b.WriteString("  " + line)
	}
	return b.String()
}

// splitWords takes a line apart as a shell does: at blanks, but for those in quotes.
func splitWords(line string) (words []string) {
	quote, in := rune(0), false
	var b strings.Builder
	for _, r := range strings.TrimSpace(line) + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, in = r, true
		case quote == 0 && r == ' ':
			if in {
				words = append(words, b.String())
			}
			b.Reset()
			in = false
		default:
			b.WriteRune(r)
			in = true
		}
	}
	return words
}
