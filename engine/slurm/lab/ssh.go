package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/engine/slurm/command"
)

// SSH reaches the cluster over a login of its own: a real sshd on this machine, with a key
// and a known host that nobody else has. The login finds Slurm's commands in its PATH.
func (l *Lab) SSH(t testing.TB) *command.SSH {
	t.Helper()
	dir := filepath.Join(l.Dir, "ssh")
	l.mu.Lock()
	runs := l.daemons["sshd"] != nil
	l.mu.Unlock()
	if !runs {
		if err := l.login(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := os.MkdirTemp(dir, "c")
	if err != nil {
		t.Fatal(err)
	}
	return &command.SSH{
		Login: "root@127.0.0.1", Dir: socket, Env: l.Env,
		Options: []string{"-F", "none", "-p", fmt.Sprint(l.ports.of(sshPort)), "-i", dir + "/me", "-o", "UserKnownHostsFile=" + dir + "/known", "-o", "IdentitiesOnly=yes"},
	}
}

// login starts the sshd.
func (l *Lab) login(ctx context.Context, dir string) error {
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
		if err := stand(dir+"/bin", []string{"/usr/sbin/chroot", l.hold.root}); err != nil {
			return err
		}
	}
	port := l.ports.of(sshPort)
	conf := strings.Join([]string{
		fmt.Sprintf("Port %d", port), "ListenAddress 127.0.0.1", "HostKey " + dir + "/host", "AuthorizedKeysFile " + dir + "/authorized", "StrictModes no",
		"PidFile none", "PermitRootLogin prohibit-password", "PasswordAuthentication no", "UsePAM no", "MaxSessions 100", "MaxStartups 100", "SetEnv PATH=" + path, "",
	}, "\n")
	for name, text := range map[string]string{"conf": conf, "authorized": string(me), "known": fmt.Sprintf("[127.0.0.1]:%d %s", port, host)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd wants it
		return err
	}
	return l.start(ctx, &daemon{name: "sshd", here: true, words: []string{"/usr/sbin/sshd", "-D", "-e", "-f", dir + "/conf"}, up: listens(port), alone: true})
}

// Bin is a folder with the cluster's commands, as they can be called outside of it; empty:
// they are this machine's.
func (l *Lab) Bin(t testing.TB) string {
	t.Helper()
	if !l.modern {
		return ""
	}
	dir := filepath.Join(l.Dir, "bin")
	if err := stand(dir, l.Inside); err != nil {
		t.Fatal(err)
	}
	return dir
}

// stand makes programs that stand for the other Debian's, behind some words.
func stand(dir string, words []string) error {
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
