package srunopt

import (
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/getopt"
)

// Variable is an environment variable that stands for an option of srun.
type Variable struct {
	Name   string
	Option string // the option's main name
	InStep bool   // also inside of an allocation; the other ones are the allocation's own there
}

// Variables lists them. Of two for one option the first that is set counts. The caller does
// not change the list.
func Variables() []Variable { return variables }

// variables is the table of man srun, INPUT ENVIRONMENT VARIABLES.
var variables = []Variable{
	{"SLURM_ACCOUNT", "account", false},
	{"SLURM_ACCTG_FREQ", "acctg-freq", true},
	{"SLURM_BCAST", "bcast", true},
	{"SLURM_BCAST_EXCLUDE", "bcast-exclude", true},
	{"SLURM_BURST_BUFFER", "bb", false},
	{"SLURM_CLUSTERS", "clusters", false},
	{"SLURM_COMPRESS", "compress", true},
	{"SLURM_CONSTRAINT", "constraint", false},
	{"SLURM_CORE_SPEC", "core-spec", false},
	{"SLURM_CPU_BIND", "cpu-bind", false},
	{"SLURM_CPU_FREQ_REQ", "cpu-freq", true},
	{"SLURM_CPUS_PER_GPU", "cpus-per-gpu", false},
	{"SRUN_CPUS_PER_TASK", "cpus-per-task", false},
	{"SLURM_CPUS_PER_TASK", "cpus-per-task", false},
	{"SLURM_DEBUG", "verbose", true},
	{"SLURM_DELAY_BOOT", "delay-boot", false},
	{"SLURM_DEPENDENCY", "dependency", false},
	{"SLURM_DISABLE_STATUS", "disable-status", true},
	{"SLURM_DISTRIBUTION", "distribution", true},
	{"SLURM_EPILOG", "epilog", true},
	{"SLURM_EXACT", "exact", true},
	{"SLURM_EXCLUSIVE", "exclusive", true},
	{"SRUN_EXPORT_ENV", "export", true},
	{"SLURM_EXPORT_ENV", "export", true},
	{"SLURM_GPU_BIND", "gpu-bind", true},
	{"SLURM_GPU_FREQ", "gpu-freq", false},
	{"SLURM_GPUS", "gpus", false},
	{"SLURM_GPUS_PER_NODE", "gpus-per-node", false},
	{"SLURM_GPUS_PER_SOCKET", "gpus-per-socket", false},
	{"SLURM_GPUS_PER_TASK", "gpus-per-task", false},
	{"SLURM_GRES", "gres", false},
	{"SLURM_GRES_FLAGS", "gres-flags", false},
	{"SLURM_HINT", "hint", false},
	{"SLURM_IMMEDIATE", "immediate", true},
	{"SLURM_JOB_ID", "jobid", false},
	{"SLURM_JOB_NAME", "job-name", false},
	{"SLURM_KILL_BAD_EXIT", "kill-on-bad-exit", true},
	{"SLURM_LABELIO", "label", true},
	{"SLURM_MEM_BIND", "mem-bind", false},
	{"SLURM_MEM_PER_CPU", "mem-per-cpu", false},
	{"SLURM_MEM_PER_GPU", "mem-per-gpu", false},
	{"SLURM_MEM_PER_NODE", "mem", false},
	{"SLURM_MPI_TYPE", "mpi", true},
	{"SLURM_NETWORK", "network", false},
	{"SLURM_NNODES", "nodes", false},
	{"SLURM_JOB_NUM_NODES", "nodes", false},
	{"SLURM_NO_KILL", "no-kill", false},
	{"SLURM_NTASKS", "ntasks", false},
	{"SLURM_NPROCS", "ntasks", false},
	{"SLURM_NTASKS_PER_CORE", "ntasks-per-core", false},
	{"SLURM_NTASKS_PER_GPU", "ntasks-per-gpu", false},
	{"SLURM_NTASKS_PER_NODE", "ntasks-per-node", false},
	{"SLURM_NTASKS_PER_SOCKET", "ntasks-per-socket", false},
	{"SLURM_OPEN_MODE", "open-mode", true},
	{"SLURM_OVERCOMMIT", "overcommit", true},
	{"SLURM_OVERLAP", "overlap", true},
	{"SLURM_PARTITION", "partition", false},
	{"SLURM_POWER", "power", false},
	{"SLURM_PROFILE", "profile", false},
	{"SLURM_PROLOG", "prolog", true},
	{"SLURM_QOS", "qos", false},
	{"SLURM_REMOTE_CWD", "chdir", true},
	{"SLURM_WORKING_DIR", "chdir", true},
	{"SLURM_REQ_SWITCH", "switches", false},
	{"SLURM_RESERVATION", "reservation", false},
	{"SLURM_RESV_PORTS", "resv-ports", false},
	{"SLURM_SEND_LIBS", "send-libs", true},
	{"SLURM_SIGNAL", "signal", false},
	{"SLURM_SPREAD_JOB", "spread-job", false},
	{"SLURM_STDERRMODE", "error", true},
	{"SLURM_STDINMODE", "input", true},
	{"SLURM_STDOUTMODE", "output", true},
	{"SLURM_TASK_EPILOG", "task-epilog", true},
	{"SLURM_TASK_PROLOG", "task-prolog", true},
	{"SLURM_THREAD_SPEC", "thread-spec", false},
	{"SLURM_THREADS", "threads", true},
	{"SLURM_THREADS_PER_CORE", "threads-per-core", false},
	{"SLURM_TIMELIMIT", "time", true},
	{"SLURM_TRES_BIND", "tres-bind", false},
	{"SLURM_TRES_PER_TASK", "tres-per-task", false},
	{"SLURM_UNBUFFEREDIO", "unbuffered", true},
	{"SLURM_USE_MIN_NODES", "use-min-nodes", false},
	{"SLURM_WAIT", "wait", true},
	{"SLURM_WCKEY", "wckey", false},
	{"SRUN_CONTAINER", "container", false},
	{"PYXIS_CONTAINER_IMAGE", "container-image", true},
	{"PYXIS_CONTAINER_MOUNTS", "container-mounts", true},
	{"PYXIS_CONTAINER_WORKDIR", "container-workdir", true},
	{"PYXIS_CONTAINER_NAME", "container-name", true},
	{"PYXIS_CONTAINER_ENV", "container-env", true},
}

// Setting is an option that a variable asks for.
type Setting struct {
	Option   *Option
	Variable string
	Value    string
	HasValue bool
}

// Settings lists what the variables of an environment ask for, each option once. An option
// without an argument is set by an empty value, "yes" or a number that is not 0, as in
// Slurm; of the others an empty value asks for nothing, unless their argument may be left out.
func Settings(environ []string, inStep bool) []Setting {
	values := make(map[string]string)
	for _, v := range environ {
		name, value, ok := strings.Cut(v, "=")
		if ok && (strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "SRUN_") || strings.HasPrefix(name, "PYXIS_")) {
			values[name] = value
		}
	}
	var out []Setting
	seen := make(map[string]bool)
	for _, v := range variables {
		value, isSet := values[v.Name]
		if !isSet || inStep && !v.InStep || seen[v.Option] {
			continue
		}
		o := ByName(v.Option)
		isFlag := o.Arg == getopt.None || v.Option == "overlap"
		set := Setting{Option: o, Variable: v.Name, Value: value, HasValue: !isFlag && value != ""}
		switch {
		case isFlag && !isYes(value, v.Option == "verbose"):
			continue
		case o.Arg == getopt.Required && value == "":
			continue
		}
		set.Value = joinedValue(&set, values)
		seen[v.Option] = true
		out = append(out, set)
	}
	return out
}

// isYes reports whether a value sets a flag; of one that must be 0 or 1, "" does not.
func isYes(value string, isNumber bool) bool {
	n, err := strconv.Atoi(value)
	return err == nil && n != 0 || !isNumber && (value == "" || value == "yes")
}

// joinedValue adds to a value what a second variable says of it.
func joinedValue(s *Setting, values map[string]string) string {
	switch s.Option.Long {
	case "distribution":
		if size := values["SLURM_DIST_PLANESIZE"]; s.Value == "plane" && size != "" {
			return "plane=" + size
		}
	case "switches":
		if wait := values["SLURM_WAIT4SWITCH"]; wait != "" && !strings.Contains(s.Value, "@") {
			return s.Value + "@" + wait
		}
	case "verbose", "label":
		return ""
	}
	return s.Value
}

// JobOf is the job that --jobid names in srun's arguments, else SLURM_JOB_ID in its
// environment; empty: none.
func JobOf(args, environ []string) (job string) {
	for _, set := range Settings(environ, false) {
		if set.Option.Long == "jobid" {
			job = set.Value
		}
	}
	scan := getopt.New(Table{}, args)
	for {
		it := scan.Next()
		if it.Kind != getopt.Found {
			return job
		}
		if table[it.Index].Name() == "jobid" {
			job = it.Value
		}
	}
}
