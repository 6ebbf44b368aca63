package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/cgroup"
	"github.com/coxswain-sched/coxswain/agent/hostsfile"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// prepareAttempt does everything that can fail before the barrier.
func (s *supervisor) prepareAttempt() error {
	l := s.launch
	if len(s.control.conns) == 0 {
		s.due.orphan = time.Now().Add(l.Orphan)
	}
	s.joinDevices()
	if err := s.resetCgroup(l.Groups, s.cgroupLimits()); err != nil {
		return err
	}
	if err := s.nameNode(); err != nil {
		return fmt.Errorf("give node %s its name: %w", s.node.Name, err)
	}
	if err := s.giveFilesTo(l.User); err != nil {
		return fmt.Errorf("give the job's files to its user: %w", err)
	}
	var err error
	if s.user, err = s.spawner.beginAttempt(l.Mark(s.node.Name), l.User, l.Umask, l.CPUs(s.node.Name)); err != nil {
		s.log.Warn("the attempt runs on other CPUs than those near its devices", "err", err)
	}
	if err := s.choosePorts(); err != nil {
		return err
	}
	s.stepListener.holdCallers()
	s.steps = &steps{news: make(chan struct{}, 1)}
	if s.isHead() {
		if s.program, err = s.newProgram(); err != nil {
			return err
		}
	}
	return s.startProlog()
}

// joinDevices keeps the attempt's devices locked, also while no engine runs. The engine holds them
// already, so a failure is not worth the job.
func (s *supervisor) joinDevices() {
	if s.launch.Devices == nil {
		return
	}
	var err error
	if s.devices, err = s.launch.Devices.JoinAll(fleet.ClaimedDevices(s.node, s.launch.Claims)); err != nil {
		s.log.Warn("the attempt's devices are not locked", "err", err)
	}
}

func (s *supervisor) cgroupLimits() cgroup.Limits {
	l := cgroup.Limits{PIDs: s.launch.Processes}
	for _, c := range s.launch.Claims {
		if c.Node == s.node.Name {
			l.Memory += int64(c.Take.Memory)
			l.CPU += int64(c.Take.CPU)
		}
	}
	return l
}

// nameNode gives the node its host name and a hosts file that knows its peers.
// The process was started in namespaces of its own.
func (s *supervisor) nameNode() error {
	l := s.launch
	if l.Naming == attempt.NamedByAddr || !s.node.Virtual || s.called == s.node.Name {
		return nil
	}
	if s.called != "" {
		return fmt.Errorf("its supervisor is that of %s", s.called)
	}
	hosts, err := os.ReadFile(hostsfile.Machine)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	own := filepath.Join(s.Dir, "hosts")
	if err := os.WriteFile(own, []byte(hostsfile.Merge(string(hosts), l.Hosts)), 0o644); err != nil {
		return err
	}
	if err := os.Chmod(own, 0o644); err != nil { // whatever the umask is
		return err
	}
	err = enterName(l.Naming, s.node.Name, own)
	if err == nil && l.Network != "" {
		err = s.enterNetwork(l.Network + s.node.Name)
	}
	if err != nil {
		s.unfit = true // half a node: another attempt must not run in it
		return err
	}
	s.called = s.node.Name
	return nil
}

// enterName sets the host name and mounts a hosts file over the machine's.
func enterName(n attempt.Naming, name, hosts string) error {
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	// What the machine mounts later is seen here, what is mounted here is not seen there.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts to the node: %w", err)
	}
	if err := unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount a hosts file: %w", err)
	}
	if n == attempt.NamedByUser {
		// What the program runs must not inherit the right to mount.
		return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	}
	return nil
}

// binDir holds srun and its like.
func binDir(root string) string { return filepath.Join(root, "bin") }
