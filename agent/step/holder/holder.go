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

// Command is the hidden argument by which the binary is a holder. BareWord may follow, and the
// client's socket, if the job has one; or EndWord with the end of the job.
const Command = "hold-allocation"

// BareWord has the holder end when it is asked to by SIGTERM: it holds an allocation for itself,
// and nothing of the job's has to end before.
const BareWord = "bare"

// exitNoClient is the exit code of a holder whose client went away without a word.
const exitNoClient = 1

// greeting is what a holder says first.
type greeting struct {
	Alloc string `json:"alloc"` // name of the allocation's file
}

// Main is the body of a holder, with the words behind Command. The result is the exit code of
// the job, unless a signal is to end it, which it then sends to itself. With EndWord it has the
// holder of this node end.
func Main(args []string) int {
	if len(args) > 0 && args[0] == EndWord {
		return endMain(args[1:])
	}
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGPIPE, unix.SIGXCPU)
	if len(args) > 0 && args[0] == BareWord {
		args = args[1:]
	} else {
		signal.Ignore(unix.SIGTERM)
	}
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

// hold waits for the word of the client.
func hold(args []string) (job.ExitCode, error) {
	switch len(args) {
	case 0:
		return awaitEnd()
	case 1:
		return holdForClient(args[0])
	}
	return job.ExitCode{}, errors.New(Command + " is not for users: it is started by cox")
}

// holdForClient tells the client of the allocation and waits for its word.
func holdForClient(client string) (job.ExitCode, error) {
	c, err := socket.Dial(client, 0)
	if err != nil {
		return job.ExitCode{}, fmt.Errorf("the client of the job is gone: %w", err)
	}
	defer c.Close()
	if err := json.NewEncoder(c).Encode(greeting{os.Getenv(step.AllocVariable)}); err != nil {
		return job.ExitCode{}, fmt.Errorf("the client of the job is gone: %w", err)
	}
	var end job.ExitCode
	if err := json.NewDecoder(c).Decode(&end); err != nil {
		_ = os.Remove(client) // which a client that was killed leaves behind
		_ = os.Remove(filepath.Dir(client))
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
