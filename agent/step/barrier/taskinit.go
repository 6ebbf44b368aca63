package barrier

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes of a task whose program could not be executed, as shells have them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// Main is the body of a held task: it reads what to do from an inherited
// pipe, says that it is there, waits for the barrier and becomes the program. It
// returns only if that failed, with the exit code; a barrier that is closed
// without the word to go is a 0 without running anything. args is the program and
// its arguments, after "--".
func Main(args []string) int {
	if len(args) > 0 && args[0] == limitsWord {
		return execLimited(args[1:])
	}
	report, barrier := os.NewFile(reportFD, "report"), os.NewFile(barrierFD, "barrier")
	syscall.CloseOnExec(reportFD)
	syscall.CloseOnExec(barrierFD)
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	fail := func(code int, err error) int {
		fmt.Fprintf(report, "%c%v\n", wordFail, err)
		return code
	}
	o, err := readOrders(barrier)
	if err != nil || len(args) == 0 {
		return fail(exitNotFound, errors.Join(err, errors.New("task-init is not for users: it is started by cox")))
	}
	if err := o.applyOrders(); err != nil {
		return fail(exitNotExecutable, err)
	}
	if _, err := report.Write([]byte{wordHeld}); err != nil {
		return exitNotFound
	}
	var word [1]byte
	if _, err := io.ReadFull(barrier, word[:]); err != nil || word[0] != wordGo {
		return 0
	}
	path, err := lookPath(args[0])
	if err == nil {
		env := append(os.Environ(), fmt.Sprintf("SLURM_TASK_PID=%d", os.Getpid()))
		setLimits(o.Limits)
		err = syscall.Exec(path, args, env)
	}
	return fail(o.exitCode(err), fmt.Errorf("execve(): %s: %s", args[0], errnoText(err)))
}

// readOrders reads the orders from the barrier pipe.
func readOrders(r io.Reader) (orders, error) {
	var o orders
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return o, fmt.Errorf("read orders: %w", err)
	}
	text := make([]byte, min(binary.BigEndian.Uint32(size[:]), 1<<20))
	if _, err := io.ReadFull(r, text); err != nil {
		return o, fmt.Errorf("read orders: %w", err)
	}
	return o, json.Unmarshal(text, &o)
}

// setLimits sets limits, as far as they may be set. It comes last: limits of memory
// and processes also concern this program.
func setLimits(limits []Rlimit) {
	for _, l := range limits {
		have := syscall.Rlimit{}
		if err := syscall.Getrlimit(l.Resource, &have); err != nil {
			continue
		}
		want := syscall.Rlimit{Cur: min(l.Soft, have.Max), Max: have.Max}
		_ = syscall.Setrlimit(l.Resource, &want)
	}
}

// applyOrders sets the rest of what was ordered. A directory that cannot be entered is
// said on standard error and /tmp is used, as Slurm does.
func (o orders) applyOrders() error {
	if o.Umask >= 0 {
		syscall.Umask(o.Umask)
	}
	if o.Identity != nil {
		if err := o.Identity.becomeUser(); err != nil {
			return err
		}
	}
	if o.Dir == "" {
		return nil
	}
	if err := os.Chdir(o.Dir); err != nil {
		fmt.Fprintf(os.Stderr, "srun: error: couldn't chdir to `%s': %s: going to /tmp instead\n", o.Dir, errnoText(err))
		return os.Chdir("/tmp")
	}
	return nil
}

// becomeUser changes the user for good.
func (id *Identity) becomeUser() error {
	groups := make([]int, len(id.Groups))
	for i, g := range id.Groups {
		groups[i] = int(g)
	}
	if err := syscall.Setgroups(groups); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if err := syscall.Setgid(int(id.GID)); err != nil {
		return fmt.Errorf("become group %d: %w", id.GID, err)
	}
	if err := syscall.Setuid(int(id.UID)); err != nil {
		return fmt.Errorf("become user %d: %w", id.UID, err)
	}
	return nil
}

// exitCode is the exit code of a failed exec.
func (o orders) exitCode(err error) int {
	var errno syscall.Errno
	found := errors.As(err, &errno)
	switch {
	case o.Errno && found:
		return int(errno)
	case found && errno != syscall.ENOENT && errno != syscall.ENOTDIR:
		return exitNotExecutable
	}
	return exitNotFound
}

// lookPath finds a program as execvp does.
func lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var last error = syscall.ENOENT
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if dir == "" {
			path = "./" + name
		}
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			continue
		}
		if info.Mode()&0o111 != 0 && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
		last = syscall.EACCES
	}
	return "", &exec.Error{Name: name, Err: last}
}

// errnoText is the system's text of an error, capitalised as the C library has it.
func errnoText(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return fmt.Sprint(err)
	}
	text := errno.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
