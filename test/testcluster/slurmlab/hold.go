package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// holder is the first process of a lab's own namespaces of processes and mounts. All others
// end with it, and it ends with the test.
type holder struct {
	cmd  *exec.Cmd
	root string // of the other Debian; empty: this one
}

// first is what the holder does: mounts, and waiting for others' children that have ended.
// $1 is a file that it makes then, $2 the root directory of another Debian, $3 the folder
// for temporary files, $4 the names of hosts.
const first = `set -e
mount --make-rprivate /
mount --bind "$4" /etc/hosts
if [ -n "$2" ]; then
	mkdir -p "$2$3" "$2/run/slurmctld"
	mount -t proc proc "$2/proc"
	mount --rbind /dev "$2/dev"
	mount --rbind /sys "$2/sys"
	mount -t tmpfs none "$2/run"
	mkdir -p "$2/run/slurmctld" "$2/run/slurm"
	chmod 1777 "$2/run/slurmctld" "$2/run/slurm"
	mount --bind "$3" "$2$3"
	mount --bind /etc/hosts "$2/etc/hosts"
fi
touch "$1"
while :; do sleep 1000 & wait $! || :; done`

// startHolder begins the namespaces.
func startHolder(dir, root string) (*holder, error) {
	ready := filepath.Join(dir, "run", "held")
	c := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "bash", "-c", first, "holder", ready, root, os.TempDir(), filepath.Join(dir, "hosts"))
	out, err := os.Create(filepath.Join(dir, "log", "holder.out"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := testcluster.Start(c); err != nil {
		return nil, err
	}
	h := &holder{cmd: c, root: root}
	over := make(chan error, 1)
	go func() { over <- c.Wait() }()
	for deadline := time.Now().Add(testcluster.Patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(ready); err == nil {
			return h, nil
		}
		select {
		case err := <-over:
			return nil, fmt.Errorf("the namespaces of a lab: %w", err)
		default:
		}
		if time.Now().After(deadline) {
			h.endAll()
			return nil, fmt.Errorf("the namespaces of a lab: not within %s", testcluster.Patience)
		}
	}
}

// endAll ends everything in the namespaces.
func (h *holder) endAll() {
	_ = h.cmd.Process.Kill()
	for deadline := time.Now().Add(testcluster.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(h.cmd.Process.Pid, 0) != nil { // it was waited for
			return
		}
	}
}

// insideCommand are words to stand behind for a command that needs the other Debian.
func (h *holder) insideCommand() []string {
	if h.root == "" {
		return nil
	}
	at := fmt.Sprintf("/proc/%d/ns/", h.cmd.Process.Pid) // with the processes: /dev/stdin is a name in /proc
	return []string{toolPath("nsenter"), "--mount=" + at + "mnt", "--pid=" + at + "pid_for_children", "--", toolPath("chroot"), h.root}
}

// userCommand are words to stand behind for a daemon: in the namespaces, as a user.
func (h *holder) userCommand(uid, gid int) []string {
	words := []string{"nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", h.cmd.Process.Pid), fmt.Sprintf("--pid=/proc/%d/ns/pid_for_children", h.cmd.Process.Pid), "--"}
	switch {
	case h.root != "" && uid != 0:
		return append(words, "chroot", fmt.Sprintf("--userspec=%d:%d", uid, gid), "--groups=", h.root)
	case h.root != "":
		return append(words, "chroot", h.root)
	case uid != 0:
		return append(words, "setpriv", fmt.Sprintf("--reuid=%d", uid), fmt.Sprintf("--regid=%d", gid), "--clear-groups")
	}
	return words
}

// toolPath is a program's own name, whatever PATH a caller has.
func toolPath(name string) string {
	if full, err := exec.LookPath(name); err == nil {
		return full
	}
	return name
}

// childOf is the process that a process has begun.
func childOf(parent int) (int, error) {
	for deadline := time.Now().Add(testcluster.Patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		found, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return 0, err
		}
		for _, name := range found {
			b, err := os.ReadFile(name)
			if err != nil {
				continue // it has ended
			}
			_, rest, _ := strings.Cut(string(b), ") ")
			if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(parent) {
				return strconv.Atoi(filepath.Base(filepath.Dir(name)))
			}
		}
		if syscall.Kill(parent, 0) != nil {
			break
		}
	}
	return 0, fmt.Errorf("process %d began none", parent)
}

// ports are free ones in a row, below those that the system gives to outgoing connections.
type ports int

// The ports of a lab, counted from the first; slurmd have theirs from slurmdPort on.
const (
	ctldPort = iota
	dbdPort
	sqlPort
	restPort
	sshPort
	slurmdPort
	lastPort = slurmdPort + 16
	jobPort  = lastPort + 1 // and those behind it, for what jobs listen on
	allPorts = 32
)

// freePorts finds some, and holds them for its caller against other labs, until the file that
// it returns is closed: each lab locks a byte of one file.
func freePorts() (ports, *os.File, error) {
	held, err := os.OpenFile(filepath.Join(os.TempDir(), "cox-lab-ports"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 0, nil, err
	}
next:
	for range 200 {
		first := 10000 + rand.IntN(400)*allPorts //nolint:gosec // a place to begin, not a secret
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(first), Len: 1}
		if unix.FcntlFlock(held.Fd(), unix.F_OFD_SETLK, &lock) != nil {
			continue // another lab's
		}
		for p := first; p < first+allPorts; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				continue next // and nobody's, until this one ends
			}
			_ = l.Close()
		}
		return ports(first), held, nil
	}
	_ = held.Close()
	return 0, nil, fmt.Errorf("no %d free ports in a row", allPorts)
}

func (p ports) portOf(what int) int { return int(p) + what }

// removeGroups removes the control groups of a node, which outlive its processes.
func removeGroups(node string) { _ = testcluster.RemoveGroups("/sys/fs/cgroup/*/slurm_" + node) }
