package sbatch

import "github.com/coxswain-sched/coxswain/model/getopt"

// Status says what becomes of an option.
type Status uint8

// The statuses.
const (
	Honoured Status = iota // it has the effect that it has under sbatch
	OnSome                 // some engines give it its effect; on the others the job runs without it
	NoEffect               // it is taken with a warning: the job runs as well without it
	Refused                // the job would not be what its writer means
)

// String is the status as documentation shows it.
func (s Status) String() string {
	return [...]string{"honoured", "honoured on some engines", "accepted without effect", "refused"}[s]
}

// Option is one option of sbatch.
type Option struct {
	Name    string // long name, without dashes
	Short   byte   // one letter, 0 if there is none
	Arg     getopt.Arg
	Same    string // the option that this is another name of
	Status  Status
	Why     string // of NoEffect and Refused; of OnSome what the other engines do
	Engines string // of OnSome: which engines give it its effect
	Note    string // of Honoured: what differs in small
	Command bool   // it concerns the sbatch command, not the job; see CommandOptions
}

// canonicalName is the name under which the option's value is kept.
func (o *Option) canonicalName() string {
	if o.Same != "" {
		return o.Same
	}
	return o.Name
}

// Reasons and notes that several options share.
const (
	onCommandLine = "on the command line; in a script it has no effect"
	forCommand    = "by the sbatch command"
	mailNote      = "if the site has configured how to send mail"
)

// Table returns a copy of the table of all options that sbatch has.
func Table() []Option { return append([]Option(nil), table...) }

// table is the only place that says what options exist and what becomes of them.
var table = []Option{
	{Name: "account", Short: 'A', Arg: getopt.Required},
	{Name: "acctg-freq", Arg: getopt.Required, Status: NoEffect, Why: "sampling of accounting data is not built yet"},
	{Name: "array", Short: 'a', Arg: getopt.Required},
	{Name: "batch", Arg: getopt.Required, Status: NoEffect, Why: "the batch script always runs on the first node"},
	{Name: "bbf", Arg: getopt.Required, Status: Refused, Why: "there are no burst buffers, and without staging the job would miss its data"},
	{Name: "autocomplete", Arg: getopt.Required, Status: Refused, Command: true, Why: "it belongs to the shell completion of sbatch"},
	{Name: "begin", Short: 'b', Arg: getopt.Required},
	{Name: "bb", Arg: getopt.Required, Status: Refused, Why: "there are no burst buffers, and without staging the job would miss its data"},
	{Name: "consolidate-segments", Status: NoEffect, Why: "no block topology is known"},
	{Name: "cluster-constraint", Arg: getopt.Required, Status: NoEffect, Why: "there is one cluster"},
	{Name: "chdir", Short: 'D', Arg: getopt.Required},
	{Name: "clusters", Short: 'M', Arg: getopt.Required, Status: NoEffect, Command: true, Why: "pools are named on the command line: sbatch -M a,b or cox submit --pool a,b"},
	{Name: "cluster", Arg: getopt.Required, Same: "clusters", Status: NoEffect, Command: true, Why: "pools are named on the command line: sbatch -M a,b or cox submit --pool a,b"},
	{Name: "comment", Arg: getopt.Required},
	{Name: "constraint", Short: 'C', Arg: getopt.Required},
	{Name: "container", Arg: getopt.Required, Status: Refused, Why: "OCI bundles are not built yet, and outside of it the job would be another one"},
	{Name: "container-id", Arg: getopt.Required, Status: Refused, Why: "OCI bundles are not built yet, and outside of it the job would be another one"},
	{Name: "runtime", Arg: getopt.Required, Status: Refused, Why: "OCI bundles are not built yet"},
	{Name: "context", Arg: getopt.Required, Status: NoEffect, Why: "no security context is set"},
	{Name: "contiguous"},
	{Name: "core-spec", Short: 'S', Arg: getopt.Required, Status: NoEffect, Why: "no cores are set aside for the system"},
	{Name: "cores-per-socket", Arg: getopt.Required, Status: NoEffect, Why: "sockets and cores are not chosen one by one"},
	{Name: "cpu-freq", Arg: getopt.Required, Status: NoEffect, Why: "the frequency of CPUs is left alone"},
	{Name: "cpus-per-gpu", Arg: getopt.Required},
	{Name: "cpus-per-task", Short: 'c', Arg: getopt.Required},
	{Name: "deadline", Arg: getopt.Required, Note: "a job that cannot end by then is refused at submission"},
	{Name: "delay-boot", Arg: getopt.Required, Status: NoEffect, Why: "nodes are not powered down"},
	{Name: "dependency", Short: 'd', Arg: getopt.Required, Note: "expand is refused: a job's allocation does not grow"},
	{Name: "distribution", Short: 'm', Arg: getopt.Required},
	{Name: "error", Short: 'e', Arg: getopt.Required},
	{Name: "exclude", Short: 'x', Arg: getopt.Required},
	{Name: "exclusive", Arg: getopt.Optional},
	{Name: "export", Arg: getopt.Required},
	{Name: "export-file", Arg: getopt.Required},
	{Name: "external", Status: Refused, Why: "a job without processes of its own is not built yet"},
	{Name: "extra", Arg: getopt.Required, Status: NoEffect, Why: "nothing reads it"},
	{Name: "extra-node-info", Short: 'B', Arg: getopt.Required, Status: NoEffect, Why: "sockets and cores are not chosen one by one"},
	{Name: "get-user-env", Status: NoEffect, Why: "no login environment is loaded: the job gets the environment of its submission"},
	{Name: "gid", Arg: getopt.Required, Status: Refused, Why: "a job runs as its submitter"},
	{Name: "gpu-bind", Arg: getopt.Required},
	{Name: "tres-bind", Arg: getopt.Required, Status: NoEffect, Why: "every task sees the GPUs of its node or step"},
	{Name: "gpu-freq", Arg: getopt.Required, Status: NoEffect, Why: "the frequency of GPUs is left alone"},
	{Name: "gpus", Short: 'G', Arg: getopt.Required},
	{Name: "gpus-per-node", Arg: getopt.Required},
	{Name: "gpus-per-socket", Arg: getopt.Required},
	{Name: "gpus-per-task", Arg: getopt.Required},
	{Name: "tres-per-task", Arg: getopt.Required},
	{Name: "gres", Arg: getopt.Required},
	{Name: "gres-flags", Arg: getopt.Required, Status: NoEffect, Why: "Coxswain always picks devices by link and NUMA locality"},
	{Name: "help", Short: 'h', Command: true, Note: onCommandLine},
	{Name: "hint", Arg: getopt.Required, Status: NoEffect, Why: "tasks are not bound to cores"},
	{Name: "hold", Short: 'H'},
	{Name: "ignore-pbs", Note: "PBS and LSF lines are never read; with this option, a script that has only such lines is accepted, without what they ask for"},
	{Name: "input", Short: 'i', Arg: getopt.Required},
	{Name: "job-name", Short: 'J', Arg: getopt.Required},
	{Name: "kill-on-invalid-dep", Arg: getopt.Required},
	{Name: "licenses", Short: 'L', Arg: getopt.Required, Note: "NAME:COUNT; of several separated by commas the job gets all, of several separated by | the first that is free"},
	{Name: "mail-type", Arg: getopt.Required, Note: mailNote},
	{Name: "mail-user", Arg: getopt.Required, Note: mailNote},
	{Name: "mcs-label", Arg: getopt.Required, Status: NoEffect, Why: "there are no security labels"},
	{Name: "oom-kill-step", Arg: getopt.Optional, Status: NoEffect, Why: "an out-of-memory kill ends its task"},
	{Name: "mem", Arg: getopt.Required},
	{Name: "mem-bind", Arg: getopt.Required, Status: NoEffect, Why: "memory is not bound to NUMA nodes"},
	{Name: "mem-per-cpu", Arg: getopt.Required},
	{Name: "mem-per-gpu", Arg: getopt.Required},
	{Name: "mem-update", Arg: getopt.Required, Status: NoEffect, Why: "the memory claim does not change while the job runs"},
	{Name: "mincpus", Arg: getopt.Required},
	{Name: "network", Arg: getopt.Required, Status: NoEffect, Why: "there is no switch plugin"},
	{Name: "nice", Arg: getopt.Optional},
	{Name: "no-kill", Short: 'k', Arg: getopt.Optional, Status: NoEffect, Why: "the job ends when it loses a node"},
	{Name: "no-requeue", Note: "without it, the job is requeued after a preemption, a lost node or a failed launch, unless the site's rules have batch: {requeue: off}"},
	{Name: "nodefile", Short: 'F', Arg: getopt.Required},
	{Name: "nodelist", Short: 'w', Arg: getopt.Required},
	{Name: "nodes", Short: 'N', Arg: getopt.Required},
	{Name: "ntasks", Short: 'n', Arg: getopt.Required},
	{Name: "ntasks-per-core", Arg: getopt.Required, Status: NoEffect, Why: "tasks are not bound to cores"},
	{Name: "ntasks-per-node", Arg: getopt.Required},
	{Name: "ntasks-per-socket", Arg: getopt.Required, Status: NoEffect, Why: "tasks are not bound to sockets"},
	{Name: "ntasks-per-tres", Arg: getopt.Required},
	{Name: "ntasks-per-gpu", Arg: getopt.Required},
	{Name: "open-mode", Arg: getopt.Required, Note: "truncate, unless the site's rules have batch: {open_mode: append}; applies to each start, also after a requeue"},
	{Name: "output", Short: 'o', Arg: getopt.Required},
	{Name: "overcommit", Short: 'O'},
	{Name: "oversubscribe", Short: 's', Status: NoEffect, Why: "jobs share nodes unless one of them asks for --exclusive"},
	{Name: "parsable", Command: true, Note: forCommand},
	{Name: "partition", Short: 'p', Arg: getopt.Required},
	{Name: "prefer", Arg: getopt.Required, Status: NoEffect, Why: "soft constraints are not built yet"},
	{Name: "priority", Arg: getopt.Required},
	{Name: "profile", Arg: getopt.Required, Status: NoEffect, Why: "there is no profiling plugin"},
	{Name: "propagate", Arg: getopt.Optional, Note: "ALL, unless it says otherwise: the job has the soft limits (ulimit) of its submitter, up to the hard limits of its node or container"},
	{Name: "qos", Short: 'q', Arg: getopt.Required, Note: "the site's rules (docs/reference/queues.md) give its priority, limits and preemption"},
	{Name: "quiet", Short: 'Q', Command: true, Note: onCommandLine},
	{Name: "reboot", Status: NoEffect, Why: "nodes are not rebooted"},
	{Name: "requeue", Arg: getopt.Optional, Note: "expedite is read as plain --requeue"},
	{Name: "reservation", Arg: getopt.Required, Note: "a reservation of the site's rules (docs/explanation/reservations.md) or of the cluster where the job runs; `cox run` has no rules and places the job as any other"},
	{Name: "resources", Arg: getopt.Required, Status: NoEffect, Why: "resource layouts are not built yet"},
	{Name: "resv-ports", Arg: getopt.Optional, Status: NoEffect, Why: "no ports are reserved"},
	{Name: "segment", Arg: getopt.Required, Note: "a block is a leaf of the topology; without a topology it has no effect"},
	{Name: "signal", Arg: getopt.Required},
	{Name: "sockets-per-node", Arg: getopt.Required, Note: "with --gpus-per-socket; alone it has no effect"},
	{Name: "spread-job", Note: "on as many nodes as there are tasks, in as many leaves of the topology as possible"},
	{Name: "spread-segments", Status: NoEffect, Why: "no block topology is known"},
	{Name: "stepmgr", Status: NoEffect, Why: "the steps of each job always have a manager of their own"},
	{Name: "switches", Arg: getopt.Required, Note: "a switch is a leaf of the topology; without a topology it has no effect"},
	{Name: "tasks-per-node", Arg: getopt.Required, Same: "ntasks-per-node"},
	{Name: "test-only", Command: true, Note: forCommand},
	{Name: "thread-spec", Arg: getopt.Required, Status: NoEffect, Why: "no threads are set aside for the system"},
	{Name: "threads-per-core", Arg: getopt.Required, Status: NoEffect, Why: "sockets and cores are not chosen one by one"},
	{Name: "time", Short: 't', Arg: getopt.Required},
	{Name: "time-min", Arg: getopt.Required, Note: "Coxswain shortens the time limit, never below this, if the job can then start sooner; --deadline must leave this much time"},
	{Name: "tmp", Arg: getopt.Required},
	{Name: "uid", Arg: getopt.Required, Status: Refused, Why: "a job runs as its submitter"},
	{Name: "use-min-nodes"},
	{Name: "usage", Command: true, Note: onCommandLine},
	{Name: "verbose", Short: 'v', Command: true, Note: onCommandLine},
	{Name: "version", Short: 'V', Command: true, Note: onCommandLine},
	{Name: "wait", Short: 'W', Command: true, Note: forCommand},
	{Name: "wait-all-nodes", Arg: getopt.Required, Status: NoEffect, Why: "the script always starts after all nodes of the job are ready"},
	{Name: "wckey", Arg: getopt.Required, Status: NoEffect, Why: "workload keys are not built yet"},
	{Name: "wrap", Arg: getopt.Required, Command: true, Note: onCommandLine},
}
