// Command cox-slurm answers to the names of Slurm's commands (slurmfmt.Commands). It is chosen by
// the name under which it is called, or by its first argument. It is wiring only, and small,
// because its commands start thousands
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
	"strings"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/fabric"
	"github.com/coxswain-sched/coxswain/agent/portdial"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/holder"
	stepscontrol "github.com/coxswain-sched/coxswain/agent/step/scontrol"
	stepsrun "github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/agent/supervise"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sacct"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/salloc"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sattach"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sbatch"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sbcast"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scancel"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scontrol"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/seff"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sinfo"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sprio"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/squeue"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/srun"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sshare"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sstat"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
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
			return barrier.Main(argv[2:])
		case container.InitCommand:
			return container.Main(argv[2:])
		case holder.Command:
			return holder.Main(argv[2:])
		case fabric.Command:
			return fabric.Main(argv[2:])
		case portdial.Command:
			return portdial.Main(argv[2:])
		}
		if code, ok := call(argv[1], argv[2:]); ok {
			return code
		}
	}
	fmt.Fprintf(os.Stderr, "usage: cox-slurm {%s} [ARGUMENTS], or a link to it with one of these names\n", strings.Join(slurmfmt.Commands, "|"))
	return 2
}

// call runs the command of a name, if there is one.
func call(name string, args []string) (code int, ok bool) {
	main := map[string]func([]string, slurmcmd.Stdio) int{
		"sbatch": sbatch.Main, "squeue": squeue.Main, "scancel": scancel.Main, "sinfo": sinfo.Main, "sacct": sacct.Main,
		"scontrol": scontrol.Main, "sshare": sshare.Main, "sprio": sprio.Main, "srun": srun.Main,
		"sstat": sstat.Main, "seff": seff.Main, "salloc": salloc.Main, "sattach": sattach.Main, "sbcast": sbcast.Main,
	}[name]
	if main == nil {
		return 0, false
	}
	inJob := os.Getenv(step.AllocVariable) != ""
	stdio := step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	switch {
	case name == "srun" && step.IsOwn(srunopt.JobOf(args, os.Environ()), os.Getenv):
		return stepsrun.Main(args, stdio), true
	case name == "scontrol" && ownScontrol(args, inJob):
		brief()
		return stepscontrol.Main(args, stdio), true
	case name != "srun" && name != "salloc" && name != "sattach" && name != "sbcast":
		brief()
	}
	return main(args, slurmcmd.Stdio{}), true
}

// ownScontrol reports whether scontrol needs no server: host lists, and inside of a
// job what concerns the job itself.
func ownScontrol(args []string, inJob bool) bool {
	args, cluster, served := stepscontrol.Words(args)
	if !served || len(args) == 0 {
		return false
	}
	word := strings.ToLower(args[0])
	inJob = inJob && !cluster // the server knows whether it is its own
	if inJob && word == "wait_job" {
		return true
	}
	if len(word) < 2 || !strings.HasPrefix("show", word) || len(args) < 2 {
		return false
	}
	entity, id, _ := strings.Cut(strings.ToLower(args[1]), "=")
	if len(args) > 2 {
		id = args[2]
	}
	switch {
	case strings.HasPrefix(entity, "hostn"), strings.HasPrefix(entity, "hostl"):
		return true
	case inJob && (entity == "job" || entity == "jobid"):
		return id == "" || id == os.Getenv("SLURM_JOB_ID") || id == os.Getenv("SLURM_ARRAY_JOB_ID")+"_"+os.Getenv("SLURM_ARRAY_TASK_ID")
	}
	return false
}

// brief lets a command that ends soon do without the garbage collector, up to a size
// at which it is worth its threads.
func brief() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(512 << 20)
}
