package srunopt

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/getopt"
)

// meant lists words of other schedulers and of programs, and what Slurm calls them.
var meant = map[string]string{
	"memory": "mem", "ram": "mem", "vmem": "mem", "mem-per-node": "mem", "memory-per-node": "mem", "mem-limit": "mem",
	"memory-per-cpu": "mem-per-cpu", "mem-per-core": "mem-per-cpu", "pmem": "mem-per-cpu", "mem-per-task": "mem-per-cpu",
	"nnodes": "nodes", "num-nodes": "nodes", "node-count": "nodes", "nodecount": "nodes", "n-nodes": "nodes", "select": "nodes",
	"walltime": "time", "wall-time": "time", "wall": "time", "time-limit": "time", "timelimit": "time", "timeout": "time", "duration": "time", "h-rt": "time", "max-time": "time",
	"queue": "partition", "queue-name": "partition", "part": "partition",
	"procs": "ntasks", "nprocs": "ntasks", "np": "ntasks", "num-procs": "ntasks", "num-tasks": "ntasks", "n-tasks": "ntasks", "tasks": "ntasks", "processes": "ntasks", "num-processes": "ntasks", "ranks": "ntasks",
	"ppn": "ntasks-per-node", "procs-per-node": "ntasks-per-node", "nproc-per-node": "ntasks-per-node", "ranks-per-node": "ntasks-per-node",
	"cpus": "cpus-per-task", "cpu": "cpus-per-task", "ncpus": "cpus-per-task", "num-cpus": "cpus-per-task", "cores": "cpus-per-task", "ncores": "cpus-per-task", "num-cores": "cpus-per-task", "num-threads": "cpus-per-task", "nthreads": "cpus-per-task", "cpu-per-task": "cpus-per-task", "cores-per-task": "cpus-per-task",
	"gpu": "gpus", "ngpus": "gpus", "num-gpus": "gpus", "n-gpus": "gpus", "gpu-count": "gpus", "gpu-type": "gpus", "gpus-type": "gpus", "gpu-per-node": "gpus-per-node", "ngpus-per-node": "gpus-per-node", "gpu-per-task": "gpus-per-task",
	"outfile": "output", "out-file": "output", "stdout": "output", "log": "output", "logfile": "output", "log-file": "output", "output-file": "output",
	"errfile": "error", "err-file": "error", "stderr": "error", "error-file": "error", "errors": "error",
	"stdin": "input", "infile": "input", "input-file": "input",
	"name": "job-name", "project": "account", "project-id": "account", "allocation": "account", "charge": "account", "charge-account": "account",
	"mail": "mail-user", "email": "mail-user", "notify": "mail-type", "mail-events": "mail-type", "mail-when": "mail-type",
	"dependencies": "dependency", "after": "dependency", "afterok": "dependency", "afterany": "dependency", "depends-on": "dependency",
	"feature": "constraint", "features": "constraint", "require": "constraint", "requirements": "constraint",
	"wd": "chdir", "cwd": "chdir", "pwd": "chdir", "workdir": "chdir", "directory": "chdir", "work-dir": "chdir", "working-directory": "chdir",
	"env": "export", "variables": "export", "environment": "export", "job-array": "array", "array-job": "array", "array-tasks": "array",
	"start": "begin", "start-time": "begin", "starttime": "begin", "not-before": "begin", "begin-time": "begin",
	"rerun": "requeue", "restartable": "requeue", "priority-class": "qos",
	"hosts": "nodelist", "hostlist": "nodelist", "host": "nodelist", "hostfile": "nodefile", "exclude-nodes": "exclude",
	"shared": "oversubscribe", "share": "oversubscribe", "license": "licenses", "software": "licenses", "tmpdir": "tmp", "scratch": "tmp", "localscratch": "tmp",
}

// NearestTo is the option that an unknown long option of srun most likely means; empty for
// other mistakes, and where none is near.
func NearestTo(it *getopt.Item) string {
	if it.Kind != getopt.Unknown || it.Letter {
		return ""
	}
	return Meant(it.Name, len(table), Table{}.Option)
}

// Meant is the main name of the option that an unknown long name most likely means in
// sbatch's or srun's table, n options by their index; empty if none is near.
func Meant(name string, n int, option func(index int) getopt.Option) string {
	name = strings.ToLower(name)
	if word := meant[strings.ReplaceAll(name, "_", "-")]; word != "" {
		for i := range n {
			if o := option(i); o.Long == word {
				return o.Canonical()
			}
		}
	}
	return getopt.Nearest(name, n, option)
}
