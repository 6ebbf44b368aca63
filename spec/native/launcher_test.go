package native

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
)

// A launcher makes a batch script of the command.
func TestLauncher(t *testing.T) {
	for text, want := range map[string]string{
		"nodes: 2\ngpus_per_node: 8\nlauncher: torchrun\ncommand: python train.py --lr 0.1": "ranks_per_node=0 # 0: one for each GPU\nkill_on_bad_exit=1\ncommand=(train.py --lr 0.1 \"$@\")\n",
		"nodes: 2\ntasks_per_node: 4\nlauncher: torchrun\ncommand: [-m, my.train, a b]":     "ranks_per_node=4 # 0: one for each GPU\nkill_on_bad_exit=1\ncommand=(-m my.train 'a b' \"$@\")\n",
		"launcher: torchrun\ncommand: /opt/python3.11 -u -m my.train":                       "command=(-m my.train \"$@\")\n",
		"launcher: torchrun\ncommand: ./solve --in x\nkill_on_bad_exit: false":              "kill_on_bad_exit=0\ncommand=(--no_python ./solve --in x \"$@\")\n",
		"tasks: 8\ngpus_per_task: 1\nlauncher: mpi\ncommand: ./solve \"a;b\" $HOME/in":      "gpus_per_rank=1 # 0: each rank sees those of its node\nkill_on_bad_exit=1\ncommand=(./solve \"a;b\" $HOME/in \"$@\")\n",
		"tasks: 8\nlauncher: mpi\ncommand: [./solve, \"it's\", \"\"]":                       "command=(./solve 'it'\\''s' '' \"$@\")\n",
		"nodes: 2\nlauncher: ray\ncommand: python driver.py":                                "# Made by Coxswain of launcher: ray (docs/how-to/launchers.md).\nkill_on_bad_exit=1\ncommand=(python driver.py \"$@\")\n",
	} {
		s, script, _, err := Parse(spec.Source{Name: "job.yaml", Data: []byte(text)}, options())
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		if !strings.Contains(string(script), want) {
			t.Errorf("%s\nmakes\n%s\nwant\n%s", text, script, want)
		}
		if s.Program.Kind != job.Batch || s.Output.Stdout != "slurm-%j.out" || s.KillOnBadExit {
			t.Errorf("%s\nis %+v, output %+v", text, s.Program, s.Output)
		}
	}
}

// What a launcher cannot start is refused at its field.
func TestLauncherRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"launcher: slurm\ncommand: a":                                  `1:11: launcher: "slurm" is no launcher`,
		"launcher: mpi\nscript: a":                                     "1:11: launcher: needs command",
		"launcher: mpi\ncommand: mpirun -n 4 a":                        "2:10: command: launcher: mpi starts mpirun itself",
		"launcher: torchrun\ncommand: torchrun a.py":                   "2:10: command: launcher: torchrun starts torchrun itself",
		"launcher: torchrun\ncommand: cd x && python a.py":             `2:10: command: torchrun starts one program, and the command has "&"`,
		"launcher: torchrun\ncommand: python -c 'print()'":             "2:10: command: torchrun starts a Python file or -m MODULE",
		"launcher: torchrun\ncommand: a.py 'b":                         "an open quote '",
		"launcher: torchrun\ncommand: a.py\ntasks: 8":                  "3:8: tasks: torchrun starts the ranks of a node together",
		"launcher: torchrun\ncommand: a.py\ngpus_per_task: 1":          "3:16: gpus_per_task: torchrun's ranks share",
		"launcher: torchrun\ncommand: a.py\nnodes: 1-4\nelastic: true": "4:10: elastic: a launcher's ranks are as many as at the start",
		"launcher: mpi\ncommand: a\nkill_on_bad_exit: false":           "3:19: kill_on_bad_exit: MPI ends all ranks",
		"launcher: mpi\ncommand: a\ngroups: [{tasks: 1}, {tasks: 2}]":  "1:11: launcher: starts one group of tasks",
		"launcher: ray\ncommand: ray start --head":                     "2:10: command: launcher: ray starts ray itself",
	} {
		_, _, _, err := Parse(spec.Source{Name: "job.yaml", Data: []byte(text)}, options())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis refused with %v, want %s", text, err, want)
		}
	}
}
