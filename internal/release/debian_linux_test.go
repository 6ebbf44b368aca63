package release_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/internal/checkout"
	"github.com/coxswain-sched/coxswain/internal/release"
)

// lastRelease is the folder with cox and cox-slurm of the release before this one, built once
// from the commit that testdata/last-release names, and kept in the cache.
func lastRelease(t *testing.T) string {
	t.Helper()
	commit := strings.TrimSpace(string(read(t, filepath.Join("testdata", "last-release"))))
	to := filepath.Join(cacheFolder(t), "release", commit+"-"+runtime.Version())
	if _, err := os.Stat(to); err == nil {
		return to
	}
	git := exec.Command("git", "archive", "--format=tar", "-o", filepath.Join(t.TempDir(), "sources.tar"), commit)
	git.Dir = checkout.Path()
	if said, err := git.CombinedOutput(); err != nil {
		t.Skipf("the last release, commit %s, is not in this clone: %s", commit, said)
	}
	sources, made := t.TempDir(), to+".part"
	if err := os.RemoveAll(made); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "tar", "-xf", git.Args[4], "-C", sources)
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", made+"/", "./cmd/cox", "./cmd/cox-slurm")
	build.Dir, build.Env = sources, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the last release: %v: %s", err, said)
	}
	if err := os.Rename(made, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// enterCopy makes a copy of this machine's root directory that keeps nothing, with a process
// tree of its own, and runs a command in it. Files of the folder $1 are in /srv there.
const enterCopy = `set -e
files=$1 top=$2
shift 2
mount --make-rprivate /
mount -t tmpfs none "$top"
mkdir "$top/up" "$top/work" "$top/root"
mount -t overlay -o "lowerdir=/,upperdir=$top/up,workdir=$top/work" none "$top/root"
cd "$top/root"
rm -rf var/lib/coxswain etc/coxswain usr/sbin/policy-rc.d usr/bin/systemctl
cp "$files/systemctl" usr/bin/systemctl
mount -t proc none proc
mount --rbind /dev dev
mount -t sysfs none sys
mount -t tmpfs none run
mount -t tmpfs -o mode=1777 none tmp
mount --bind "$files" srv
mkdir -p run/systemd/system
chroot . "$@" &
wait $!
`

// TestDebianPackage installs the package of the last release, starts the server by its unit,
// runs a job, upgrades to this release, rolls back, and removes it: TestInsideTheCopy does this
// in a copy of the machine, with real dpkg. It needs root, and Debian.
//
// Seen to fail with: no restart in postinst; no conffiles; no stop in prerm; no rm in postrm.
func TestDebianPackage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can install packages")
	}
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("no dpkg here")
	}
	out, old := buildHere(t), lastRelease(t)
	files := t.TempDir()
	var programs []release.Entry
	for _, name := range []string{"cox", "cox-slurm"} {
		programs = append(programs, release.Entry{Name: name, Text: read(t, filepath.Join(old, name)), Mode: 0o755})
	}
	s := release.Source{Dir: checkout.Path(), Version: "v1.2.2", Time: testTime.Add(-time.Hour)}
	if err := release.WriteDebian(s, runtime.GOARCH, filepath.Join(files, "old.deb"), programs); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		filepath.Join(out, "coxswain_1.2.3~rc.1_"+runtime.GOARCH+".deb"): "new.deb",
		filepath.Join("testdata", "systemctl"):                           "systemctl",
		os.Args[0]:                                                       "test",
	} {
		mustRun(t, "cp", from, filepath.Join(files, to))
	}
	cmd := exec.Command("sh", "-c", enterCopy, "sh", files, t.TempDir(), "/srv/test", "-test.run=^TestInsideTheCopy$", "-test.v", "-test.timeout=3m")
	cmd.Env = append(os.Environ(), "COX_INSIDE_COPY=1", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/root", "COX_SERVER=", "COX_TOKEN=", "TMPDIR=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	said, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(said), "mount: ") {
		t.Skipf("no copy of this machine can be mounted: %s", said)
	}
	if err != nil || !strings.Contains(string(said), "--- PASS: TestInsideTheCopy") {
		t.Errorf("%v\n%s", err, said)
	}
}

// inside is a machine in which the package is installed.
type inside struct{ *testing.T }

// asUser runs a command of cox as a user who is not root, in his folder.
func (m inside) asUser(args ...string) string {
	m.Helper()
	args = append([]string{"--reuid=65534", "--regid=65534", "--clear-groups", "env", "-C", "/tmp/user", "HOME=/tmp/user"}, args...)
	ctx, stop := context.WithTimeout(m.Context(), time.Minute)
	defer stop()
	said, err := exec.CommandContext(ctx, "setpriv", args...).CombinedOutput()
	if err != nil {
		queue, _ := exec.Command("cox", "queue").CombinedOutput()
		log, _ := os.ReadFile("/run/server.log")
		m.Fatalf("%s: %v\n%s\n%s\n%s", strings.Join(args[6:], " "), err, said, queue, log)
	}
	return string(said)
}

// hear reads a word from a job, and say tells it one: both wait for the other side.
func (m inside) hear(pipe string) {
	m.Helper()
	m.meet("hear", func() error {
		_, err := os.ReadFile("/tmp/user/" + pipe)
		return err
	})
}

func (m inside) say(pipe string) {
	m.Helper()
	m.meet("say", func() error { return os.WriteFile("/tmp/user/"+pipe, []byte("go\n"), 0) })
}

func (m inside) meet(what string, do func() error) {
	m.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err != nil {
			m.Fatal(err)
		}
	case <-time.After(time.Minute):
		m.asUser("sh", "-c", "tail -n 20 slurm-*; echo the job does not come to "+what+"; exit 1")
	}
}

// expectStates compares the states of jobs with those that they should have.
func (m inside) expectStates(want string) {
	m.Helper()
	if got := strings.Join(strings.Fields(mustRun(m.T, "cox-slurm", "squeue", "-h", "-t", "all", "-S", "i", "-o", "%i=%T")), " "); got != want {
		m.Errorf("the jobs are %q, and not %q", got, want)
	}
}

// install installs a package file, and leaves changed files of the configuration as they are.
func (m inside) install(file string) string {
	m.Helper()
	return mustRun(m.T, "dpkg", "--force-unsafe-io", "--force-confold", "-i", "/srv/"+file)
}

// upgradedJob has steps before and after the server's programs are exchanged under it.
const upgradedJob = `#!/bin/sh
srun -n1 echo step before
echo > told1
read word < go1
srun -n1 echo step between
echo > told2
read word < go2
srun -n1 echo step after
`

// TestInsideTheCopy is what TestDebianPackage runs.
func TestInsideTheCopy(t *testing.T) {
	if os.Getenv("COX_INSIDE_COPY") == "" {
		t.Skip("TestDebianPackage runs it")
	}
	m := inside{t}
	m.install("old.deb")
	if _, err := os.Stat("/run/stand-in.pid"); !errors.Is(err, os.ErrNotExist) {
		t.Error("the installation started a server")
	}
	if said := mustRun(t, "systemd-analyze", "verify", "/usr/lib/systemd/system/coxswain.service"); strings.Contains(said, "coxswain.service:") {
		t.Error(said)
	}
	const config = "/etc/coxswain/cox.yaml"
	if err := os.WriteFile(config, []byte("name: mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "systemctl", "start", "coxswain.service")
	mustRun(t, "install", "-d", "-o", "nobody", "/tmp/user")
	for _, name := range []string{"told1", "go1", "told2", "go2"} {
		m.asUser("mkfifo", name)
	}
	if err := os.WriteFile("/tmp/user/long.sh", []byte(upgradedJob), 0o644); err != nil {
		t.Fatal(err)
	}
	m.asUser("cox", "submit", "long.sh")
	m.hear("told1")

	before := serverProcess(t)
	said := m.install("new.deb")
	if after := serverProcess(t); after == before {
		t.Errorf("the old server runs on after the upgrade: %s", said)
	}
	if said := mustRun(t, "cox", "version"); !strings.Contains(said, "server v1.2.3-rc.1,") {
		t.Errorf("after the upgrade: %s", said)
	}
	if text := read(t, config); string(text) != "name: mine\n" {
		t.Errorf("the configuration is %q now", text)
	}
	m.expectStates("1=RUNNING")
	m.say("go1")
	m.hear("told2")
	if err := os.WriteFile("/tmp/user/short.sh", []byte("#!/bin/sh\nsrun -n1 echo of the new server\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m.asUser("cox", "submit", "--wait", "short.sh")

	m.install("old.deb")
	if said := mustRun(t, "cox", "version"); strings.Contains(said, "server v1.2.3-rc.1,") || !strings.Contains(said, "server ") {
		t.Errorf("after the roll-back: %s", said)
	}
	m.expectStates("1=RUNNING 2=COMPLETED")
	m.say("go2")
	m.asUser("cox", "wait", "1")
	if got := string(read(t, "/tmp/user/slurm-1.out")); got != "step before\nstep between\nstep after\n" {
		t.Errorf("the job wrote %q", got)
	}
	m.asUser("cox", "submit", "--wait", "short.sh")
	m.expectStates("1=COMPLETED 2=COMPLETED 3=COMPLETED")

	last := serverProcess(t)
	mustRun(t, "dpkg", "-r", "coxswain")
	if err := syscall.Kill(last, 0); err == nil {
		t.Error("the server runs on without its package")
	}
	expectFiles(t, map[string]bool{"/usr/bin/cox": false, "/usr/lib/systemd/system/coxswain.service": false, "/var/lib/coxswain/journal.db": true, config: true})
	m.install("new.deb")
	mustRun(t, "systemctl", "start", "coxswain.service")
	m.expectStates("1=COMPLETED 2=COMPLETED 3=COMPLETED")
	mustRun(t, "dpkg", "-P", "coxswain")
	expectFiles(t, map[string]bool{"/usr/bin/cox": false, "/var/lib/coxswain": false, "/etc/coxswain": false, "/usr/share/doc/coxswain": false})
}

// serverProcess is the number of the server's process.
func serverProcess(t *testing.T) int {
	t.Helper()
	var pid int
	for _, c := range strings.TrimSpace(string(read(t, "/run/stand-in.pid"))) {
		pid = 10*pid + int(c-'0')
	}
	return pid
}

// expectFiles says of files whether they should be there.
func expectFiles(t *testing.T, want map[string]bool) {
	t.Helper()
	for name, there := range want {
		if _, err := os.Stat(name); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}
