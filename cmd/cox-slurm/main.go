// Command cox-slurm answers to Slurm's command names: sbatch, squeue, scancel, sinfo,
// sacct, scontrol, srun. It is chosen by the name under which it is called, or by its
// first argument. It is wiring only, and small, because its commands start thousands
// of times: net/http, TLS and terminal libraries stay out (a test watches that).
//
// With a hidden first argument it is the supervisor of a node or a held task, as cox
// is: the same code, started sooner.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/coxswain-sched/coxswain/engine/local/supervise"
	"github.com/coxswain-sched/coxswain/face"
	"github.com/coxswain-sched/coxswain/face/sbatch"
	"github.com/coxswain-sched/coxswain/face/squeue"
	"github.com/coxswain-sched/coxswain/step"
)

func main() { os.Exit(dispatch(os.Args)) }

// dispatch chooses by the name under which the binary was called, else by its first
// argument.
func dispatch(argv []string) int {
	if code, ok := call(filepath.Base(argv[0]), argv[1:]); ok {
		return code
	}
	if len(argv) > 1 {
		switch argv[1] {
		case "supervise":
			return supervise.Main(argv[2:])
		case "task-init":
			return step.TaskInitMain(argv[2:])
		}
		if code, ok := call(argv[1], argv[2:]); ok {
			return code
		}
	}
	fmt.Fprintln(os.Stderr, "usage: cox-slurm {sbatch|squeue|scancel|sinfo|sacct|scontrol|srun} [ARGUMENTS], or a link to it with one of these names")
	return 2
}

// call runs the command of a name, if there is one.
func call(name string, args []string) (code int, ok bool) {
	main, ok := map[string]func([]string, face.Stdio) int{
		"sbatch": sbatch.Main, "squeue": squeue.Main,
	}[name]
	switch {
	case ok:
		brief()
		return main(args, face.Stdio{}), true
	case name == "srun":
		return step.SrunMain(args, step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}), true
	}
	return 0, false
}

// brief lets a command that ends soon do without the garbage collector, up to a size
// at which it is worth its threads.
func brief() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(512 << 20)
}
