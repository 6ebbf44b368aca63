package holder

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Command is the hidden argument by which the binary is a holder; the socket follows.
const Command = "hold-allocation"

// exitNoClient is the exit code of a holder whose client went away without a word.
const exitNoClient = 1

// greeting is what a holder says first.
type greeting struct {
	Alloc string `json:"alloc"` // name of the allocation's file
}

// Main is the body of a holder; args is the client's socket. The result is the exit code of
// the job, unless a signal is to end it, which it then sends to itself.
func Main(args []string) int {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGPIPE, unix.SIGXCPU)
	end, err := hold(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cox:", err)
		return exitNoClient
	}
	if end.Signal > 0 {
		dieBySignal(syscall.Signal(end.Signal))
	}
	return end.Shell()
}

// hold tells the client of the allocation and waits for its word.
func hold(args []string) (job.ExitCode, error) {
	if len(args) != 1 {
		return job.ExitCode{}, errors.New(Command + " is not for users: it is started by cox")
	}
	c, err := socket.Dial(args[0], 0)
	if err != nil {
		return job.ExitCode{}, fmt.Errorf("the client of the job is gone: %w", err)
	}
	defer c.Close()
	if err := json.NewEncoder(c).Encode(greeting{os.Getenv(step.AllocVariable)}); err != nil {
		return job.ExitCode{}, fmt.Errorf("the client of the job is gone: %w", err)
	}
	var end job.ExitCode
	if err := json.NewDecoder(c).Decode(&end); err != nil {
		_ = os.Remove(args[0]) // which a client that was killed leaves behind
		_ = os.Remove(filepath.Dir(args[0]))
		return job.ExitCode{}, fmt.Errorf("the client of the job went away: %w", err)
	}
	return end, nil
}

// dieBySignal ends this process by a signal, without a core file. It becomes a shell for it:
// the Go runtime catches signals such as SIGSEGV. It returns where that is not possible.
func dieBySignal(sig syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	signal.Reset()
	_ = unix.Exec("/bin/sh", []string{"sh", "-c", fmt.Sprintf("kill -%d $$", sig)}, nil)
}
