package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/fastclient"
)

// nodes is how many nodes either side has.
const nodes = 8

// side is one of the two that are compared.
type side interface {
	sideName() string
	commandPath(name string) string // path of a command
	userEnviron() []string
	usedCPU() time.Duration // CPU of the daemons and all that they started
	usedMemory() int64      // bytes of the controller
}

// userEnvironment is an environment like a user's, about 3 KB, with one side's own variables.
func userEnvironment(own ...string) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/root", "USER=root", "LANG=C.UTF-8", "TZ=UTC"}
	for i := range 40 {
		env = append(env, fmt.Sprintf("BENCH_VARIABLE_%02d=%s", i, strings.Repeat("value ", 8)))
	}
	return append(env, own...)
}

// group is a control group that counts CPU; "" where there are none.
type group string

// newGroup makes a group for a side.
func newGroup(name string) group {
	for _, root := range []string{"/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"} {
		if _, err := os.Stat(root + "/cgroup.procs"); err != nil {
			continue
		}
		dir := filepath.Join(root, fmt.Sprintf("cox-bench-%d-%s", os.Getpid(), name))
		if os.Mkdir(dir, 0o755) == nil {
			return group(dir)
		}
	}
	return ""
}

// usedCPU is the CPU time of everything that ran in the group.
func (g group) usedCPU() time.Duration {
	if b, err := os.ReadFile(string(g) + "/cpuacct.usage"); err == nil {
		n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		return time.Duration(n)
	}
	b, err := os.ReadFile(string(g) + "/cpu.stat")
	if err != nil {
		return machineCPU()
	}
	for _, l := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, "usage_usec "); ok {
			n, _ := strconv.ParseInt(v, 10, 64)
			return time.Duration(n) * time.Microsecond
		}
	}
	return machineCPU()
}

// addProcess puts a process into the group.
func (g group) addProcess(pid int) {
	if g != "" {
		_ = os.WriteFile(string(g)+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0o644)
	}
}

// removeGroup takes the group away once nothing runs in it.
func (g group) removeGroup() {
	for range 50 {
		if g == "" || os.Remove(string(g)) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// machineCPU is the CPU time of the whole machine, for systems without groups.
func machineCPU() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	mustSucceed(err)
	f := strings.Fields(strings.SplitN(string(b), "\n", 2)[0])
	var ticks int64
	for i, v := range f[1:] {
		if i == 3 || i == 4 { // idle, iowait
			continue
		}
		n, _ := strconv.ParseInt(v, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// residentMemory is the memory of a process, bytes.
func residentMemory(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for _, l := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// coxSide is a server of ours with a state directory of its own.
type coxSide struct {
	bin   string
	dir   string
	state string
	n     int
	cmd   *exec.Cmd
	group group
	serve func(state string) []string // the command that serves; nil: cox up
}

func (c *coxSide) sideName() string { return "cox" }

func (c *coxSide) commandPath(name string) string {
	link := filepath.Join(c.dir, "bin", name)
	if _, err := os.Lstat(link); err != nil {
		mustSucceed(os.MkdirAll(filepath.Dir(link), 0o755))
		mustSucceed(os.Symlink(filepath.Join(c.bin, "cox-slurm"), link))
	}
	return link
}

func (c *coxSide) socketPath() string { return filepath.Join(c.state, "s") }

func (c *coxSide) userEnviron() []string {
	return userEnvironment("COX_SERVER=unix://" + c.socketPath())
}

func (c *coxSide) usedCPU() time.Duration { return c.group.usedCPU() }

func (c *coxSide) usedMemory() int64 { return residentMemory(c.cmd.Process.Pid) }

// startFresh starts a server with an empty state directory.
func (c *coxSide) startFresh() {
	c.stop()
	c.n++
	c.state = filepath.Join(c.dir, fmt.Sprintf("cox%d", c.n))
	c.start()
}

// start starts a server and returns how long it took until it answered.
func (c *coxSide) start() time.Duration {
	if c.group == "" {
		c.group = newGroup("cox")
	}
	mustSucceed(os.MkdirAll(c.state, 0o700))
	log, err := os.Create(filepath.Join(c.dir, "cox.log"))
	mustSucceed(err)
	defer log.Close()
	begin := time.Now()
	// The shell waits for its place in the group before it becomes the server.
	args := []string{filepath.Join(c.bin, "cox"), "up", "--state-dir", c.state, "--socket", c.socketPath(), "--tcp", "none", "--nodes", strconv.Itoa(nodes)}
	if c.serve != nil {
		args = c.serve(c.state)
	}
	c.cmd = exec.Command("/bin/sh", append([]string{"-c", `read x; exec "$@"`, "sh"}, args...)...)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = userEnvironment(), log, log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := c.cmd.StdinPipe()
	mustSucceed(err)
	mustSucceed(c.cmd.Start())
	c.group.addProcess(c.cmd.Process.Pid)
	fmt.Fprintln(in)
	in.Close()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		cl := c.newClient()
		// The list needs all jobs; /v1 would be answered before they are there.
		r, err := cl.Do("GET", "/v1/jobs?columns=id&limit=1", "text/tab-separated-values", nil)
		if err == nil && r.Status == 200 {
			cl.Close()
			return time.Since(begin)
		}
		cl.Close()
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(c.dir, "cox.log"))
			panic(fmt.Sprintf("the server did not start: %v\n%s", err, text))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (c *coxSide) newClient() *fastclient.Client {
	return fastclient.New(address.Address{Socket: c.socketPath(), URL: "http://cox"})
}

// stop ends the server and its jobs.
func (c *coxSide) stop() {
	if c.cmd == nil {
		return
	}
	runOf(c, "scancel", "-u", "root")
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	_ = c.cmd.Wait()
	c.cmd = nil
	c.group.removeGroup()
	c.group = ""
	os.RemoveAll(c.state)
}

// stopServer ends the server and keeps its state.
func (c *coxSide) stopServer() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	_ = c.cmd.Wait()
	c.cmd = nil
}

// slurmSide is a running Slurm.
type slurmSide struct {
	lab   string
	group group
}

// newSlurm puts the daemons of a lab into a group.
func newSlurm(lab string) *slurmSide {
	s := &slurmSide{lab: lab, group: newGroup("slurm")}
	pids, err := filepath.Glob(filepath.Join(lab, "run", "*.own"))
	mustSucceed(err)
	for _, f := range pids {
		if pid := s.readPID(f); pid > 0 {
			s.group.addProcess(pid)
		}
	}
	return s
}

func (s *slurmSide) readPID(file string) int {
	b, _ := os.ReadFile(file)
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

func (s *slurmSide) sideName() string { return "Slurm" }

func (s *slurmSide) commandPath(name string) string { return "/usr/bin/" + name }

func (s *slurmSide) userEnviron() []string {
	return userEnvironment("SLURM_CONF=" + filepath.Join(s.lab, "slurm.conf"))
}

func (s *slurmSide) usedCPU() time.Duration { return s.group.usedCPU() }

func (s *slurmSide) usedMemory() int64 {
	return residentMemory(s.readPID(filepath.Join(s.lab, "run", "slurmctld.own")))
}

func (s *slurmSide) runCommand(name string, args ...string) (string, error) {
	return runOf(s, name, args...)
}

// newClient is a connection to slurmrestd.
func (s *slurmSide) newClient() *fastclient.Client {
	return fastclient.New(address.Address{Socket: filepath.Join(s.lab, "rest", "sock"), URL: "http://localhost"})
}

// runOf runs a command of a side and returns what it printed.
func runOf(s side, name string, args ...string) (string, error) {
	cmd := exec.Command(s.commandPath(name), args...)
	cmd.Env = s.userEnviron()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// presentSides are those that are there, ours first.
func (b *bench) presentSides() []side {
	out := []side{b.cox}
	if b.slurm != nil {
		out = append(out, b.slurm)
	}
	return out
}

// clearJobs cancels all jobs of a side and waits until none is left.
func clearJobs(s side) {
	_, _ = runOf(s, "scancel", "-u", "root,nobody")
	_, _ = runOf(s, "scancel", "-u", "root")
	if s.sideName() == "Slurm" {
		_, _ = runOf(s, "scancel", "-u", "nobody")
	}
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		out, _ := runOf(s, "squeue", "-h", "-o", "%i")
		if out == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	panic(s.sideName() + ": jobs do not go away")
}
