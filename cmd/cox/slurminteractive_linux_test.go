package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/coxswain-sched/coxswain/internal/checkout"
	"github.com/coxswain-sched/coxswain/internal/exectest"
)

// testInteractive: a pool where Slurm chooses the nodes: salloc with steps of the site's srun, also on
// a terminal; cox exec, shell and forward in the allocation; how it ends.
func (s *slurmSite) testInteractive(t *testing.T) {
	s.addPool(t, "slurm-i", `slurm-i +slurm 2\S+ +up +4 `, append(s.byCommands(t), "--set", "root=true", "--shared", filepath.Join(s.dir, "locks-i"))...)
	names := s.slurmNames(t)
	run := func(words ...string) (string, string, int) {
		cmd := exectest.Command(t, nil, filepath.Join(names, words[0]), words[1:]...)
		cmd.Env, cmd.Dir = s.environ(names), s.dir
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	out, errs, code := run("salloc", "-p", "main", "-N2", "-n4", "sh", "-c", "echo $SLURM_JOB_ID nodes $SLURM_JOB_NUM_NODES of $SLURM_NTASKS; srun -l sh -c 'echo rank $SLURM_PROCID $MINE'; srun -n1 sh -c 'exit 3'; echo so $?; exit 4")
	id, _, _ := strings.Cut(out, " ")
	if code != 4 || !strings.Contains(errs, "Granted job allocation "+id+"\n") || !strings.Contains(out, id+" nodes 2 of 4\n") || !strings.Contains(out, "3: rank 3 mine\n") || !strings.Contains(out, "so 3\n") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	s.cox(t, "wait", id, "--quiet").Check(t, 1, "", "")
	s.ok(t, "FAILED", "show", id) // as salloc's command ended

	const inside = `echo id $SLURM_JOB_ID; srun --pty sh -c 'echo size $(stty size); read w; echo got $w; exit 5'; echo so $?; read x`
	cmd := exec.Command(filepath.Join(names, "salloc"), "-p", "main", "-N1", "sh", "-c", inside)
	cmd.Env, cmd.Dir = s.environ(names), s.dir
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 31, Cols: 77})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	defer func() { _ = cmd.Process.Kill() }()
	talk := &talker{t: t, tty: tty}
	id = talk.until(`id (\d+)`)
	talk.until(`size 31 77`)
	talk.say("a word\n")
	talk.until(`got a word`)
	talk.until(`so 5`)
	s.cox(t, "exec", id, "--", "sh", "-c", "exit 6").Check(t, 6, "", "")
	s.ok(t, s.dir+"\n", "exec", id, "--", "pwd")
	s.forward(t, id)
	talk.say("\n")
	if err := cmd.Wait(); err != nil {
		t.Errorf("salloc: %v", err)
	}
	s.ok(t, "COMPLETED", "show", id)
	s.ok(t, "pool slurm-i is gone", "pool", "remove", "slurm-i")
}

// slurmNames is a folder with salloc and srun.
func (s *slurmSite) slurmNames(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "cox-slurm"), "./cmd/cox-slurm")
	build.Dir = checkout.Path()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"salloc", "srun"} {
		if err := os.Symlink("cox-slurm", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (s *slurmSite) environ(names string) []string {
	return []string{"PATH=" + names + ":/usr/bin:/bin", "HOME=" + s.dir, "COX_SERVER=" + s.server, "SHELL=/bin/sh", "TERM=xterm", "MINE=mine"}
}

// forward reaches a port of the allocation's node from here.
func (s *slurmSite) forward(t *testing.T, id string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:"+fmt.Sprint(s.Port(1)))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "from the node") })} //nolint:gosec // a test's
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "cox")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "forward", id, fmt.Sprintf(":%d", s.Port(1)))
	cmd.Env = append(os.Environ(), "COX_SERVER="+s.server)
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	buf := make([]byte, 200)
	n, err := said.Read(buf)
	address, _, _ := strings.Cut(string(buf[:n]), " ")
	if err != nil || address == "" {
		t.Fatalf("cox forward: %q, %v", buf[:n], err)
	}
	r, err := http.Get("http://" + address) //nolint:noctx // a test's
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); err != nil || string(b) != "from the node" {
		t.Errorf("%q, %v", b, err)
	}
}

// talker is somebody at a terminal.
type talker struct {
	t    *testing.T
	tty  *os.File
	text string
}

// until waits for a text behind what was waited for before, and returns its first group.
func (k *talker) until(want string) string {
	k.t.Helper()
	re := regexp.MustCompile(want)
	buf := make([]byte, 4096)
	_ = k.tty.SetReadDeadline(time.Now().Add(5 * time.Minute))
	for {
		if at := re.FindStringSubmatchIndex(k.text); at != nil {
			found := k.text[at[0]:at[1]]
			if len(at) > 2 {
				found = k.text[at[2]:at[3]]
			}
			k.text = k.text[at[1]:]
			return found
		}
		n, err := k.tty.Read(buf)
		k.text += string(buf[:n])
		if err != nil {
			k.t.Fatalf("no %q: %v\n%s", want, err, k.text)
		}
	}
}

func (k *talker) say(text string) {
	k.t.Helper()
	if _, err := k.tty.WriteString(text); err != nil {
		k.t.Fatal(err)
	}
}
