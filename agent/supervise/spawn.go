package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/cgroup"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
)

// spawner starts every process of the supervisor and waits for every child: its
// own and those that descendants left behind. It implements step.Spawner. It
// lives as long as the process.
//
// Processes are started by one thread that sits in the v1 control groups, so that
// they are born there; v2 has a flag for that. The kernel kills them when that
// thread, and so the supervisor, dies. The thread has a file creation mask of its
// own, and opens the job's files as the job's user.
type spawner struct {
	mark    string            // variable that every process is started with
	user    *barrier.Identity // of every process; nil: as this one
	group   *cgroup.Group     // nil: none
	limit   int64             // of the group's processes and threads; 0: none
	unified *os.File          // the group's directory in v2; nil: none
	work    chan func()       // for the thread
	reaped  chan struct{}     // children ended; holds one at most
	umask   int               // of this process
	any     unix.CPUSet       // on which this process may run; empty: not known
	cpus    unix.CPUSet       // on which the attempt's processes run

	mu       sync.Mutex // held from before a fork until its pid is in children
	children map[int]child
	steps    map[int]*os.File // the groups of steps, below unified
	base     int              // kills at the memory limit before the present attempt
	blamed   int              // kills at the memory limit that a child's end accounts for
	refused  int              // forks that the limit of processes refused before the present attempt
	used     spawnerUsage
}

type child struct {
	exited chan barrier.Exit
	oom    int // kills at the memory limit before it began
	step   int
	site   bool
}

// newSpawner starts the thread and the waiting goroutine.
func newSpawner() *spawner {
	s := &spawner{work: make(chan func()), reaped: make(chan struct{}, 1), children: map[int]child{}, steps: map[int]*os.File{}}
	s.umask = unix.Umask(0)
	unix.Umask(s.umask)
	go s.spawnThread()
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, unix.SIGCHLD)
	go func() {
		for range sig {
			s.reapChildren()
		}
	}()
	return s
}

func (s *spawner) spawnThread() {
	runtime.LockOSThread()
	// Where a container's system call filter forbids it, the whole process has the job's
	// mask: what it makes for itself is made with a mode that grants others nothing.
	_ = unix.Unshare(unix.CLONE_FS)
	if err := unix.SchedGetaffinity(0, &s.any); err != nil {
		s.any.Zero() // a machine of more CPUs than a set holds: nothing is bound on it
	}
	s.cpus = s.any
	for f := range s.work {
		f()
	}
}

// onThread runs f on the spawning thread.
func (s *spawner) onThread(f func() error) error {
	done := make(chan error, 1)
	s.work <- func() { done <- f() }
	return <-done
}

// enterCgroup makes children be born in a control group.
func (s *spawner) enterCgroup(g *cgroup.Group, l cgroup.Limits) error {
	var err error
	s.limit = l.PIDs
	if s.unified, err = g.OpenUnified(); err != nil {
		return err
	}
	s.group = g
	if err := s.onThread(func() error { return g.Thread(unix.Gettid()) }); err != nil {
		return fmt.Errorf("enter the control group: %w", err)
	}
	return nil
}

// leaveCgroup takes the thread out of the control group, so that it can be removed.
func (s *spawner) leaveCgroup() error {
	g := s.group
	if g == nil {
		return nil
	}
	if s.unified != nil {
		_ = s.unified.Close()
	}
	s.group, s.unified = nil, nil
	return s.onThread(func() error { return g.Leave(unix.Gettid()) })
}

// beginAttempt prepares for another attempt, on some CPUs; none, or none of those on which this
// process may run: on all of these. The error is that it runs on others, which keeps no job
// from running.
func (s *spawner) beginAttempt(mark string, who *barrier.Identity, umask int, cpus []int) (*jobUser, error) {
	s.mark, s.user = mark, who
	if umask < 0 {
		umask = s.umask
	}
	s.mu.Lock()
	s.base = s.oomKills()
	s.blamed = s.base
	s.refused = s.forksRefused()
	s.used = beginSpawnerUsage(s.group)
	s.mu.Unlock()
	return &jobUser{who, s}, s.onThread(func() error {
		unix.Umask(umask)
		err := s.bindCPUs(cpus)
		if err != nil {
			err = errors.Join(err, s.bindCPUs(nil)) // not where the attempt before it ran
		}
		return err
	})
}

// bindCPUs has the thread, and what is born of it, run on some CPUs.
func (s *spawner) bindCPUs(cpus []int) error {
	next := unix.CPUSet{}
	for _, c := range cpus {
		if s.any.IsSet(c) {
			next.Set(c)
		}
	}
	if next.Count() == 0 {
		next = s.any
	}
	if next == s.cpus {
		return nil
	}
	if err := unix.SchedSetaffinity(0, &next); err != nil {
		return fmt.Errorf("run on CPUs %v: %w", cpus, err)
	}
	s.cpus = next
	return nil
}

// oomSince is how many processes of the attempt the kernel killed at the limit.
func (s *spawner) oomSince() int { return s.oomKills() - s.base }

// Spawn starts a process of a step in a session of its own.
func (s *spawner) Spawn(c *barrier.Cmd) (pid int, exited <-chan barrier.Exit, err error) {
	group, err := s.stepGroup(c.Step)
	if err != nil {
		return 0, nil, err
	}
	return s.spawnProcess(startRequest{group: group, path: c.Path, args: c.Args, env: c.Env, dir: c.Dir, files: c.Files, user: s.user, terminal: c.Terminal, step: c.Step})
}

// startRequest is a process to be started, in a session of its own.
type startRequest struct {
	group    *os.File // its control group in v2; nil: that of this process
	path     string
	args     []string
	env      []string
	dir      string            // empty: that of this process
	user     *barrier.Identity // nil: that of this process
	files    []*os.File
	terminal bool // its standard input is its terminal
	site     bool // a program of the site: not bound by what the job's user asked for
	step     int  // that it belongs to
}

// stepGroup is the directory of a step's control group in v2, nil without v2.
func (s *spawner) stepGroup(step int) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.steps[step]; f != nil || s.unified == nil {
		return f, nil
	}
	f, err := s.group.OpenStep(step)
	if err != nil {
		return nil, err
	}
	s.steps[step] = f
	return f, nil
}

// EndStep ends every process that is left of a step, by its control group. It
// implements step.StepEnder.
func (s *spawner) EndStep(step int) error {
	s.mu.Lock()
	f := s.steps[step]
	delete(s.steps, step)
	s.mu.Unlock()
	if f == nil {
		return errors.New("the step has no control group")
	}
	defer f.Close()
	s.noteStepCPU(step)
	return s.group.EndStep(step)
}

// spawnProcess starts a process.
func (s *spawner) spawnProcess(p startRequest) (int, <-chan barrier.Exit, error) {
	attr := &syscall.ProcAttr{
		Dir: p.dir, Env: append(withoutMark(p.env), s.mark),
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: p.terminal, Pdeathsig: unix.SIGKILL},
	}
	for _, f := range p.files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if p.group != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(p.group.Fd())
	}
	if u := p.user; u != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := child{exited: make(chan barrier.Exit, 1), oom: s.oomKills(), step: p.step, site: p.site}
	var pid int
	err := s.onThread(func() (err error) {
		if p.site {
			back, err := s.asService()
			if err != nil {
				return err
			}
			defer back()
		}
		pid, err = syscall.ForkExec(p.path, p.args, attr)
		return err
	})
	runtime.KeepAlive(p.files)
	runtime.KeepAlive(p.group)
	if err != nil {
		return 0, nil, &fs.PathError{Op: "exec", Path: p.path, Err: err}
	}
	s.children[pid] = ch
	return pid, ch.exited, nil
}

// withoutMark is an environment without the mark of a job that this one was submitted
// from: who looks for what is left of that one must not find this one.
func withoutMark(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, attempt.MarkVariable+"=") })
}

// asService takes the spawning thread out of what the job's user chose, his file creation
// mask and his limits, until back is called. The CPUs on which it runs are not worth a
// failure: where they cannot be set, the site's program runs on the job's, or the job goes on
// on any.
func (s *spawner) asService() (back func(), err error) {
	bound := s.cpus != s.any && unix.SchedSetaffinity(0, &s.any) == nil
	rebind := func() {
		if bound && unix.SchedSetaffinity(0, &s.cpus) != nil {
			s.cpus = s.any
		}
	}
	if s.group != nil {
		if err := s.group.Leave(unix.Gettid()); err != nil {
			rebind()
			return nil, fmt.Errorf("leave the job's control group: %w", err)
		}
	}
	mask := unix.Umask(s.umask | 0o022)
	return func() {
		rebind()
		unix.Umask(mask)
		if s.group != nil {
			if err := s.group.Thread(unix.Gettid()); err != nil {
				panic("enter the job's control group again: " + err.Error())
			}
		}
	}, nil
}

// reapChildren waits for every child that has ended.
func (s *spawner) reapChildren() {
	for {
		var ws unix.WaitStatus
		var ru unix.Rusage
		s.mu.Lock()
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, &ru)
		if pid > 0 {
			c, ok := s.children[pid]
			used := s.used.noteEnd(c, ok, &ru)
			if ok {
				e := s.exitOf(ws, c)
				e.Used = used
				c.exited <- e
				delete(s.children, pid)
			}
		}
		s.mu.Unlock()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if pid <= 0 {
			break
		}
	}
	select {
	case s.reaped <- struct{}{}:
	default:
	}
}

// exitOf reads how a child ended. The caller holds the lock.
func (s *spawner) exitOf(ws unix.WaitStatus, c child) barrier.Exit {
	if ws.Signaled() {
		return s.blameLimit(barrier.Exit{Signal: int(ws.Signal())}, c.oom)
	}
	return s.blameLimit(barrier.Exit{Status: ws.ExitStatus()}, c.oom)
}

// explainExit completes the end of a process that somebody else waited for. Before is how many
// kills at the memory limit there were before it began.
func (s *spawner) explainExit(e barrier.Exit, before int) barrier.Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blameLimit(e, before)
}

// blameLimit says of the end of a process that the memory limit was its cause. One that was killed
// while the kernel counted a kill at the limit that no other child accounts for was killed by it; a
// shell's exit 137 accounts for one too. The caller holds the lock.
func (s *spawner) blameLimit(e barrier.Exit, before int) barrier.Exit {
	killed := e.Signal == int(unix.SIGKILL)
	if shell := e.Status == 128+int(unix.SIGKILL); !killed && !shell {
		return e
	}
	if n := s.oomKills(); n > s.blamed && n > before {
		s.blamed++
		e.OOM = killed
	}
	return e
}

// hasNoChild reports whether the supervisor has no child at all, dead or alive.
func (s *spawner) hasNoChild() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD)
}

// ExplainLaunch implements barrier.LaunchExplainer.
func (s *spawner) ExplainLaunch() string {
	if s.limit > 0 && s.forksRefused() > s.refused {
		return fmt.Sprintf("the job may have %d processes and threads on each node (jobs.processes of the server's configuration)", s.limit)
	}
	return ""
}

func (s *spawner) forksRefused() int {
	if s.group == nil {
		return 0
	}
	n, err := s.group.ForksRefused()
	if err != nil {
		return 0
	}
	return n
}

// childPIDs lists the processes that were started here and have not been waited for.
func (s *spawner) childPIDs() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.children))
}

// signalChildren sends a signal to the process group of every child. It needs no
// descriptor, and so works where nothing else does.
func (s *spawner) signalChildren(sig unix.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid := range s.children {
		_ = unix.Kill(-pid, sig) // a leader of a session, not waited for yet: the number is its own
	}
}

func (s *spawner) oomKills() int {
	if s.group == nil {
		return 0
	}
	n, err := s.group.OOMKills()
	if err != nil {
		return 0
	}
	return n
}
