package local

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/hostsfile"
	"github.com/coxswain-sched/coxswain/agent/supervise"
)

// namespaceAttrs are the attributes of a supervisor's process: a session of its own,
// and namespaces for its host name and hosts file.
func namespaceAttrs(n Naming) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	switch n {
	case NamedByRoot:
		attr.Cloneflags = unix.CLONE_NEWUTS | unix.CLONE_NEWNS
	case NamedByUser:
		attr.Cloneflags = unix.CLONE_NEWUTS | unix.CLONE_NEWNS | unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // until the supervisor has named its node
	}
	return attr
}

// FindNaming tries the ways to name virtual nodes, best first, by starting the
// binary (empty: this process's own) in namespaces. The text says why nodes are
// not named, and is empty if they are.
func FindNaming(ctx context.Context, cox string) (Naming, string) {
	if cox == "" {
		cox = "/proc/self/exe"
	}
	way := NamedByUser
	if os.Getuid() == 0 {
		way = NamedByRoot
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, cox, "supervise", supervise.TryNames, string(way))
	cmd.Args[0] = "cox"
	cmd.Env = []string{supervisorVariable + "=1"}
	cmd.SysProcAttr = namespaceAttrs(way)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return way, ""
	}
	text := strings.TrimSpace(string(out))
	if text == "" || !errors.As(err, new(*exec.ExitError)) {
		text = err.Error()
	}
	return NamedByAddr, fmt.Sprintf("virtual nodes have no host names here (%s): their addresses serve instead", text)
}

// hostsSum is a sum of the machine's hosts file, without the blocks of Coxswain's servers: nodes do
// not see those, so that a server that starts or ends leaves the supervisors of others as they are.
type hostsSum struct {
	mu   sync.Mutex
	when time.Time // of the file that was read last
	last uint64
}

// sum reads the file if it has changed.
func (h *hostsSum) sum() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	st, err := os.Stat(hostsfile.Machine)
	if err != nil || st.ModTime().Equal(h.when) {
		return h.last
	}
	b, err := os.ReadFile(hostsfile.Machine)
	if err != nil {
		return h.last
	}
	f := fnv.New64a()
	_, _ = f.Write([]byte(hostsfile.Without(string(b), "")))
	h.when, h.last = st.ModTime(), f.Sum64()
	return h.last
}
