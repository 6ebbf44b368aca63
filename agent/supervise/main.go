package supervise

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
)

// ControlFD is the descriptor on which the engine that starts a supervisor hands
// it the first connection.
const ControlFD = 3

// Main is `cox supervise DIR SOCKETS NODE`: the supervisor on the slot in a
// directory. The node is for who lists processes. It returns when nobody has work
// for it any more, and nothing of what it had lives. The result is an exit code.
func Main(args []string) int {
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "cox supervise: it is started by cox itself, with the directories of a seat")
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
	h, err := openSlot(args[0], args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "cox supervise: %v\n", err)
		return 70
	}
	h.serveAttempts()
	return 0
}

// openSlot makes the caller the supervisor on a slot.
func openSlot(dir, sockets string) (*supervisorSlot, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the reaper of descendants: %w", err)
	}
	s := attempt.Slot{Dir: dir, Sockets: sockets}
	j, err := attempt.OpenJournal(s.Journal())
	if err != nil {
		return nil, err
	}
	h := &supervisorSlot{
		Slot: s, journal: j, events: make(chan event), signals: make(chan os.Signal, 4),
		log: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("pid", os.Getpid()),
	}
	h.spawner = newSpawner()
	signal.Notify(h.signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	if err := h.listenControl(); err != nil {
		return nil, err
	}
	return h, nil
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

// TryNames as first argument makes Main try what naming a node takes, with the
// naming as second argument, in the namespaces that it was started in.
const TryNames = "--try-names"

func tryNames(n attempt.Naming) error {
	return enterName(n, "cox-probe", "/etc/hosts")
}
