package node

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// openPMI gives a task a connection of the process management interface. The file
// returned is the task's end.
func (t *task) openPMI(h *barrier.Hold) (*os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("PMI connection: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, fmt.Errorf("PMI connection: %w", err)
	}
	t.pmi = os.NewFile(uintptr(fds[0]), "pmi")
	theirs := os.NewFile(uintptr(fds[1]), "pmi of the task")
	h.Extra = append(h.Extra, theirs)
	h.Env = append(h.Env,
		fmt.Sprintf("PMI_FD=%d", barrier.ExtraFD), fmt.Sprintf("PMI_RANK=%d", t.state.Rank), fmt.Sprintf("PMI_SIZE=%d", t.step.prep.Info.Tasks))
	return theirs, nil
}

// carryPMI passes a task's commands on to srun until the connection is closed.
func (t *task) carryPMI() {
	in := bufio.NewReaderSize(t.pmi, 2*wire.PMIValueMax)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return // closed, or a line longer than any command
		}
		_ = t.step.link.Send(wire.Frame{Kind: wire.MsgPMI, Rank: t.state.Rank, Body: line})
		if bytes.HasPrefix(line, []byte("cmd=init ")) && bytes.Contains(line, []byte("pmi_version=2")) {
			t.carryPMI2(in)
			return
		}
	}
}

// pmi2Max bounds a command of PMI-2, which is long where it starts programs.
const pmi2Max = 32 << 10

// carryPMI2 does so once the task has said that it speaks PMI-2: a length of six characters
// is before every command.
func (t *task) carryPMI2(in *bufio.Reader) {
	for {
		var size [6]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(size[:])))
		if err != nil || n < 0 || n > pmi2Max {
			return
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		_ = t.step.link.Send(wire.Frame{Kind: wire.MsgPMI, Rank: t.state.Rank, Number: wire.PMI2, Body: body})
	}
}

// answerPMI passes an answer on to the task that it is for.
func (s *nodeStep) answerPMI(f wire.Frame) {
	for _, t := range s.tasks {
		if t.state.Rank == f.Rank && t.pmi != nil {
			_, _ = t.pmi.Write(f.Body) // a task asks again only after its answer, so there is room
		}
	}
}
