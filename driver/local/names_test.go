package local_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
)

// Named nodes have host names of their own, and know each other's addresses.
func TestNamedNodes(t *testing.T) {
	naming, why := local.FindNaming(t.Context(), "")
	if why != "" {
		t.Skip(why)
	}
	t.Logf("named by %s", naming)
	before, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, local.Config{Naming: naming})
	l := plan(t, e, 3, "hostname", "getent hosts v2 v3 localhost", "id -u", "grep -c cox-hosts /proc/self/mountinfo || :")
	r := run(t, e, l)
	succeeded(t, r)
	lines := strings.Split(read(t, r.Files[0]), "\n")
	room := e.Room()
	if lines[0] != "v1" {
		t.Errorf("host name %q", lines[0])
	}
	for i, n := range room[1:3] {
		if f := strings.Fields(lines[1+i]); len(f) != 2 || f[0] != n.Address || f[1] != n.Name {
			t.Errorf("%s resolves to %q, want %s", n.Name, lines[1+i], n.Address)
		}
	}
	if !strings.Contains(lines[3], "localhost") {
		t.Errorf("localhost: %q", lines[3])
	}
	if now, _ := os.Hostname(); now != before {
		t.Errorf("the machine is now called %s", now)
	}
	if hosts := read(t, "/etc/hosts"); strings.Contains(hosts, room[1].Address) {
		t.Error("the machine's own hosts file was changed")
	}
}

// Nodes without names are called by their addresses, which need no resolver.
func TestNodesByAddress(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 2, `echo "$SLURMD_NODENAME"; hostname`)
	r := run(t, e, l)
	succeeded(t, r)
	lines := strings.Fields(read(t, r.Files[0]))
	host, _ := os.Hostname()
	if lines[0] != e.Room()[0].Address || lines[1] != host {
		t.Errorf("%v", lines)
	}
}

// asNobody are the tests that are run again by a user without rights.
const asNobody = "TestConformance|TestNamedNodes|TestNodesByAddress|TestNoPermission|TestOtherUsersAreRefused|TestExec|TestSuspend"

// The engine works for a user without rights, by user namespaces or without.
func TestWithoutRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("these tests are run by such a user already")
	}
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	const nobody = 65534
	dir, err := os.MkdirTemp("", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "local.test")
	if b, err := os.ReadFile(me); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(binary, b, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{dir, binary} {
		if err := os.Chown(f, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^("+asNobody+")$", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "named by") || strings.Contains(line, "SKIP") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

func TestNoPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may do everything")
	}
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1, "exit 0")
	l.Job.Spec.Output.Stdout = "/etc/cox.out"
	r := run(t, e, l)
	if r.Cause != engine.Refused || !strings.Contains(r.Message, "/etc/cox.out cannot be written: permission denied") {
		t.Errorf("%s: %q", r.Cause, r.Message)
	}
	if info, err := e.Info(t.Context()); err != nil || len(info.Notes) == 0 {
		t.Errorf("nothing says what is missing here: %+v, %v", info, err)
	} else {
		t.Log(strings.Join(info.Notes, "\n"))
	}
}
