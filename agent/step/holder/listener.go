package holder

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/model/job"
)

// greetingLimit is how long a holder may take for its first word.
const greetingLimit = 10 * time.Second

// Listener is the client's end before its job runs. It is for one goroutine.
type Listener struct {
	dir string
	l   *net.UnixListener
	fd  *os.File
}

// Listen makes a socket in a folder of its own that only this user may enter.
func Listen() (*Listener, error) {
	dir, err := os.MkdirTemp("", "cox-srun.")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	l, err := socket.Listen(filepath.Join(dir, "client"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	fd, err := l.File()
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.RemoveAll(dir))
	}
	return &Listener{dir: dir, l: l, fd: fd}, nil
}

// Name is the socket's, for job.Program.Client.
func (l *Listener) Name() string { return filepath.Join(l.dir, "client") }

// FD is a descriptor that can be read when a holder knocks, to poll.
func (l *Listener) FD() int { return int(l.fd.Fd()) }

// Close removes the socket.
func (l *Listener) Close() {
	_ = l.l.Close()
	_ = l.fd.Close()
	_ = os.RemoveAll(l.dir)
}

// Held is an allocation that a holder keeps.
type Held struct {
	Alloc *step.Alloc
	conn  net.Conn
}

// Accept takes the holder that knocks. One of another user is an error.
func (l *Listener) Accept() (*Held, error) {
	c, err := l.l.Accept()
	if err != nil {
		return nil, err
	}
	a, err := readGreeting(c)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return &Held{Alloc: a, conn: c}, nil
}

// readGreeting reads the allocation that a holder names.
func readGreeting(c net.Conn) (*step.Alloc, error) {
	if err := checkPeer(c); err != nil {
		return nil, err
	}
	_ = c.SetReadDeadline(time.Now().Add(greetingLimit))
	var g greeting
	if err := json.NewDecoder(c).Decode(&g); err != nil {
		return nil, fmt.Errorf("the first node of the job said nothing: %w", err)
	}
	return step.Load(g.Alloc)
}

// End says how the job ends. Without it the job ends with exit code 1 when the client does.
func (h *Held) End(how job.ExitCode) error {
	defer h.conn.Close()
	return json.NewEncoder(h.conn).Encode(how)
}
