package tutorial

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	kubelab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
	slurmlab "github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// reader is the user that reads a page: a plain one, where the test may become one.
const reader = 20311

// TestLaptop follows docs/tutorial/laptop.md as a plain user with an empty home directory.
func TestLaptop(t *testing.T) { followPage(t, "laptop.md", homeOf(t)) }

// TestServiceTutorial follows docs/tutorial/service.md as TestLaptop does its page.
func TestServiceTutorial(t *testing.T) { followPage(t, "service.md", homeOf(t)) }

// hideState hides the machine's own state from a shell in a mount namespace.
const hideState = `mount --make-rprivate / || exit
for dir in /var/lib /run; do mount -t tmpfs -o mode=755 tmpfs $dir || exit; done
`

// TestTeamMachine follows docs/tutorial/team-machine.md as root and as two users of the machine. It
// hides the machine's own state, configuration and users behind those of the test.
func TestTeamMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root starts the server of a team")
	}
	h := homeOf(t)
	h.user, h.before = nil, fmt.Sprintf(hideState+`
for name in passwd group; do cp /etc/$name ../$name; done
echo 'anna:x:20312:20312::%[1]s/anna:/bin/sh' >>../passwd
echo 'ben:x:20313:20313::%[1]s/ben:/bin/sh' >>../passwd
echo 'anna:x:20312:' >>../group
echo 'ben:x:20313:' >>../group
for name in passwd group; do mount --bind ../$name /etc/$name; done
`, h.dir)
	sudo := "#!/bin/sh\n[ \"$1\" = -u ] || exec \"$@\"\nuser=$2; shift 2\nexec setpriv --reuid $user --regid $user --init-groups env -C /tmp USER=$user HOME=" + h.dir + "/$user \"$@\"\n"
	if err := os.WriteFile(filepath.Join(h.bin, "sudo"), []byte(sudo), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	followPage(t, "team-machine.md", h)
}

// TestSlurmTutorial follows docs/tutorial/slurm-site.md with a cluster of real Slurm as login1.
func TestSlurmTutorial(t *testing.T) {
	cluster := slurmlab.Start(t, slurmlab.Config{})
	ssh := cluster.SSH(t)
	h := homeOf(t)
	remote := filepath.Join(cluster.Dir, "me")
	config := "Host login1\n  HostName 127.0.0.1\n  User games\n" // a plain user of every Debian
	for at := 0; at < len(ssh.Options); at += 2 {
		switch name, value := ssh.Options[at], ssh.Options[at+1]; name {
		case "-p":
			config += "  Port " + value + "\n"
		case "-i":
			config += "  IdentityFile " + value + "\n"
		case "-o":
			config += "  " + strings.Replace(value, "=", " ", 1) + "\n"
		}
	}
	for _, dir := range []string{remote, filepath.Join(h.dir, ".ssh")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(remote, 5, 60); err != nil { // games
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, ".ssh", "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	h.user, h.before = nil, fmt.Sprintf(hideState+`
sed 's|^root:.*|root:x:0:0:root:%s:/bin/sh|' /etc/passwd >../passwd
mount --bind ../passwd /etc/passwd
`, h.dir)
	h.place = strings.NewReplacer("/home/me", remote)
	followPage(t, "slurm-site.md", h)
}

// TestKubeTutorial follows docs/tutorial/kubernetes-cluster.md with a cluster of real Kubernetes.
func TestKubeTutorial(t *testing.T) {
	cluster := kubelab.Start(t, kubelab.Config{Kubelets: 2})
	h := homeOf(t)
	if err := os.Mkdir(filepath.Join(h.dir, "work"), 0o755); err != nil { //nolint:gosec // others have to pass
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(h.dir, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, ".kube", "config"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	words := cluster.Command(t.Context()).Args
	kubectl := "#!/bin/sh\nexec " + strings.Join(words, " ") + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(h.bin, "kubectl"), []byte(kubectl), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	h.user, h.before = nil, hideState
	h.place = strings.NewReplacer("debian:12", kubelab.Base, "registry.example/cox-agent:1", kubelab.Cox)
	followPage(t, "kubernetes-cluster.md", h)
}

// home is where a page is followed.
type home struct {
	bin, dir string
	env      []string
	user     *syscall.Credential // nil: the test's own
	place    *strings.Replacer   // what stands for places that the page names; nil: nothing
	before   string              // what the shell does first, in a mount namespace of its own
}

// homeOf makes an empty home directory with the programs on its path.
func homeOf(t *testing.T) home {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "cox-tutorial-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	bin := filepath.Join(root, "bin")
	h := home{bin: bin, dir: filepath.Join(root, "home")}
	for _, dir := range []string{root, bin, h.dir} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // others have to pass
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // others have to pass
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bin, "../../cmd/cox", "../../cmd/cox-slurm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.env = []string{"HOME=" + h.dir, "PATH=" + bin + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb"}
	if os.Geteuid() == 0 {
		h.user = &syscall.Credential{Uid: reader, Gid: reader}
		if err := os.Chown(h.dir, reader, reader); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// followPage runs the steps of a page in one shell and compares what they print.
func followPage(t *testing.T, name string, h home) {
	t.Helper()
	path := filepath.Join("../../docs/tutorial", name)
	steps, err := readPage(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(steps, func(s step) bool { return s.shown }) {
		t.Fatalf("%s shows no command", path)
	}
	const mark = "\x1e"
	var script strings.Builder
	script.WriteString("exec 2>&1\n" + h.before)
	for i, s := range steps {
		if h.place != nil {
			s.command = h.place.Replace(s.command)
		}
		fmt.Fprintf(&script, "%s\nprintf '%s%d %%d\\n' $?\n", s.command, mark, i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	script.WriteString("cox down --cancel >/dev/null\n") // for a page that failed before its own
	shell := exec.CommandContext(ctx, "bash", "-c", script.String())
	if h.before != "" {
		shell = exec.CommandContext(ctx, "unshare", append([]string{"--mount"}, shell.Args...)...)
	}
	shell.Dir, shell.Env = h.dir, h.env
	shell.SysProcAttr = &syscall.SysProcAttr{Credential: h.user, Setsid: true}
	shell.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	shell.Stdout = &said
	if err := shell.Run(); ctx.Err() != nil {
		t.Errorf("%s: %v\n%s", path, err, said.String())
	}
	rest := said.String()
	for i, s := range steps {
		out, after, found := strings.Cut(rest, fmt.Sprintf("%s%d ", mark, i))
		code, after, whole := strings.Cut(after, "\n")
		if !found || !whole {
			t.Fatalf("%s:%d: %s did not end; it printed\n%s", path, s.line, s.command, rest)
		}
		rest = after
		exit, err := strconv.Atoi(code)
		if err != nil {
			t.Fatal(err)
		}
		if (exit != 0) != s.fails {
			t.Fatalf("%s:%d: %s ended with exit code %d and printed\n%s", path, s.line, s.command, exit, out)
		}
		if !s.shown {
			continue
		}
		for i := range s.output {
			if h.place != nil {
				s.output[i] = h.place.Replace(s.output[i])
			}
		}
		if diff := differences(s.output, strings.Split(out, "\n")); diff != nil {
			t.Errorf("%s:%d: $ %s\n%s\nit printed\n%s", path, s.line, s.command, strings.Join(diff, "\n"), out)
		}
	}
}
