package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// containerStart is how long a container may take to start once its image is there.
const containerStart = 2 * time.Minute

// probeRuntime reports whether the runtime can leave containers in the control group of its caller.
// The runtime is asked once.
func (c *containers) probeRuntime(set *container.Settings) (bool, error) {
	if set.NoCgroups != nil {
		return *set.NoCgroups, nil
	}
	c.probing.Lock()
	defer c.probing.Unlock()
	if c.probed != nil {
		return *c.probed, nil
	}
	cmd := set.ProbeCommand()
	if len(cmd.Words) == 0 {
		return false, nil
	}
	out, err := c.captureCommand(cmd, containerStart)
	if err != nil {
		return false, set.ProbeError(err)
	}
	none := set.ReadProbe(out)
	c.probed = &none
	return none, nil
}

// startContainer runs the runtime and waits for the init of its container.
func (c *containers) startContainer(t *theContainer, cmd container.Command, name string) (*container.Box, error) {
	s := c.s
	_ = os.Remove(name) // of an attempt before
	l, err := socket.Listen(name)
	if err != nil {
		return nil, err
	}
	defer os.Remove(name)
	defer l.Close()
	if err := giveSocketTo(name, s.launch.User); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(s.Dir, t.name+".log"), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	defer os.Remove(log.Name())
	pid, exited, err := c.startCommand(cmd, log)
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	c.notePIDs(t, pid)
	t.over = over
	var end barrier.Exit
	go func() {
		end = <-exited
		c.mu.Lock()
		t.tidy = end.OK()
		c.mu.Unlock()
		close(over)
		_ = l.Close()
	}()
	type result struct {
		box *container.Box
		err error
	}
	got := make(chan result, 1)
	go func() {
		var r result
		conn, err := acceptFrom(l)
		if r.err = err; err == nil {
			if r.box, r.err = container.Accept(conn, c.userID(), c.holdsProcess); r.err != nil {
				_ = conn.Close()
			}
		}
		got <- r
	}()
	late := time.NewTimer(containerStart)
	defer late.Stop()
	select {
	case r := <-got:
		if r.err == nil {
			return r.box, nil
		}
		if !errors.Is(r.err, net.ErrClosed) {
			return nil, r.err
		}
	case <-late.C:
		s.killSession(pid)
		return nil, fmt.Errorf("%s has not started the container in %s: %s", cmd.Words[0], containerStart, lastWords(log))
	case <-c.ended.Done():
		return nil, errEnding
	}
	<-over
	said := cmp.Or(lastWords(log), exitWords(end))
	failed := fault.New(fault.Invalid, "%s could not start the container: %s", filepath.Base(cmd.Words[0]), said)
	if strings.Contains(said, "/etc/subuid") { // what podman and apptainer miss of users
		return nil, failed.Advise("ask an administrator for the ids of a user namespace: usermod --add-subuids 200000-265535 --add-subgids 200000-265535 %s, with numbers that no other user has", s.launch.Job.Spec.Owner.User)
	}
	return nil, failed
}

// notePIDs notes processes of the runtime.
func (c *containers) notePIDs(t *theContainer, pids ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.pids = append(t.pids, pids...)
}

// isRuntime reports whether a process is one of the runtime, or the init of a container: what is
// signalled to the job is not for them. The processes by which a runtime removes a container are in
// the session of the one that watched it.
func (c *containers) isRuntime(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) == 0 {
		return false
	}
	session := pid
	if p, err := proc.Read(pid); err == nil {
		session = p.Session
	}
	for _, t := range c.all {
		if slices.Contains(t.pids, pid) || slices.Contains(t.pids, session) {
			return true
		}
	}
	return false
}

// acceptFrom takes one connection.
func acceptFrom(l *net.UnixListener) (*net.UnixConn, error) {
	conn, err := l.AcceptUnix()
	return conn, err
}

// exitWords says how a command ended.
func exitWords(e barrier.Exit) string {
	if e.Signal != 0 {
		return fmt.Sprintf("it was ended by signal %d", e.Signal)
	}
	return fmt.Sprintf("it ended with exit code %d", e.Status)
}

// claimInit takes the init of a container into the control group of the attempt, and proves that
// it belongs to the attempt: what the job starts is born of it.
func (c *containers) claimInit(box *container.Box, kind container.Kind) error {
	s := c.s
	refuse := func(why string) error {
		return fault.New(fault.Unsupported, "%s starts containers outside of the job (%s), so that their end could not be proved", kind, why).
			Advise("use podman with crun, or apptainer (containers.runtime of the server's configuration)")
	}
	if s.group != nil {
		if err := s.group.Adopt(box.PID); err != nil {
			return refuse(err.Error())
		}
		pids, err := s.group.Procs()
		if err != nil || !slices.Contains(pids, box.PID) {
			return refuse("its process is not in the job's control group")
		}
		return nil
	}
	tree, err := proc.Descendants(unix.Getpid())
	if err != nil || !slices.ContainsFunc(tree, func(p proc.Stat) bool { return p.PID == box.PID }) {
		return refuse("its process does not descend from the job's supervisor")
	}
	return nil
}

// userID is the number of the job's user.
func (c *containers) userID() uint32 {
	if u := c.s.launch.User; u != nil {
		return u.UID
	}
	return uint32(os.Getuid())
}

// holdsProcess reports whether a process is one of the attempt: in its control group, or where it
// has none a descendant of this process and of the job's user.
func (c *containers) holdsProcess(pid int) bool {
	if g := c.s.group; g != nil {
		pids, err := g.Procs()
		return err == nil && slices.Contains(pids, pid)
	}
	tree, err := proc.Descendants(unix.Getpid())
	var st unix.Stat_t
	return err == nil && slices.ContainsFunc(tree, func(p proc.Stat) bool { return p.PID == pid }) &&
		unix.Stat(fmt.Sprintf("/proc/%d", pid), &st) == nil && st.Uid == c.userID()
}

// startCommand starts a command of the runtime as the job's user, in the job's control group.
func (c *containers) startCommand(cmd container.Command, out *os.File) (int, <-chan barrier.Exit, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return 0, nil, errEnding
	}
	s := c.s
	return s.spawner.spawnProcess(startRequest{
		group: s.spawner.unified, path: cmd.Words[0], args: cmd.Words, env: append(s.runtimeEnv(), cmd.Env...), dir: "/",
		user: s.launch.User, files: []*os.File{null, out, out},
	})
}

// errEnding refuses a container because the attempt is being ended.
var errEnding = errors.New("the job is ending")

// runCommand runs a command of the runtime to its end.
func (c *containers) runCommand(cmd container.Command, limit time.Duration) error {
	_, err := c.captureCommand(cmd, limit)
	return err
}

// mostPrinted bounds what is read of what a command of the runtime prints, in bytes.
const mostPrinted = 64 << 10

// captureCommand runs a command of the runtime to its end, and returns the last of what it printed.
func (c *containers) captureCommand(cmd container.Command, limit time.Duration) (string, error) {
	out, err := os.CreateTemp(c.s.Dir, "runtime-*.log")
	if err != nil {
		return "", err
	}
	defer out.Close()
	defer os.Remove(out.Name())
	pid, exited, err := c.startCommand(cmd, out)
	if err != nil {
		return "", err
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case e := <-exited:
		if !e.OK() {
			return "", errors.New(cmp.Or(lastWords(out), exitWords(e)))
		}
		return lastLines(out, mostPrinted), nil
	case <-late.C:
		c.s.killSession(pid)
		<-exited
		return "", fmt.Errorf("%s has not ended in %s", filepath.Base(cmd.Words[0]), limit)
	}
}

// killSession ends a process that leads a session, with what it started there. It may have ended.
func (s *supervisor) killSession(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }

// runtimeEnv is the environment of commands of the runtime: what it needs to find the user's
// images and credentials.
func (s *supervisor) runtimeEnv() []string {
	env := []string{"PATH=" + cmp.Or(os.Getenv("PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")}
	for _, v := range s.launch.Env {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case slices.Contains([]string{
			"HOME", "USER", "LOGNAME", "TMPDIR", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "DOCKER_HOST",
			"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
		}, name), hasAnyPrefix(name, "XDG_", "CONTAINERS_", "APPTAINER_", "SINGULARITY_", "ENROOT_"):
			env = append(env, v)
		}
	}
	return env
}

func hasAnyPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}
