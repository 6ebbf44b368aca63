package podagent_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// filtered becomes a program that may not call unshare, as under the standard filter of
// container runtimes.
func filtered(args []string) {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_UNSHARE},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	const everyThread = 1 // SECCOMP_FILTER_FLAG_TSYNC
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, everyThread, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		panic(errno)
	}
	if err := unix.Unshare(unix.CLONE_FS); err != unix.EPERM {
		panic(fmt.Sprintf("unshare is not forbidden: %v", err))
	}
	panic(syscall.Exec(args[0], args, os.Environ()))
}

// TestFiltered: it works under the filter of system calls that container runtimes have,
// with the file creation mask of who submitted.
func TestFiltered(t *testing.T) {
	c := planned(t, 2, "touch made; srun sh -c 'touch made.$SLURM_PROCID'")
	c.plan.Env = append(c.plan.Env, "SLURM_UMASK=0027")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.before = []string{self, "filtered"}
	c.start()
	o, code := c.members[0].end()
	if code != 0 {
		t.Errorf("exit code %d, %+v", code, o)
	}
	for _, name := range []string{"made", "made.0", "made.1"} {
		if st, err := os.Stat(c.work(name)); err != nil || st.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
}

// TestEnvironment: what the image and the pod set goes before what was submitted on another
// machine, but for a home that is there, and what the job sets itself goes before all.
func TestEnvironment(t *testing.T) {
	c := planned(t, 1, `srun sh -c 'echo "$HOME $ONLY $BOTH $SET $COX_POD_INDEX $(echo $PATH | tr : "\n" | tail -n 1)"'`)
	c.plan.Env = []string{"HOME=" + c.dir, "PATH=/submitted/bin", "ONLY=submitted", "BOTH=submitted", "SET=submitted"}
	c.plan.Job.Spec.Env.Set = []string{"SET=job"}
	c.env = []string{"BOTH=image", "SET=image", "HOME=/root", "PATH=" + os.Getenv("PATH") + ":/image/bin"}
	c.start()
	_, code := c.members[0].end()
	if got, want := c.members[0].out.String(), c.dir+" submitted image job  /image/bin\n"; got != want || code != 0 {
		t.Errorf("exit code %d, %q, want %q", code, got, want)
	}
}

// TestImage: the image of a job is that of its pods, in which members are: they make no container
// of it. Seen to fail on real kubelets with: every job that names an image refused.
func TestImage(t *testing.T) {
	c := planned(t, 1, "srun echo inside")
	c.plan.Job.Spec.Image, c.plan.Job.Spec.Container = "registry.example/train:1", &job.Container{}
	c.start()
	if o, code := c.members[0].end(); code != 0 || c.members[0].out.String() != "inside\n" {
		t.Errorf("exit code %d, %+v", code, o)
	}
}

// TestOutOfMemory: an attempt that fails after the kernel killed processes of one of its
// pods is told apart. The file stands for the kernel's.
func TestOutOfMemory(t *testing.T) {
	for _, file := range []string{"memory.events", "memory/memory.oom_control"} {
		for member := range 2 {
			t.Run(fmt.Sprintf("%s on member %d", file, member), func(t *testing.T) {
				t.Parallel()
				c := planned(t, 2, "")
				group := filepath.Join(c.dir, fmt.Sprintf("m%d", member), "cgroup", file)
				c.plan.Script = []byte("#!/bin/sh\necho 'oom_kill 5' > " + group + "; exit " + fmt.Sprint(137*member)) // a script that goes on makes no success of it
				c.plan.Grace = 0
				for i := range 2 {
					name := filepath.Join(c.dir, fmt.Sprintf("m%d", i), "cgroup", file)
					if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(name, []byte("oom 4\noom_kill 3\n"), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				c.start()
				o, code := c.members[0].end()
				if o.Cause != engine.OutOfMemory || code != 137 || o.Exit != job.OutOfMemoryExit || !strings.Contains(o.Message, "ended 2 of its processes on "+c.plan.Members[member].Name) {
					t.Errorf("exit code %d, %+v", code, o)
				}
			})
		}
	}
}

// TestFrozen: a member that is there and does nothing is lost, too.
func TestFrozen(t *testing.T) {
	for member := range 2 {
		t.Run(fmt.Sprint(member), func(t *testing.T) {
			t.Parallel()
			c := planned(t, 2, sailing)
			c.plan.Grace = 0
			c.env = []string{podagent.LostEnv + "=1s"}
			c.start()
			c.allUp()
			if err := c.members[member].cmd.Process.Signal(unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			if o, code := c.members[1-member].end(); o.Cause != engine.NodeLost || code == 0 {
				t.Errorf("exit code %d, %+v", code, o)
			}
		})
	}
}

// TestUnentered: a directory that the pod's user may not enter is as good as none, and an
// output file that nobody named does not fail a job in one that he may not write to.
func TestUnentered(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	const uid = 54321
	for name, mode := range map[string]os.FileMode{"closed": 0o700, "read-only": 0o755} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := planned(t, 1, "pwd")
			c.user = &syscall.Credential{Uid: uid, Gid: uid}
			for dir := c.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
				if err := os.Chmod(dir, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(filepath.Join(c.dir, "home"), mode); err != nil {
				t.Fatal(err)
			}
			c.plan.WorkDir = filepath.Join(c.dir, "m0", "work")
			want := c.plan.WorkDir + "\n"
			if name == "read-only" {
				want = filepath.Join(c.dir, "home") + "\n"
			}
			c.start()
			o, code := c.members[0].end()
			file, err := os.ReadFile(filepath.Join(c.plan.WorkDir, "slurm-42.out"))
			if out := c.members[0].out.String(); code != 0 || out != want || err != nil || string(file) != want {
				t.Errorf("exit code %d, %+v, log %q, file %q, %v", code, o, out, file, err)
			}
		})
	}
}

// TestPortTaken: a member that cannot listen says so and waits for nobody.
func TestPortTaken(t *testing.T) {
	for member := range 2 {
		t.Run(fmt.Sprint(member), func(t *testing.T) {
			t.Parallel()
			c := planned(t, 2, "touch ran")
			c.plan.Ready = time.Hour
			l, err := net.Listen("tcp", fmt.Sprintf(":%d", c.plan.Members[member].Port))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			c.start(1 - member)
			if o, code := c.members[member].end(); o.Cause != engine.Unready || code != 1 || !strings.Contains(o.Message, "in use") || there(c.work("ran")) {
				t.Errorf("exit code %d, %+v", code, o)
			}
		})
	}
}

// TestSecretTooLong: what no Secret holds is refused before anything is made.
func TestSecretTooLong(t *testing.T) {
	c := planned(t, 2, strings.Repeat("#", 1<<20))
	if _, err := podagent.Files(c.plan, time.Now()); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("%v", err)
	}
}
