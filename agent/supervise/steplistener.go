package supervise

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
)

// stepListener is the socket on which srun knocks. It is there as long as the process;
// between attempts it is shut. Before the barrier of an attempt srun, which may
// have started on another node already, waits in front of it.
type stepListener struct {
	listener net.Listener

	mu      sync.Mutex
	open    func(net.Conn) // nil: shut, or not open yet
	waiting []net.Conn
	shut    bool
}

// retryAccept is how long a listener waits when no descriptor is left. Tasks that end give some
// back, and the kernel tells nobody: the listener stays readable all that time.
const retryAccept = 50 * time.Millisecond

// newStepListener makes the socket and begins to accept.
func newStepListener(name string) (*stepListener, error) {
	l, err := socket.Listen(name)
	if err != nil {
		return nil, err
	}
	d := &stepListener{listener: l, shut: true}
	go d.acceptLoop()
	return d, nil
}

func (d *stepListener) acceptLoop() {
	for {
		c, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			time.Sleep(retryAccept)
			continue
		}
		d.mu.Lock()
		switch {
		case d.shut:
			_ = c.Close()
		case d.open != nil:
			d.open(c)
		default:
			d.waiting = append(d.waiting, c)
		}
		d.mu.Unlock()
	}
}

// holdCallers lets who comes wait.
func (d *stepListener) holdCallers() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut, d.open = false, nil
}

// admitCallers lets in who waits and who comes. in must not wait.
func (d *stepListener) admitCallers(in func(net.Conn)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return
	}
	d.open = in
	for _, c := range d.waiting {
		in(c)
	}
	d.waiting = nil
}

// close shuts the listener: who waits and who comes is sent away.
func (d *stepListener) close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut, d.open = true, nil
	for _, c := range d.waiting {
		_ = c.Close()
	}
	d.waiting = nil
}

// giveSocketTo makes the socket the user's, so that his srun may connect.
func giveSocketTo(name string, who *barrier.Identity) error {
	if who == nil {
		return nil
	}
	return os.Chown(name, int(who.UID), int(who.GID))
}
