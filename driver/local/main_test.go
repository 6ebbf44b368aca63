package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/holder"
	"github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/agent/supervise"
)

// TestMain lets the test binary stand for cox: as a supervisor it is started
// with the command's hidden arguments.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "srun" {
		os.Exit(srun.Main(os.Args[1:], step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(supervisor(os.Args[2:]))
		case "task-init":
			os.Exit(barrier.Main(os.Args[2:]))
		case holder.Command:
			os.Exit(holder.Main(os.Args[2:]))
		case "engine":
			engineMain(os.Args[2], os.Args[3])
		case "devices":
			deviceMain(os.Args[2], os.Args[3])
		case "hog":
			hog()
		case "web":
			webMain(os.Args[2])
		}
	}
	goleak.VerifyTestMain(m)
}

// supervisor is the hidden command, unless a test broke the node: then it dies or
// never answers. A test may also put its journal elsewhere.
func supervisor(args []string) int {
	if args[0] == supervise.TryNames {
		return supervise.Main(args)
	}
	dir, node := args[0], args[2]
	root := filepath.Join(dir, "..", "..")
	if _, err := os.Stat(filepath.Join(root, "break."+node)); err == nil {
		fmt.Fprintln(os.Stderr, "broken by a test")
		return 1
	}
	if _, err := os.Stat(filepath.Join(root, "hang."+node)); err == nil {
		time.Sleep(time.Hour) // alive, and never ready
	}
	if journal, err := os.ReadFile(filepath.Join(root, "journal."+node)); err == nil {
		if err := os.Symlink(string(journal), filepath.Join(dir, "journal")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "nofile."+node)); err == nil {
		n, _ := strconv.ParseUint(string(text), 10, 64)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return supervise.Main(args)
}

// hog takes memory until somebody ends it.
func hog() {
	var all [][]byte
	for {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 1
		}
		all = append(all, b)
		if len(all) == 1<<10 {
			os.Exit(3) // a GiB, and no limit
		}
	}
}
