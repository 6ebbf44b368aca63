package supervise

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/coxswain-sched/coxswain/agent/freeport"
	"github.com/coxswain-sched/coxswain/agent/proc"
)

// ownsPort says why requests to a port of the attempt would go to somebody else's program; nil: they
// go to one of the attempt, or nobody listens. Whoever listens first on a port of a machine has it, and
// every user may. A socket of the attempt is one that a process of its user made, or that a process
// below this supervisor holds. Goroutines of probes call it.
func (s *supervisor) ownsPort(host string, number int) error {
	at, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	var sockets []freeport.Socket
	if err := s.spawner.InNetwork(func() error {
		sockets = freeport.Listeners(at, number)
		return nil
	}); err != nil {
		return err
	}
	user := os.Geteuid()
	if u := s.launch.User; u != nil {
		user = int(u.UID)
	}
	for _, socket := range sockets {
		if socket.UID != user && !isBelow(socket.Holders()) {
			return fmt.Errorf("port %d: %s listens there, which is not of this job", number, socket.Describe())
		}
	}
	return nil
}

// isBelow says whether one of some processes is below this one.
func isBelow(pids []int) bool {
	own, err := proc.Descendants(os.Getpid())
	if err != nil {
		return false
	}
	for _, below := range own {
		for _, pid := range pids {
			if below.PID == pid {
				return true
			}
		}
	}
	return false
}
