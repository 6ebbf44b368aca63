package srun

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

func TestSrunDocument(t *testing.T) {
	steptest.Document(t, "srun.md", srunDocument())
	steptest.Document(t, "srun-outside.md", outsideDocument())
}

// srunDocument is docs/reference/srun.md.
func srunDocument() string {
	var b strings.Builder
	b.WriteString(srunIntroduction)
	for _, part := range []struct {
		title  string
		effect srunopt.Effect
	}{
		{"Honoured", srunopt.Honoured},
		{"Accepted, said to have no effect", srunopt.Ignored},
		{"Accepted in silence", srunopt.Silent},
		{"Refused", srunopt.Refused},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n", part.title)
		var names []string
		if part.effect != srunopt.Honoured {
			b.WriteString("| option | why |\n|---|---|\n")
		}
		for _, o := range srunopt.All() {
			switch {
			case o.Step != part.effect:
			case part.effect == srunopt.Honoured:
				names = append(names, optionName(o))
			default:
				fmt.Fprintf(&b, "| %s | %s |\n", optionName(o), o.StepWhy)
			}
		}
		if part.effect == srunopt.Honoured {
			b.WriteString(strings.Join(names, ", ") + "\n")
		}
	}
	return b.String()
}

// optionName is an option as a page shows it.
func optionName(o srunopt.Option) string {
	out := "`--" + o.Long + map[getopt.Arg]string{getopt.Required: "=…", getopt.Optional: "[=…]"}[o.Arg] + "`"
	if o.Short != 0 {
		out = "`-" + string(o.Short) + "`, " + out
	}
	return out
}

// outsideDocument is docs/reference/srun-outside.md.
func outsideDocument() string {
	var b strings.Builder
	b.WriteString(outsideIntroduction)
	for _, o := range srunopt.All() {
		switch o.Job {
		case srunopt.Ignored:
			fmt.Fprintf(&b, "| %s | no effect, and says so | %s |\n", optionName(o), o.JobWhy)
		case srunopt.Refused:
			fmt.Fprintf(&b, "| %s | refused | instead: %s |\n", optionName(o), o.JobWhy)
		case srunopt.StepOnly:
			fmt.Fprintf(&b, "| %s | refused | only for a step in a job that exists |\n", optionName(o))
		}
	}
	b.WriteString(variablesIntroduction)
	for _, v := range srunopt.Variables() {
		where := "outside"
		if v.InStep {
			where = "outside and inside"
		}
		fmt.Fprintf(&b, "| `%s` | `--%s` | %s |\n", v.Name, v.Option, where)
	}
	return b.String()
}

const outsideIntroduction = `# srun outside of a job

` + "`srun` outside of a job makes an allocation and runs the command in it as a step, with the code that runs steps inside: standard input, `-l`, `-o f.%t`, `-i 3`, `--multi-prog`, `-K`, `-W`" + `, signals and exit codes are the same. Options of the
allocation (` + "`-N`, `-n`, `-c`, `--mem`, `--gpus`, `-t`, `-p`, `--signal`" + ` and the like) are those of sbatch. The job ends with its step, or when srun is killed. A task that fails does not end the others, unless ` + "`-K`" + ` is given.

- While the job waits, an interrupt cancels it; ` + "`--immediate[=SECONDS]`" + ` gives up instead of waiting (exit code: SLURM_EXIT_IMMEDIATE, else 1).
- ` + "`--jobid=N`" + `, or SLURM_JOB_ID, runs the step in a job of yours that runs.
- ` + "`--test-only`" + ` says when and where the job could start, and starts nothing.
- Errors of srun itself have the exit code SLURM_EXIT_ERROR, if that is set.
- Where the job's nodes are not of this machine (COX_SERVER names another one, or the job goes to a pool of another engine), the job runs the step itself. srun then follows its output through the API. Standard input is not passed on,
  which srun says. Pools of Kubernetes refuse options of the step.

Not as inside of a job:

| option | outside | |
|---|---|---|
`

const variablesIntroduction = `
## Environment variables

An option on the command line outranks its variable. An option without an argument is set by a variable that is empty, "yes" or a number that is not 0. Inside of a job the other variables describe the allocation.

| variable | same as | where |
|---|---|---|
`

const srunIntroduction = `# srun inside a job

Outside of a job srun makes an allocation first: [srun-outside.md](srun-outside.md), which also lists its environment variables.

` + "`srun`" + ` runs a program as a step in the nodes of the job that it is called in. The lists below are made from the table in
` + "`model/srunopt/table.go`" + `. Behaviour and messages were compared with Slurm 22.05; where Slurm changed later, the later way is taken.

- All tasks of a step are held on all their nodes before the first one runs. If one cannot be held, none runs.
- A step has its nodes whole, with all their GPUs, and other steps wait, as with Slurm since 20.11: ` + "`--exact`" + ` (also set by
  ` + "`--cpus-per-task`, `--gpus-per-task` and `--exclusive`" + `) takes only the CPUs asked for, ` + "`--gpus`, `--gres` and the like" + ` say how many GPUs,
  ` + "`--overlap`" + ` shares. Memory is not counted for steps. Tasks are not bound to CPUs of their own.
- Without ` + "`-n`, `-N`, `--ntasks-per-node`" + ` the job's own numbers hold (SLURM_NTASKS, SLURM_NNODES, …); without those, one task per node.
  ` + "`--ntasks-per-node`" + ` on srun's command line counts more than the job's number of tasks.
- Exit code: the highest of its tasks, 128 + signal for a task that a signal ended. Tasks that srun ended because another one
  failed do not count (Slurm answers 143 there, and hides the cause). A program that cannot be executed: 2 or 13, the errno.
- A step's processes end with it, also those left in the background. When srun is killed, its tasks end; the next step begins after that.
- ` + "`--label`, `-o`, `-e`, `-i`" + ` with % patterns, a task's number or ` + "`none`" + `, as Slurm has them. Standard input goes to all tasks.
- Programs of MPICH, Intel MPI and Open MPI start under srun: [mpi.md](mpi.md).
- ` + "`srun a : b`" + ` runs several programs as one step, ` + "`--het-group`" + ` chooses components of a heterogeneous job, ` + "`--multi-prog`" + ` reads a file.
- An interrupt must come twice within a second to reach the tasks; a third one, or SIGTERM, ends the step.
- Limits (` + "`ulimit`" + `) of srun hold for its tasks: all, or those that ` + "`--propagate`" + ` names.
- ` + "`sattach` and `sbcast`" + `: [slurm-commands.md](slurm-commands.md#sattach).
`
