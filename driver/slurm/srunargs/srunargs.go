// Package srunargs puts commands that clients run in a job in the terms of the site's srun: one
// command beside the tasks (cox exec, cox shell), a step of the whole allocation (srun in an
// allocation of salloc), and a connection to a port of a node (cox forward).
//
// The model. A Call becomes the words of srun, and an environment for it. The environment of the job
// goes to the tasks in variables of names that neither srun nor the system's libraries read: srun
// runs where the cluster's commands are, perhaps as somebody who is trusted with more than the job's
// owner. A shell gives the tasks their names back.
//
// Guarantees: no variable of the job's, and no option of a client's, has srun itself open a file, run
// a program or join another job. It does no I/O.
package srunargs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/portdial"
	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// Call is a command for a job.
type Call struct {
	Command  []string // "srun" and its words are a step of the whole allocation
	Node     string   // where a command runs that is none
	Dir      string   // working directory
	Terminal bool
	Env      []string // NAME=VALUE for the tasks

	Secrets []job.Secret // of the job, which the tasks read in the $COX_SECRETS_DIR of Env
}

// Words are srun's arguments, but for the number of the job and the name of the step.
func (c *Call) Words() ([]string, error) {
	out := []string{"--chdir=" + c.Dir, "--export=ALL"}
	options, command := []string(nil), c.Command
	switch {
	case c.IsStep():
		n, err := checkOptions(command[1:], c.Terminal)
		if err != nil {
			return nil, err
		}
		options, command = command[1:1+n], command[1+n:]
		if len(command) > 0 && command[0] == "--" {
			command = command[1:]
		}
		if len(command) == 0 {
			return nil, fault.New(fault.Invalid, "srun: no command is given")
		}
		options = append(slices.Clone(options), "--unbuffered")
	default:
		if command[0] == "cox" && len(command) > 2 && command[1] == portdial.Command {
			command = append([]string{"/bin/sh", "-c", dialScript, "sh"}, command[2:]...)
		}
		out = append(out, "--quiet", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist="+c.Node, "--cpu-bind=none", "--mpi=none")
		if c.Terminal {
			out = append(out, "--pty")
		} else {
			out = append(out, "--unbuffered")
		}
	}
	return append(append(append(out, options...), "--", "/bin/sh", "-c", c.unpackScript(), "sh"), command...), nil
}

// IsStep reports whether the command is a step of the whole allocation.
func (c *Call) IsStep() bool { return c.Command[0] == "srun" }

// Names reports whether a step has a name of the client's own.
func (c *Call) Names() bool {
	if !c.IsStep() {
		return false
	}
	scan := getopt.New(srunopt.Table{}, c.Command[1:])
	for {
		it := scan.Next()
		switch {
		case it.Kind != getopt.Found:
			return false
		case srunopt.All()[it.Index].Name() == "job-name":
			return true
		}
	}
}

// served are the options of srun that a client may give: all of them are for the nodes, or for what
// srun prints.
var served = []string{
	"ntasks", "nodes", "cpus-per-task", "ntasks-per-node", "ntasks-per-gpu", "ntasks-per-core", "ntasks-per-socket", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "cpus-per-gpu",
	"gres", "gres-flags", "tres-per-task", "gpu-bind", "tres-bind", "accel-bind", "label", "unbuffered", "exact", "overlap", "exclusive", "overcommit", "immediate", "kill-on-bad-exit", "wait", "time",
	"nodelist", "exclude", "relative", "het-group", "distribution", "chdir", "job-name", "mpi", "quiet", "verbose", "pty", "disable-status", "cpu-bind", "mem-bind", "hint", "mem", "mem-per-cpu",
	"mem-per-gpu", "cpu-freq", "gpu-freq", "threads-per-core", "signal", "no-kill", "constraint", "task-prolog", "task-epilog", "extra-node-info", "core-spec", "preserve-env", "resv-ports", "quit-on-interrupt",
}

// checkOptions returns how many words are options, and refuses those that srun would follow where it
// runs.
func checkOptions(words []string, terminal bool) (n int, err error) {
	scan := getopt.New(srunopt.Table{}, words)
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.End:
			return len(words), nil
		case getopt.Terminator, getopt.Plain:
			return it.Word, nil
		case getopt.Found:
			name := srunopt.All()[it.Index].Name()
			if err := checkOption(name, it.Value, terminal); err != nil {
				return 0, err
			}
		default: // an option of the site's srun that ours does not know, or a mistake
			return 0, fault.New(fault.Invalid, "srun: %s", it.Err().Error()).Advise("srun --help lists the options; those of plugins are given in the script of a job")
		}
	}
}

// streamOptions name files of the machine where srun runs.
var streamOptions = []string{"input", "output", "error"}

// hostOptions take the names of nodes. A value with a slash is a file that srun reads.
var hostOptions = []string{"nodelist", "exclude"}

func checkOption(name, value string, terminal bool) error {
	const inScript = "in a script of the job (cox submit), srun takes it"
	switch {
	case name == "pty" && !terminal:
		return fault.New(fault.Invalid, "srun: --pty needs a terminal, and this command has none").Advise("leave --pty out, or run it in a terminal")
	case slices.Contains(streamOptions, name):
		if value == "none" || value == "all" || value != "" && strings.Trim(value, "0123456789") == "" {
			return nil
		}
		return fault.New(fault.Unsupported, "srun: --%s=%s names a file, and this srun runs on the machine of the cluster's commands", name, value).
			Advise("redirect the stream of srun here; or have the command open the file; %s", inScript)
	case slices.Contains(hostOptions, name) && strings.Contains(value, "/"):
		return fault.New(fault.Unsupported, "srun: --%s=%s names a file, and this srun runs on the machine of the cluster's commands", name, value).
			Advise("list the nodes, as in --%s=n1,n2; %s", name, inScript)
	case slices.Contains(served, name):
		return nil
	}
	return fault.New(fault.Unsupported, "srun: --%s is not served in an allocation on this cluster from outside", name).Advise("leave it out; %s", inScript)
}

// The names under which the variables of a job pass srun by.
const (
	packedPrefix = "COX_STEP_ENV_"
	packedCount  = "COX_STEP_ENVS"
)

// readOnly are variables that a shell does not take.
var readOnly = []string{"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID", "IFS", "OPTIND", "ENV", "BASH_ENV", "LINENO"}

// Environ is the environment of srun.
func (c *Call) Environ() []string {
	last := map[string]int{}
	for i, v := range c.Env {
		name, _, _ := strings.Cut(v, "=")
		last[name] = i
	}
	var out []string
	for i, v := range c.Env {
		name, _, ok := strings.Cut(v, "=")
		if !ok || last[name] != i || !isShellName(name) || slices.Contains(readOnly, name) {
			continue
		}
		out = append(out, fmt.Sprintf("%s%d=%s", packedPrefix, len(out), v))
	}
	return append(out, fmt.Sprintf("%s=%d", packedCount, len(out)))
}

func isShellName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// unpackScript gives a task the variables of the job and of its secrets, and becomes its command.
func (c *Call) unpackScript() string {
	secrets := ""
	if len(c.Secrets) > 0 {
		secrets = script.ReadSecrets(c.Secrets, "exit 1")
	}
	return unpackVariables + secrets + `exec "$@"`
}

const unpackVariables = `unset LC_ALL
cox_n=0
while [ "$cox_n" -lt "${` + packedCount + `:-0}" ]; do
	eval "export \"\$` + packedPrefix + `$cox_n\"; unset ` + packedPrefix + `$cox_n"
	cox_n=$((cox_n + 1))
done
unset cox_n ` + packedCount + `
`
