package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/engine/local/proc"
)

// ControlFD is the descriptor on which the engine that starts a supervisor hands
// it the first connection.
const ControlFD = 3

// ExitBusy is Main's result for ErrRunning.
const ExitBusy = 11

// ErrRunning says that the node has a supervisor already.
var ErrRunning = errors.New("this node's part of the attempt has a supervisor already")

// Main is `cox supervise DIR NODE`. It returns when nothing of the attempt lives
// on the node, or when it was never begun. The result is an exit code.
func Main(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "cox supervise: it is started by cox itself, with the directory of an attempt and a node")
		return 2
	}
	closeInherited()
	if args[0] == TryNames {
		if err := tryNames(attempt.Naming(args[1])); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	s, err := open(attempt.Dir(args[0]), args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "cox supervise: %v\n", err)
		if errors.Is(err, ErrRunning) {
			return ExitBusy
		}
		return 70
	}
	s.loop()
	return 0
}

// open makes the caller the supervisor of a node: alone, by a lock, and named in
// supervisor.json before it looks whether it is still wanted.
func open(dir attempt.Dir, node string) (*supervisor, error) {
	l, err := dir.ReadLaunch()
	if err != nil {
		return nil, err
	}
	i := l.NodeIndex(node)
	if i < 0 {
		return nil, fmt.Errorf("attempt %s has no node %s", l.Ref, node)
	}
	at := dir.Node(node)
	if err := lock(filepath.Join(at, "lock")); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the reaper of descendants: %w", err)
	}
	j, err := attempt.OpenJournal(filepath.Join(at, "journal"))
	if err != nil {
		return nil, err
	}
	s := newSupervisor(dir, l, i)
	s.journal = j
	s.log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", node, "pid", os.Getpid())
	signal.Notify(s.signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	return s, nil
}

// closeInherited closes descriptors that came from whoever started the engine: a
// pipe of his would stay open as long as the job runs. The runtime's own close
// themselves at exec, inherited ones do not.
func closeInherited() {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, n := range names {
		fd, err := strconv.Atoi(n)
		if err != nil || fd <= ControlFD {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
	unix.CloseOnExec(ControlFD)
}

// lock takes the file's lock for the life of the process.
func lock(name string) error {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(ErrRunning, err)
	}
	return nil
}

// identify writes supervisor.json.
func (s *supervisor) identify() error {
	me, err := proc.Read(os.Getpid())
	if err != nil {
		return err
	}
	id := attempt.Identity{PID: me.PID, Start: me.Start, BootID: s.launch.BootID}
	return attempt.WriteJSON(filepath.Join(s.dir.Node(s.node.Name), "supervisor.json"), id)
}

// Mark is the environment variable that every process of an attempt on a node is
// started with.
func Mark(dir attempt.Dir, node string) string { return "COX_NODE=" + dir.Node(node) }

// TryNames as first argument makes Main try what naming a node takes, with the
// naming as second argument, in the namespaces that it was started in.
const TryNames = "--try-names"

func tryNames(n attempt.Naming) error {
	return enterName(n, "cox-probe", "/etc/hosts")
}
