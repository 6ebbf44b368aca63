package lab

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

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
)

// SSH reaches the cluster over a login of its own: a real sshd on this machine, with a key
// and a known host that nobody else has. The login finds Slurm's commands in its PATH.
func (l *Lab) SSH(t testing.TB) *command.SSH {
	t.Helper()
	dir := filepath.Join(l.Dir, "ssh")
	if err := l.ensureSSHD(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	socket, err := os.MkdirTemp(dir, "c")
	if err != nil {
		t.Fatal(err)
	}
	return &command.SSH{
		Login: "root@127.0.0.1", Dir: socket, Env: l.Env,
		Options: []string{"-F", "none", "-p", fmt.Sprint(l.ports.portOf(sshPort)), "-i", dir + "/me", "-o", "UserKnownHostsFile=" + dir + "/known", "-o", "IdentitiesOnly=yes"},
	}
}

// SSHEach is SSH through a login of each user's: those of every Debian who have a number and
// no password. own is who looks at the cluster.
func (l *Lab) SSHEach(t testing.TB, own string) *command.SSH {
	t.Helper()
	s := l.SSH(t)
	s.Login, s.Own, s.Env = "%u@127.0.0.1", own, slices.Clone(l.Env)
	return s
}

// people are users of every Debian, with the same numbers. Their shells are none that a login
// could use.
var people = []string{"games", "www-data", "backup"}

// writePasswd is a list of users in which those have a shell, and root one that reads no files of
// this machine's: what stands there may be slow, and may wait for locks.
func writePasswd(dir string) error {
	b, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return err
	}
	lines := strings.Split(string(b), "\n")
	for i, line := range lines {
		if f := strings.Split(line, ":"); len(f) == 7 && (f[0] == "root" || slices.Contains(people, f[0])) {
			f[6] = "/bin/sh"
			lines[i] = strings.Join(f, ":")
		}
	}
	return os.WriteFile(filepath.Join(dir, "passwd"), []byte(strings.Join(lines, "\n")), 0o644)
}

// chrootMount is where the sshd, in its own mount namespace, has the other Debian. sshd refuses a
// ChrootDirectory below a folder that others can write to, such as a cache in /tmp.
const chrootMount = "/mnt"

// ensureSSHD starts the sshd unless it runs. Tests beside each other wait for the one that starts it.
func (l *Lab) ensureSSHD(ctx context.Context, dir string) error {
	l.sshMu.Lock()
	defer l.sshMu.Unlock()
	l.mu.Lock()
	runs := l.daemons["sshd"] != nil
	l.mu.Unlock()
	if runs {
		return nil
	}
	return l.startSSHD(ctx, dir)
}

// startSSHD starts the sshd.
func (l *Lab) startSSHD(ctx context.Context, dir string) error {
	for _, key := range []string{"host", "me"} {
		if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			return fmt.Errorf("ssh-keygen: %w: %s", err, out)
		}
	}
	host, err := os.ReadFile(dir + "/host.pub")
	if err != nil {
		return err
	}
	me, err := os.ReadFile(dir + "/me.pub")
	if err != nil {
		return err
	}
	path := "/usr/bin:/bin:/usr/sbin"
	if l.modern {
		path = dir + "/bin:" + path
		if err := writeWrappers(dir+"/bin", []string{"/usr/sbin/chroot", l.hold.root}); err != nil {
			return err
		}
	}
	port := l.ports.portOf(sshPort)
	conf := strings.Join([]string{
		fmt.Sprintf("Port %d", port), "ListenAddress 127.0.0.1", "HostKey " + dir + "/host", "AuthorizedKeysFile " + dir + "/authorized", "StrictModes no",
		"PidFile none", "PermitRootLogin prohibit-password", "PasswordAuthentication no", "UsePAM no", "MaxSessions 100", "MaxStartups 100", "SetEnv PATH=" + path + " " + strings.Join(l.Env, " "), "",
	}, "\n")
	if l.modern { // they may not leave this Debian by themselves
		conf += "Match User " + strings.Join(people, ",") + "\nChrootDirectory " + chrootMount + "\nSetEnv PATH=/usr/bin:/bin " + strings.Join(l.Env, " ") + "\n"
	}
	if err := writePasswd(dir); err != nil {
		return err
	}
	for name, text := range map[string]string{"conf": conf, "authorized": string(me), "known": fmt.Sprintf("[127.0.0.1]:%d %s", port, host)} {
		mode := os.FileMode(0o600)
		if name == "authorized" { // each reads it as himself
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd wants it
		return err
	}
	mounts := `mount --bind "$0/passwd" /etc/passwd`
	if l.modern {
		if err := os.MkdirAll(chrootMount, 0o755); err != nil {
			return err
		}
		mounts += ` && mount --rbind "$1" ` + chrootMount
	}
	return l.startDaemon(ctx, &daemon{name: "sshd", here: true, words: []string{"unshare", "--mount", "sh", "-c", mounts + ` && exec /usr/sbin/sshd -D -e -f "$0/conf"`, dir, l.hold.root}, up: isListening(port), alone: true})
}

// Bin is a folder with the cluster's commands, as they can be called outside of it; empty:
// they are this machine's.
func (l *Lab) Bin(t testing.TB) string {
	t.Helper()
	if !l.modern {
		return ""
	}
	dir := filepath.Join(l.Dir, "bin")
	if err := writeWrappers(dir, l.Inside); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeWrappers makes programs that stand for the other Debian's, behind some words.
func writeWrappers(dir string, words []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"sbatch", "squeue", "sacct", "sinfo", "scancel", "scontrol", "sacctmgr", "srun"} {
		text := fmt.Sprintf("#!/bin/sh\nexec %s /usr/bin/%s \"$@\"\n", strings.Join(words, " "), name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// Cut kills the ssh processes of all connections to the login: those that share a connection
// out, with all that goes over it, or else the single commands.
func (l *Lab) Cut(t testing.TB, shared bool) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	dir := []byte(filepath.Join(l.Dir, "ssh") + "/c")
	for _, name := range found {
		b, err := os.ReadFile(name)
		if err != nil || bytes.HasPrefix(b, []byte("sshd")) || !bytes.HasPrefix(b, []byte("ssh")) || !bytes.Contains(b, dir) || bytes.Contains(b, []byte("[mux]")) != shared {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}
