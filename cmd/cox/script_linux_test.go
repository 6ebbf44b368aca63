package main

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coxswain-sched/coxswain/agent/fabric"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sacct"
)

// TestMain lets the test binary stand in for cox, under all of its names: it
// starts itself as supervisor, task and srun.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "srun", "scontrol", "sbatch", "squeue", "scancel", "sinfo", "sacct", "cox-ssh":
		os.Exit(dispatch(os.Args))
	}
	if len(os.Args) > 1 && (os.Args[1] == "supervise" || os.Args[1] == "task-init" || os.Args[1] == fabric.Command) {
		os.Exit(dispatch(os.Args))
	}
	testscript.Main(m, map[string]func(){"cox": main, "accounting": accounting})
}

// accounting is sacct, which is a program of its own beside cox.
func accounting() {
	os.Exit(sacct.Main(os.Args[1:], slurmcmd.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// TestScript runs the transcripts of testdata/script against real processes.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("COX_SERVER", "unix://"+e.WorkDir+"/none.sock") // a server of the machine has no part in it
			e.Setenv("TMPDIR", e.WorkDir+"/.tmp")
			e.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
			e.Defer(func() { endServers(e.WorkDir) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exit": exitIs, "server": startServer, "eventually": eventually, "nothing-left": nothingLeft, "mkbytes": makeBytes, "mkcrlf": makeCRLF,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Getuid() == 0, nil
			case "pods": // of manifests can run: this program is in images too, and podman is there
				_, err := exec.LookPath("podman")
				return err == nil && isStatic(), nil
			case "long":
				return os.Getenv("COX_LONG") != "", nil
			}
			return false, fmt.Errorf("no condition is called %q", cond)
		},
	})
}

// isStatic reports whether this program needs no library of the machine.
func isStatic() bool {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return false
	}
	defer f.Close()
	return !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// exitIs runs a command and compares its exit code: exit CODE COMMAND [ARG…].
func exitIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		coded, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = coded.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s ended with exit %d, want %d\n%s%s", args[1], got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// endServers kills what a failed script left running.
func endServers(home string) {
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return
	}
	for _, p := range procs {
		env, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(env)+"\x00", "HOME="+home+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
	}
}

// nothingLeft fails if a process that the script's commands began still runs, or a
// temporary state directory still exists.
func nothingLeft(ts *testscript.TestScript, _ bool, _ []string) {
	mark := []byte("HOME=" + ts.Getenv("HOME") + "\x00")
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	ts.Check(err)
	for _, p := range procs {
		env, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(env)+"\x00", string(mark)) {
			continue
		}
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
		ts.Fatalf("left running: %s %q", p, cmd)
	}
	dirs, err := filepath.Glob(filepath.Join(ts.Getenv("TMPDIR"), "cox-*"))
	ts.Check(err)
	if len(dirs) > 0 {
		ts.Fatalf("left behind: %s", dirs)
	}
}

// makeBytes writes a file of N bytes: mkbytes FILE N BYTE [PREFIX].
func makeBytes(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	b, err := strconv.ParseUint(args[2], 0, 8)
	ts.Check(err)
	prefix := ""
	if len(args) > 3 {
		prefix = args[3] + "\n"
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(prefix+strings.Repeat(string([]byte{byte(b)}), n)), 0o600))
}

// makeCRLF copies a text with the line ends of DOS: mkcrlf TO FROM.
func makeCRLF(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.ReplaceAll(ts.ReadFile(args[1]), "\n", "\r\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
