package barrier

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/model/rlimit"
)

// Hold describes a process that is to wait at a barrier before it becomes its
// program.
type Hold struct {
	Args  []string // the program, looked up in the PATH of Env, and its arguments
	Env   []string
	Files [3]*os.File // standard input, output and error; still the caller's
	Extra []*os.File  // descriptors ExtraFD, ExtraFD+1 … of the program; still the caller's

	Dir      string    // absolute; empty: as it is
	Umask    int       // negative: as it is
	Limits   []Rlimit  // set as far as the kernel lets us
	Errno    bool      // if the program cannot be executed: exit with the errno as srun's tasks do, not 126 or 127 as a shell
	Identity *Identity // nil: as it is
	Terminal bool      // standard input is its terminal

	Step, Rank, Local int
}

// Identity is a user to become.
type Identity struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// Rlimit is a resource limit that a task takes over from srun, or a program from the submitter of its job.
type Rlimit struct {
	Resource int    `json:"resource"`
	Soft     uint64 `json:"soft"`
}

// Rlimits are limits as a task takes them over.
func Rlimits(limits []rlimit.Limit) []Rlimit {
	var out []Rlimit
	for _, l := range limits {
		out = append(out, Rlimit{Resource: l.Resource, Soft: l.Soft})
	}
	return out
}

// Held is a process at its barrier. Its methods are for one goroutine, but Exited
// and PID.
type Held struct {
	PID    int
	Exited <-chan Exit // delivers once

	barrier *os.File // write end
	report  *os.File // read end
	once    sync.Once
}

// orders is what the waiting process is told, beside its arguments and environment.
type orders struct {
	Dir      string    `json:"dir,omitempty"`
	Umask    int       `json:"umask"`
	Limits   []Rlimit  `json:"limits,omitempty"`
	Errno    bool      `json:"errno,omitempty"`
	Identity *Identity `json:"identity,omitempty"`
}

// Descriptors of a waiting process. The first two are closed when it becomes its
// program; Hold.Extra begins at ExtraFD.
const (
	reportFD  = 3
	barrierFD = 4
	ExtraFD   = 5
)

// Words on the report pipe.
const (
	wordHeld = 'H' // ready, waiting
	wordFail = 'F' // cannot; text follows
	wordGo   = 'G' // on the barrier pipe: go
)

// Start spawns the process. It does not wait for it to be ready. A Held that comes with an
// error is of a process that exists and whose end has to be awaited; without a process
// there is none.
func (h *Hold) Start(sp Spawner, taskInit []string) (*Held, error) {
	reportR, reportW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("task %d cannot be started: %w", h.Rank, LaunchError(err, &Cmd{}))
	}
	barrierR, barrierW, err := os.Pipe()
	if err != nil {
		reportR.Close()
		reportW.Close()
		return nil, fmt.Errorf("task %d cannot be started: %w", h.Rank, LaunchError(err, &Cmd{}))
	}
	defer reportW.Close()
	defer barrierR.Close()
	args := append(append(append([]string(nil), taskInit...), "--"), h.Args...)
	cmd := &Cmd{
		Path: taskInit[0], Args: args, Env: h.Env,
		Files: append(append(h.Files[:len(h.Files):len(h.Files)], reportW, barrierR), h.Extra...),
		Step:  h.Step, Rank: h.Rank, Local: h.Local, Terminal: h.Terminal,
	}
	held := &Held{barrier: barrierW, report: reportR}
	if held.PID, held.Exited, err = sp.Spawn(cmd); err != nil {
		held.Close()
		return nil, fmt.Errorf("task %d cannot be started: %w", h.Rank, ExplainLaunch(sp, LaunchError(err, cmd)))
	}
	if err := held.writeOrders(orders{Dir: h.Dir, Umask: h.Umask, Limits: h.Limits, Errno: h.Errno, Identity: h.Identity}); err != nil {
		held.Close()
		return held, fmt.Errorf("hold task %d: %w", h.Rank, err)
	}
	return held, nil
}

// writeOrders writes the orders, with their length before them.
func (h *Held) writeOrders(o orders) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = h.barrier.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// Ready waits until the process is at its barrier, or says why it never will be.
func (h *Held) Ready() error {
	var word [1]byte
	if _, err := io.ReadFull(h.report, word[:]); err != nil {
		return errors.New("it ended before it was ready")
	}
	if word[0] != wordHeld {
		return errors.New(h.readReport())
	}
	return nil
}

// Go opens the barrier.
func (h *Held) Go() error {
	_, err := h.barrier.Write([]byte{wordGo})
	if err := h.barrier.Close(); err != nil {
		return err
	}
	return err
}

// Executed waits until the program runs; the error says why it could not.
func (h *Held) Executed() error {
	defer h.report.Close()
	var word [1]byte
	if _, err := io.ReadFull(h.report, word[:]); err != nil {
		return nil // closed by exec
	}
	return errors.New(h.readReport())
}

// readReport reads the rest of the report.
func (h *Held) readReport() string {
	text, _ := io.ReadAll(io.LimitReader(h.report, 64<<10))
	return strings.TrimSpace(string(text))
}

// Close gives up: a process that is still at its barrier ends without running
// anything. It does not wait.
func (h *Held) Close() {
	h.once.Do(func() {
		_ = h.barrier.Close()
		_ = h.report.Close()
	})
}
