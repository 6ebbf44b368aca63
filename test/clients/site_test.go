package clientstest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// patience bounds a client's program. It ends a client that hangs and says nothing of speed.
const patience = 5 * time.Minute

// pollEvery is the pause between two looks at what has no event to wait for.
const pollEvery = 50 * time.Millisecond

var update = flag.Bool("update", false, "write the transcripts anew")

// site is a server with four virtual nodes of two GPUs each, and a user's shell in which Slurm's
// names and one client come first in PATH.
type site struct {
	t      *testing.T
	client string // the folder where the client is installed
	dir    string // the working directory of the client's program, also its HOME
	env    []string
}

// openSite starts a server for one client. The test is skipped where clients are not installed, and
// fails where this one is missing.
func openSite(t *testing.T, client string) *site {
	t.Helper()
	clients := os.Getenv("COX_CLIENTS")
	if clients == "" {
		t.Skip("run make clients: this needs client programs from their registries")
	}
	s := &site{t: t, client: filepath.Join(clients, client), dir: t.TempDir()}
	if _, err := os.Stat(s.client); err != nil {
		t.Fatalf("%s is not installed: run scripts/clients/install.sh %[1]s", client)
	}
	state, names := filepath.Join(s.dir, ".state"), filepath.Join(s.dir, ".names")
	s.env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "PATH" || name == "HOME" || name == "COX_SERVER" || strings.HasPrefix(name, "SLURM") || strings.HasPrefix(name, "SBATCH")
	})
	s.env = append(s.env, "HOME="+s.dir, "COX_SERVER=unix://"+filepath.Join(state, "cox.sock"),
		"PATH="+strings.Join([]string{names, filepath.Join(s.client, "bin"), os.Getenv("PATH")}, ":"))
	s.startServer(state)
	if out, err := s.command(context.Background(), filepath.Join(binaries, "cox"), "install-names", names).CombinedOutput(); err != nil {
		t.Fatalf("cox install-names: %v\n%s", err, out)
	}
	s.copyFiles()
	return s
}

// startServer starts cox up and waits for its line that it is ready. The server and its jobs end
// with the test.
func (s *site) startServer(state string) {
	s.t.Helper()
	config := filepath.Join(s.dir, ".cox.yaml")
	if err := os.WriteFile(config, []byte("name: clients\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	cox := filepath.Join(binaries, "cox")
	server := s.command(context.Background(), cox, "up", "--config", config, "--state-dir", state, "--tcp", "none", "--nodes", "4", "--gpus-per-node", "2")
	pipe, err := server.StderrPipe()
	if err == nil {
		err = testcluster.Start(server)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ready, said := make(chan struct{}), make(chan string, 1)
	go readServer(pipe, ready, said)
	s.t.Cleanup(func() {
		if b, err := s.command(context.Background(), cox, "down", "--cancel").CombinedOutput(); err != nil {
			s.t.Errorf("cox down: %v\n%s", err, b)
			_ = server.Process.Kill()
		}
		log := <-said
		_ = server.Wait()
		if s.t.Failed() {
			s.t.Logf("the server said:\n%s", log)
		}
	})
	select {
	case <-ready:
	case log := <-said:
		said <- log
		s.t.Fatal("the server did not start")
	}
}

// readServer reads all that a server says: it closes ready at the line that the server is ready and
// sends the whole at the end.
func readServer(pipe io.Reader, ready chan<- struct{}, said chan<- string) {
	var all strings.Builder
	for lines, open := bufio.NewScanner(pipe), true; lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if open && strings.HasPrefix(lines.Text(), "ready") {
			open = false
			close(ready)
		}
	}
	said <- all.String()
}

// command is a command of the user's shell. It is a process group of its own, which ends with the
// test.
func (s *site) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = s.dir, s.env
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	c.Cancel = func() error { return unix.Kill(-c.Process.Pid, unix.SIGKILL) }
	return c
}

// run runs a command in the user's shell and returns its standard output. The test fails, with all
// that the command said and the server's list of jobs, where it does not exit with 0.
func (s *site) run(name string, args ...string) string {
	s.t.Helper()
	out, _, err := s.try(name, args...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return out
}

// try is run for a command that may fail: its standard output, its standard error and how it ended.
func (s *site) try(name string, args ...string) (printed, said string, err error) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	var out, errs bytes.Buffer
	c := s.shell(ctx, append([]string{name}, args...)...)
	c.Stdout, c.Stderr = &out, &errs
	if err = testcluster.Start(c); err == nil {
		err = c.Wait()
	}
	if ctx.Err() != nil {
		err = errors.Join(err, errors.New("it did not end"))
	}
	if err != nil {
		jobs, _ := s.shell(context.Background(), "sacct", "-X", "-o", "JobID,JobName%40,State%20,ExitCode,Reason%40").CombinedOutput()
		ended, _ := s.command(context.Background(), filepath.Join(binaries, "cox"), "history", "-o", "wide").CombinedOutput()
		s.t.Logf("it printed:\n%s\nand said:\n%s\njobs:\n%s\nended:\n%s", out.String(), errs.String(), jobs, ended)
	}
	return out.String(), errs.String(), err
}

// shell is a command that is looked up in the user's PATH.
func (s *site) shell(ctx context.Context, line ...string) *exec.Cmd {
	return s.command(ctx, "/usr/bin/env", line...)
}

// copyFiles copies the client's files of testdata, where it has some, into the working directory.
func (s *site) copyFiles() {
	s.t.Helper()
	if err := os.CopyFS(s.dir, os.DirFS(filepath.Join("testdata", filepath.Base(s.client)))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
}

// awaitEnds waits until accounting has the end of every job: a client may have a result before its job
// has ended.
func (s *site) awaitEnds() {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(pollEvery) {
		states := s.run("sacct", "-X", "-n", "-P", "-o", "State")
		if !strings.Contains(states, "PENDING") && !strings.Contains(states, "RUNNING") {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("jobs do not end: %s", states)
		}
	}
}

// states lists all jobs, which it waits for, as sacct does, in some of its columns, sorted. Its word for a job that its user
// cancelled, CANCELLED by UID, is there without the number.
func (s *site) states(columns string) string {
	s.t.Helper()
	s.awaitEnds()
	lines := strings.Split(strings.TrimSpace(s.run("sacct", "-X", "-n", "-P", "-o", columns)), "\n")
	slices.Sort(lines)
	return strings.ReplaceAll(strings.Join(lines, "\n")+"\n", fmt.Sprintf("CANCELLED by %d", os.Getuid()), "CANCELLED by UID")
}

// compare compares what a client printed with a transcript beside its files in testdata.
func (s *site) compare(transcript, got string) {
	s.t.Helper()
	name := filepath.Join("testdata", filepath.Base(s.client), transcript)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		s.t.Fatal(err)
	}
	if got != string(want) {
		s.t.Errorf("%s: got\n%s\nwant\n%s", transcript, got, want)
	}
}
