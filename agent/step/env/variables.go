package env

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/step"
)

// processKind says for whom a variable is set.
type processKind uint8

// The kinds.
const (
	inBatch processKind = 1 << iota
	inTask
)

// variable is one row of the table of the environment, from which docs/reference/environment.md
// is made. A value of "" that is set removes the variable.
type variable struct {
	name     string
	in       processKind // 0: not set, and when says why
	perGroup bool        // also as NAME_HET_GROUP_n for every component of a heterogeneous job
	when     string
	meaning  string
	value    func(*envScope) (string, bool)
}

// always and its like are the words of the column "when".
const (
	always   = "always"
	forArray = "task of an array"
	forHet   = "heterogeneous job"
	noBind   = "not built yet: tasks are not bound to memory"
	noCont   = "not built yet: containers"
)

// optionVariable makes a row for a variable that repeats an option of the submission.
func optionVariable(name, long, meaning string) variable {
	return variable{name: name, in: inBatch, when: "--" + long + " given", meaning: meaning, value: func(s *envScope) (string, bool) { return s.givenOption(long) }}
}

// memoryVariable makes a row for a memory option, in MiB.
func memoryVariable(name, long, meaning string) variable {
	return variable{name: name, in: inBatch, when: "--" + long + " given", meaning: meaning + ", MiB", value: func(s *envScope) (string, bool) {
		text, ok := s.givenOption(long)
		if !ok {
			return "", false
		}
		return formatMegabytes(text)
	}}
}

// groupVariable makes a row for an option that the components of a heterogeneous job have each:
// the first one's as given, the later ones' as number says (0: not asked).
func groupVariable(v variable, number func(*step.AllocGroup) int64) variable {
	first := v.value
	v.perGroup = true
	v.value = func(s *envScope) (string, bool) {
		if s.group == 0 {
			return first(s)
		}
		n := number(s.jobGroup())
		return strconv.FormatInt(n, 10), n > 0
	}
	return v
}

// missingVariable makes a row for a variable that is not set.
func missingVariable(name, why string) variable { return variable{name: name, when: why} }

// arrayVariable makes a row for a variable of array tasks.
func arrayVariable(name, meaning string, value func(*envScope) (string, bool)) variable {
	return variable{name: name, in: inBatch, when: forArray, meaning: meaning, value: func(s *envScope) (string, bool) {
		if s.alloc.Array == nil {
			return "", false
		}
		return value(s)
	}}
}

// variables is the table, by name. It is not written after its initialisation.
var variables = concatTables(jobVariables, nodeVariables, gpuVariables, optionVariables, arrayVariables, stepVariables, missingVariables)

func concatTables(tables ...[]variable) (all []variable) {
	for _, t := range tables {
		all = append(all, t...)
	}
	return all
}

// jobVariables describe the job.
var jobVariables = []variable{
	{"SLURM_JOB_ID", inBatch, true, always, "the job's number; a heterogeneous job has one for all its components", func(s *envScope) (string, bool) { return formatNumber(s.alloc.Job) }},
	{"SLURM_JOBID", inBatch, false, always, "the same, older name", func(s *envScope) (string, bool) { return formatNumber(s.alloc.Job) }},
	{"SLURM_JOB_NAME", inBatch | inTask, true, always, "the job's name; in a step started with srun --job-name, the step's", jobNameOf},
	{"SLURM_JOB_USER", inBatch, false, always, "who owns the job", func(s *envScope) (string, bool) { return s.alloc.Owner.User, true }},
	{"SLURM_JOB_UID", inBatch, false, always, "his number", func(s *envScope) (string, bool) { return formatNumber(s.alloc.Owner.UID) }},
	{"SLURM_JOB_GID", inBatch, false, always, "his group", func(s *envScope) (string, bool) { return formatNumber(s.alloc.Owner.GID) }},
	{"SLURM_JOB_ACCOUNT", inBatch, false, "the job has an account", "who pays", func(s *envScope) (string, bool) { return s.alloc.Account, true }},
	{"SLURM_JOB_QOS", inBatch, false, "the job has a QOS", "quality of service", func(s *envScope) (string, bool) { return s.alloc.QOS, true }},
	{"SLURM_JOB_PARTITION", inBatch, true, always, "the partition that it runs in", func(s *envScope) (string, bool) { return s.alloc.Partition, true }},
	{"SLURM_JOB_RESERVATION", inBatch, false, "--reservation given", "reservation", func(s *envScope) (string, bool) { return s.alloc.Reservation, true }},
	{"SLURM_JOB_LICENSES", inBatch, false, "--licenses given", "licences", func(s *envScope) (string, bool) { return s.alloc.Licenses, true }},
	{"SLURM_JOB_START_TIME", inBatch, false, always, "when it started, seconds since 1970", func(s *envScope) (string, bool) { return formatNumber(s.alloc.Started.Unix()) }},
	{"SLURM_JOB_END_TIME", inBatch, false, "it has a time limit", "when the limit ends it, seconds since 1970", jobEnd},
	{"SLURM_RESTART_COUNT", inBatch, false, "it was requeued", "how often", restartCount},
	{"COX_GANG_FILE", inBatch | inTask, false, "elastic job", "file that says who is in the gang now ([gangs.md](../explanation/gangs.md))", func(s *envScope) (string, bool) { return s.alloc.Gang, s.alloc.Gang != "" }},
	{"COX_GANG_RANK", inTask, false, "elastic job", "the task's rank in the gang; ranks of what was added come after the others, and none is given twice", gangRank},
	{"COX_CHECKPOINT_DIR", inBatch, false, "always, by the embedded engine; in pools of Kubernetes that have checkpoints", "directory for what the job saves, the same over its attempts ([checkpoint.md](../explanation/checkpoint.md))", func(s *envScope) (string, bool) { return s.alloc.Checkpoint, true }},
	{"COX_RESTORE_FROM", inBatch, false, "an earlier attempt has reported a checkpoint", "what it was: that directory, or what is named in it", func(s *envScope) (string, bool) { return s.alloc.Restore, true }},
	{"SLURM_CLUSTER_NAME", inBatch, false, always, "name of the control plane", func(s *envScope) (string, bool) { return s.alloc.Cluster, true }},
	{"SLURM_SUBMIT_DIR", inBatch, false, always, "directory it was submitted from", func(s *envScope) (string, bool) { return s.alloc.SubmitDir, true }},
	{"SLURM_SUBMIT_HOST", inBatch, false, always, "host it was submitted on", func(s *envScope) (string, bool) { return s.alloc.SubmitHost, true }},
	{"SLURM_EXPORT_ENV", inBatch, false, "--export given, but ALL", "as given; srun takes it for its own --export", func(*envScope) (string, bool) { return "", false }},
	{"SLURM_HET_SIZE", inBatch, false, forHet, "number of components", hetSize},
}

// nodeVariables describe nodes, tasks and CPUs.
var nodeVariables = []variable{
	{"SLURM_JOB_NODELIST", inBatch | inTask, true, always, "the job's nodes, by rank; of a heterogeneous job, those of the first component, in a step those of the step's components", func(s *envScope) (string, bool) { return formatNodes(s.jobNodes()) }},
	{"SLURM_NODELIST", inBatch | inTask, false, always, "the same, older name", func(s *envScope) (string, bool) { return formatNodes(s.jobNodes()) }},
	{"SLURM_JOB_NUM_NODES", inBatch | inTask, true, always, "how many these are", func(s *envScope) (string, bool) { return formatNumber(len(s.jobNodes())) }},
	{"SLURM_NNODES", inBatch | inTask, false, always, "the same, older name; in a step, the step's nodes", nodeCount},
	{"SLURM_JOB_CPUS_PER_NODE", inBatch | inTask, true, always, "the job's CPUs on each node: 72(x2),36", jobCPUs},
	{"SLURM_CPUS_ON_NODE", inBatch | inTask, false, always, "the job's CPUs on this node; in a step, the step's", cpusOnNode},
	{"SLURM_TASKS_PER_NODE", inBatch | inTask, true, always, "tasks on each node: 2(x3),1; in a step, the step's", func(s *envScope) (string, bool) { return formatCounts(s.tasksPerNode()) }},
	{"SLURM_NTASKS", inBatch | inTask, true, "the number of tasks was asked for; always in a step", "number of tasks", taskCount},
	{"SLURM_NPROCS", inBatch | inTask, true, "as SLURM_NTASKS", "the same, older name", taskCount},
	{"SLURM_NTASKS_PER_NODE", inBatch | inTask, true, "--ntasks-per-node given", "tasks on each node", perNode},
	{"SLURM_CPUS_PER_TASK", inBatch | inTask, true, "--cpus-per-task given", "CPUs of each task", perTaskCPUs},
	{"SLURM_NODEID", inBatch | inTask, false, always, "this node's number in the step; 0 in the batch script", func(s *envScope) (string, bool) { return formatNumber(s.part) }},
	{"SLURM_PROCID", inBatch | inTask, false, always, "the task's rank; 0 in the batch script", func(s *envScope) (string, bool) { return ifTask(s, s.taskRank) }},
	{"SLURM_LOCALID", inBatch | inTask, false, always, "the task's number on its node; 0 in the batch script", func(s *envScope) (string, bool) { return formatNumber(s.local) }},
	{"SLURM_GTIDS", inBatch | inTask, false, always, "ranks of the step's tasks on this node", globalTaskIDs},
	{"SLURM_TASK_PID", inBatch | inTask, false, always, "process number of the script or task", func(*envScope) (string, bool) { return "", true }},
	{"SLURMD_NODENAME", inBatch | inTask, false, always, "this node", func(s *envScope) (string, bool) { return s.alloc.Nodes[s.node].Name, true }},
	{"SLURM_TOPOLOGY_ADDR", inBatch | inTask, false, always, "where this node is, from the top of the topology down", topologyAddress},
	{"SLURM_TOPOLOGY_ADDR_PATTERN", inBatch | inTask, false, always, "what the parts of that name are", topologyPattern},
	{"SLURM_PRIO_PROCESS", inBatch, false, always, "0: the scheduling priority is not carried over", func(*envScope) (string, bool) { return "0", true }},
	{"SLURM_UMASK", inTask, false, always, "srun's file creation mask", func(s *envScope) (string, bool) { return fmt.Sprintf("%04o", s.prep.Umask), true }},
}

// gpuVariables describe devices. The variables that programs read to find their
// GPUs are the business of package deviceenv.
var gpuVariables = []variable{
	{"SLURM_JOB_GPUS", inBatch, false, "the job has GPUs on the first node", "their numbers; inherited by steps", func(s *envScope) (string, bool) { return formatIndices(s.partHere().Devices) }},
	{"SLURM_STEP_GPUS", inTask, false, "the step has GPUs on this node", "their numbers", func(s *envScope) (string, bool) { return formatIndices(s.nodeDevices()) }},
	{"SLURM_GPUS_ON_NODE", inBatch | inTask, false, "the job, or the step, has GPUs on this node", "how many", gpusOnNode},
	{name: "CUDA_VISIBLE_DEVICES", in: inBatch | inTask, when: "the job has NVIDIA or declared GPUs here, or must not see those there are", meaning: "devices that the script or task may use, by the driver's numbers"},
	{name: "COX_GPU_MEMORY", in: inBatch | inTask, when: "the job has parts of GPUs by memory here", meaning: "how much of each is its own, MiB, in the order of CUDA_VISIBLE_DEVICES: 20480,20480"},
	{name: "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", in: inBatch | inTask, when: "the job has parts of NVIDIA GPUs by memory here", meaning: "the same as CUDA's multi-process service reads it: 0=20480M"},
	{name: "CUDA_DEVICE_ORDER", in: inBatch | inTask, when: "the job has NVIDIA GPUs here", meaning: "PCI_BUS_ID: the numbers are the driver's"},
	{name: "ROCR_VISIBLE_DEVICES", in: inBatch | inTask, when: "the job has AMD or declared GPUs here, or must not see those there are", meaning: "as CUDA_VISIBLE_DEVICES"},
	{name: "HIP_VISIBLE_DEVICES", in: inBatch | inTask, when: "AMD GPUs, where ROCR_VISIBLE_DEVICES alone does not do", meaning: "numbers among those that ROCR_VISIBLE_DEVICES leaves"},
	{name: "GPU_DEVICE_ORDINAL", in: inBatch | inTask, when: "the job has GPUs here", meaning: "the same for OpenCL"},
}

// optionVariables repeat what the submission asked for.
var optionVariables = []variable{
	groupVariable(memoryVariable("SLURM_MEM_PER_NODE", "mem", "memory on each node"), func(g *step.AllocGroup) int64 { return g.MemoryMB }),
	memoryVariable("SLURM_MEM_PER_CPU", "mem-per-cpu", "memory for each CPU"),
	memoryVariable("SLURM_MEM_PER_GPU", "mem-per-gpu", "memory for each GPU"),
	optionVariable("SLURM_GPUS", "gpus", "GPUs of the job"),
	groupVariable(optionVariable("SLURM_GPUS_PER_NODE", "gpus-per-node", "GPUs on each node"), func(g *step.AllocGroup) int64 { return int64(g.GPUsPerNode) }),
	optionVariable("SLURM_GPUS_PER_SOCKET", "gpus-per-socket", "GPUs on each socket"),
	optionVariable("SLURM_GPUS_PER_TASK", "gpus-per-task", "GPUs of each task"),
	optionVariable("SLURM_CPUS_PER_GPU", "cpus-per-gpu", "CPUs for each GPU"),
	optionVariable("SLURM_GPU_BIND", "gpu-bind", "how tasks are bound to GPUs"),
	optionVariable("SLURM_GPU_FREQ", "gpu-freq", "as given; frequencies are not changed"),
	optionVariable("SLURM_NTASKS_PER_CORE", "ntasks-per-core", "tasks on each core"),
	optionVariable("SLURM_NTASKS_PER_GPU", "ntasks-per-gpu", "tasks for each GPU"),
	optionVariable("SLURM_NTASKS_PER_SOCKET", "ntasks-per-socket", "tasks on each socket"),
	optionVariable("SLURM_THREADS_PER_CORE", "threads-per-core", "as given"),
	optionVariable("SLURM_TRES_PER_TASK", "tres-per-task", "as given"),
	optionVariable("SLURM_PROFILE", "profile", "as given; nothing is profiled"),
	optionVariable("SLURM_NETWORK", "network", "as given"),
	optionVariable("SLURM_HINT", "hint", "as given"),
	optionVariable("SLURM_JOB_DEPENDENCY", "dependency", "as given"),
	optionVariable("SLURM_JOB_SEGMENT_SIZE", "segment", "as given"),
	{"SLURM_OVERCOMMIT", inBatch, false, "--overcommit given", "1", isOvercommit},
	{"SLURM_DISTRIBUTION", inBatch | inTask, false, "--distribution given; always in a step", "how ranks are dealt to nodes: block, cyclic, plane", distributionOf},
	{"SLURM_DIST_PLANESIZE", inBatch | inTask, false, "--distribution=plane given", "ranks of a plane", planeSize},
}

// arrayVariables describe an array and the task's place in it.
var arrayVariables = []variable{
	arrayVariable("SLURM_ARRAY_JOB_ID", "number of the array", func(s *envScope) (string, bool) { return formatNumber(s.alloc.Array.Job) }),
	arrayVariable("SLURM_ARRAY_TASK_ID", "this task's index", func(s *envScope) (string, bool) { return formatNumber(s.alloc.Array.Index) }),
	arrayVariable("SLURM_ARRAY_TASK_COUNT", "number of tasks of the array", func(s *envScope) (string, bool) { return formatNumber(s.alloc.Array.Count) }),
	arrayVariable("SLURM_ARRAY_TASK_MIN", "smallest index", func(s *envScope) (string, bool) { return formatNumber(s.alloc.Array.Min) }),
	arrayVariable("SLURM_ARRAY_TASK_MAX", "largest index", func(s *envScope) (string, bool) { return formatNumber(s.alloc.Array.Max) }),
	arrayVariable("SLURM_ARRAY_TASK_STEP", "step between indices", func(s *envScope) (string, bool) { return formatNumber(max(s.alloc.Array.Step, 1)) }),
}

// stepVariables describe a step.
var stepVariables = []variable{
	{"SLURM_STEP_ID", inTask, false, always, "number of the step", func(s *envScope) (string, bool) { return formatNumber(s.info.Step) }},
	{"SLURM_STEPID", inTask, false, always, "the same, older name", func(s *envScope) (string, bool) { return formatNumber(s.info.Step) }},
	{"SLURM_STEP_NODELIST", inTask, false, always, "the step's nodes, by rank", func(s *envScope) (string, bool) { return formatNodes(s.stepNodes()) }},
	{"SLURM_STEP_NUM_NODES", inTask, false, always, "how many these are", func(s *envScope) (string, bool) { return formatNumber(len(s.stepNodes())) }},
	{"SLURM_STEP_NUM_TASKS", inTask, false, always, "the step's tasks", func(s *envScope) (string, bool) { return formatNumber(s.info.Tasks) }},
	{"SLURM_STEP_TASKS_PER_NODE", inTask, false, always, "tasks on each node", func(s *envScope) (string, bool) { return formatCounts(s.tasksPerNode()) }},
	{"SLURM_LAUNCH_NODE_IPADDR", inTask, false, always, "address of the node that srun runs on", func(s *envScope) (string, bool) { return s.prep.Srun.Address, true }},
	{"SLURM_SRUN_COMM_HOST", inTask, false, always, "the same", func(s *envScope) (string, bool) { return s.prep.Srun.Address, true }},
}

// missingVariables are Slurm's, and not set.
var missingVariables = []variable{
	missingVariable("SLURM_SRUN_COMM_PORT", "srun and the nodes speak over unix sockets; nothing listens on a port"),
	missingVariable("SBATCH_MEM_BIND", noBind),
	missingVariable("SBATCH_MEM_BIND_LIST", noBind),
	missingVariable("SBATCH_MEM_BIND_PREFER", noBind),
	missingVariable("SBATCH_MEM_BIND_TYPE", noBind),
	missingVariable("SBATCH_MEM_BIND_VERBOSE", noBind),
	missingVariable("SLURM_CONTAINER", noCont),
	missingVariable("SLURM_CONTAINER_ID", noCont),
	missingVariable("SLURM_RUNTIME", noCont),
	missingVariable("SLURM_OOMKILLSTEP", "not built yet: an out-of-memory kill ends the process, not the step"),
	missingVariable("SLURM_SHARDS_ON_NODE", "not built yet: shares of GPUs are not counted as shards"),
}

func jobNameOf(s *envScope) (string, bool) {
	if s.info != nil {
		return s.info.Name, s.info.Name != ""
	}
	return s.alloc.Name, true
}

func jobEnd(s *envScope) (string, bool) {
	if s.alloc.End().IsZero() {
		return "", false
	}
	return formatNumber(s.alloc.End().Unix())
}

func restartCount(s *envScope) (string, bool) {
	if s.alloc.Attempt < 2 {
		return "", false
	}
	return formatNumber(s.alloc.Attempt - 1)
}

func hetSize(s *envScope) (string, bool) {
	if !s.alloc.Het() {
		return "", false
	}
	return formatNumber(len(s.alloc.Groups))
}

func nodeCount(s *envScope) (string, bool) {
	if s.info != nil {
		return formatNumber(len(s.stepNodes()))
	}
	return formatNumber(len(s.jobNodes()))
}

func jobCPUs(s *envScope) (string, bool) {
	var n []int
	for _, p := range s.jobParts() {
		n = append(n, p.CPUs)
	}
	return formatCounts(n)
}

func cpusOnNode(s *envScope) (string, bool) {
	if s.info != nil {
		return formatNumber(s.info.Parts[s.part].CPUs)
	}
	return formatNumber(s.partHere().CPUs)
}

func taskCount(s *envScope) (string, bool) {
	if s.info == nil && !s.tasksAsked() {
		return "", false
	}
	return formatNumber(s.taskCount())
}

func perNode(s *envScope) (string, bool) {
	n := s.jobGroup().TasksPerNode
	if s.info != nil {
		n = s.stepComponent().TasksPerNode
	}
	if n == 0 {
		return "", false
	}
	return formatNumber(n)
}

func perTaskCPUs(s *envScope) (string, bool) {
	n := s.jobGroup().CPUsPerTask
	if s.info != nil {
		n = s.stepComponent().CPUsPerTask
	}
	if n == 0 {
		return "", false
	}
	return formatNumber(n)
}

func ifTask(s *envScope, value func() int) (string, bool) {
	if s.info == nil {
		return "0", true
	}
	return formatNumber(value())
}

func globalTaskIDs(s *envScope) (string, bool) {
	if s.info == nil {
		return "0", true
	}
	return step.FormatInts(s.info.Parts[s.part].Ranks), true
}

func topologyAddress(s *envScope) (string, bool) {
	n := s.alloc.Nodes[s.node]
	if n.Path == "" {
		return n.Name, true
	}
	return n.Path + "." + n.Name, true
}

func topologyPattern(s *envScope) (string, bool) {
	path := s.alloc.Nodes[s.node].Path
	if path == "" {
		return "node", true
	}
	return strings.Repeat("switch.", strings.Count(path, ".")+1) + "node", true
}

func gpusOnNode(s *envScope) (string, bool) {
	if n := len(s.nodeDevices()); n > 0 {
		return formatNumber(n)
	}
	return "", true
}

func isOvercommit(s *envScope) (string, bool) { return "1", s.jobGroup().Overcommit }

func distributionOf(s *envScope) (string, bool) {
	text := s.jobGroup().Distribution
	if s.info != nil {
		text = s.stepComponent().Distribution
		if text == "" && s.info.Tasks > len(s.info.Parts) {
			text = "block"
		}
		if text == "" {
			text = "cyclic"
		}
	}
	word, _, _ := strings.Cut(text, "=")
	return word, word != ""
}

func planeSize(s *envScope) (string, bool) {
	text := s.jobGroup().Distribution
	if s.info != nil {
		text = s.stepComponent().Distribution
	}
	size, ok := strings.CutPrefix(text, "plane=")
	return size, ok
}

func gangRank(s *envScope) (string, bool) {
	if s.alloc.Gang == "" {
		return "", false
	}
	return formatNumber(s.alloc.FirstRank + s.taskRank())
}
