package env

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/place"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/job"
)

// slurm reads an environment that a real Slurm made (22.05.8).
func slurm(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "slurm-22.05", name))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		out[name] = value
	}
	return out
}

// newer are variables that Slurm came to set after the version that was recorded,
// and those that differ by intent.
var newer = []string{
	"SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME", // Slurm 23.02
	"ZE_AFFINITY_MASK",         // Intel's GPUs are not found
	"SLURM_JOB_ID_HET_GROUP_1", // a heterogeneous job has one number
	"SLURM_LABELIO",            // srun's own option
	"SLURM_CPUS_PER_TASK",      // a task's, inherited: see compare
}

// compare compares what concerns Slurm.
func compare(t *testing.T, got []string, want map[string]string) {
	t.Helper()
	have := make(map[string]string)
	for _, v := range got {
		name, value, _ := strings.Cut(v, "=")
		if _, twice := have[name]; twice {
			t.Errorf("%s is set twice", name)
		}
		have[name] = value
		if _, ok := want[name]; !ok && (strings.HasPrefix(name, "SLURM") || strings.HasPrefix(name, "CUDA")) && !slices.Contains(newer, name) {
			t.Errorf("%s=%s: Slurm does not set it", name, value)
		}
	}
	for name, value := range want {
		if !slices.Contains(newer, name) && have[name] != value {
			t.Errorf("%s=%s, Slurm has %s", name, have[name], value)
		}
	}
}

func annaHet() *step.Alloc {
	a := steptest.Anna(steptest.Uniform(2, 1, 1, 0))
	a.Job = 6
	a.Given["ntasks"] = "1"
	second := a.Groups[0].Parts[1]
	second.Tasks, second.CPUs = 2, 4
	a.Groups[0].Parts, a.Groups[0].Tasks = a.Groups[0].Parts[:1], 1
	a.Groups = append(a.Groups, step.AllocGroup{Tasks: 2, CPUsPerTask: 2, Parts: []step.Part{second}})
	return a
}

// task is the environment of one task of a step, started from the batch script.
func taskOf(t *testing.T, a *step.Alloc, step, rank int, asks ...wire.ComponentRequest) []string {
	t.Helper()
	info, _, err := place.NewAllocator(a).Create(wire.Request{Components: asks})
	if err != nil {
		t.Fatal(err)
	}
	info.Step = step
	prep := &wire.Preparation{Info: *info, Env: Batch(a, nil, 0), Umask: 0o22, Srun: wire.Origin{Address: "127.0.0.1"}, Programs: make([]wire.Program, len(asks))}
	for i, p := range info.Parts {
		if local := slices.Index(p.Ranks, rank); local >= 0 {
			return Task(a, prep, i, local, nil)
		}
	}
	t.Fatalf("no rank %d", rank)
	return nil
}

func TestEnvironmentIsSlurms(t *testing.T) {
	train := steptest.WithOptions(steptest.Anna(steptest.Uniform(4, 2, 2, 2)), "ntasks-per-node=2", "gpus-per-node=2", "cpus-per-task=1", "time=5")
	t.Run("batch", func(t *testing.T) { compare(t, Batch(train, nil, 0), slurm(t, "batch.txt")) })
	t.Run("task", func(t *testing.T) {
		compare(t, taskOf(t, train, 0, 3, wire.ComponentRequest{Tasks: 8, TasksPerNode: 2, NodesMin: 4}), slurm(t, "task3.txt"))
	})
	t.Run("one task", func(t *testing.T) {
		compare(t, taskOf(t, train, 1, 0, wire.ComponentRequest{Tasks: 1, NodesMin: 1}), slurm(t, "one.txt"))
	})
	t.Run("het batch", func(t *testing.T) { compare(t, Batch(annaHet(), nil, 0), slurm(t, "het-batch.txt")) })
	t.Run("het task", func(t *testing.T) {
		compare(t, taskOf(t, annaHet(), 1, 2, wire.ComponentRequest{Group: 0, Tasks: 1, NodesMin: 1}, wire.ComponentRequest{Group: 1, Tasks: 2, NodesMin: 1}), slurm(t, "het-task2.txt"))
	})
	t.Run("het task of one group", func(t *testing.T) {
		compare(t, taskOf(t, annaHet(), 2, 1, wire.ComponentRequest{Group: 1, Tasks: 2, NodesMin: 1}), slurm(t, "het-group1-task1.txt"))
	})
	t.Run("array", func(t *testing.T) {
		a := steptest.WithOptions(steptest.Anna(steptest.Uniform(1, 3, 3, 0)), "ntasks=3", "export=FOO=1")
		a.Job, a.Name, a.Export = 10, "arr", "FOO=1"
		a.Array = &job.ArrayTask{Job: 8, Index: 5, Count: 3, Min: 3, Max: 7, Step: 2, MaxRunning: 1}
		compare(t, Batch(a, nil, 0), slurm(t, "array-batch.txt"))
	})
	t.Run("memory", func(t *testing.T) {
		a := steptest.WithOptions(steptest.Anna(steptest.Uniform(1, 1, 1, 0)), "mem=200", "export=NONE")
		a.Job, a.Name, a.Export = 11, "wrap", "NONE"
		compare(t, Batch(a, nil, 0), slurm(t, "mem-batch.txt"))
	})
}

func TestBatchExport(t *testing.T) {
	base := []string{"FOO=1", "BAR=2", "PATH=/opt/bin", "HOME=/h", "SLURM_CONF=/etc/slurm.conf", "SLURM_ARRAY_TASK_ID=7", "SLURM_NTASKS_HET_GROUP_1=2", "SLURM_PROCID=3", "PMI_FD=5", "COX_ALLOC=/other"}
	for export, want := range map[string]string{
		"":              "BAR=2 FOO=1 HOME=/h PATH=/b:/opt/bin",
		"ALL":           "BAR=2 FOO=1 HOME=/h PATH=/b:/opt/bin",
		"ALL,NEW=4":     "BAR=2 FOO=1 HOME=/h NEW=4 PATH=/b:/opt/bin",
		"FOO,NEW=4,NO":  "FOO=1 NEW=4 PATH=/b:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"NONE":          "PATH=/b:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"NIL":           "PATH=/b:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"PATH,A=1=2,B=": "A=1=2 B= PATH=/b:/opt/bin",
	} {
		a := steptest.Uniform(1, 1, 1, 0)
		a.Owner.UID = 4294967294 // nobody has it: nothing is known of a home
		a.Bin, a.Dir, a.Export = "/b", "/d", export
		a.Set, a.Ports = []string{"LAST=x", "PORT=7"}, []string{"PORT=8"}
		var got []string
		for _, v := range Batch(a, base, 0) {
			name, value, _ := strings.Cut(v, "=")
			switch name {
			case "USER", "LOGNAME", "SHELL", "TMPDIR", "HOSTNAME", "ENVIRONMENT":
				continue
			case "SLURM_ARRAY_TASK_ID", "SLURM_NTASKS_HET_GROUP_1", "PMI_FD":
				t.Errorf("--export=%s lets %s of an outer job through", export, name)
			case "SLURM_CONF":
				continue
			case "PORT":
				if value != "8" {
					t.Errorf("PORT=%s", value)
				}
				continue
			case "LAST":
				if value != "x" {
					t.Errorf("LAST=%s", value)
				}
				continue
			case step.AllocVariable:
				if value != "/d/alloc.json" {
					t.Errorf("%s", v)
				}
				continue
			}
			if strings.HasPrefix(name, "SLURM") {
				continue
			}
			got = append(got, v)
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != want {
			t.Errorf("--export=%s: %s\nwant %s", export, s, want)
		}
	}
}

func TestRestartCountOnlyAfterARequeue(t *testing.T) {
	a := steptest.Uniform(1, 1, 1, 0)
	for attempt, want := range map[uint32]string{1: "", 2: "SLURM_RESTART_COUNT=1", 5: "SLURM_RESTART_COUNT=4"} {
		a.Attempt = attempt
		got := ""
		for _, v := range Batch(a, nil, 0) {
			if strings.HasPrefix(v, "SLURM_RESTART_COUNT") {
				got = v
			}
		}
		if got != want {
			t.Errorf("attempt %d: %q, want %q", attempt, got, want)
		}
	}
}

// appendixC lists the variables that Slurm's manual names as set for the batch
// script, and those that srun adds for tasks.
const appendixC = `SBATCH_MEM_BIND SBATCH_MEM_BIND_LIST SBATCH_MEM_BIND_PREFER SBATCH_MEM_BIND_TYPE SBATCH_MEM_BIND_VERBOSE
SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_STEP
SLURM_CLUSTER_NAME SLURM_CPUS_ON_NODE SLURM_CPUS_PER_GPU SLURM_CPUS_PER_TASK SLURM_CONTAINER SLURM_CONTAINER_ID SLURM_DIST_PLANESIZE
SLURM_DISTRIBUTION SLURM_EXPORT_ENV SLURM_GPU_BIND SLURM_GPU_FREQ SLURM_GPUS SLURM_GPUS_ON_NODE SLURM_GPUS_PER_NODE SLURM_GPUS_PER_SOCKET
SLURM_GTIDS SLURM_HET_SIZE SLURM_JOB_ACCOUNT SLURM_JOB_CPUS_PER_NODE SLURM_JOB_DEPENDENCY SLURM_JOB_END_TIME SLURM_JOB_GPUS SLURM_JOB_ID
SLURM_JOB_LICENSES SLURM_JOB_NAME SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES SLURM_JOB_PARTITION SLURM_JOB_QOS SLURM_JOB_RESERVATION
SLURM_JOB_SEGMENT_SIZE SLURM_JOB_START_TIME SLURM_JOBID SLURM_LOCALID SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE SLURM_NETWORK
SLURM_NNODES SLURM_NODEID SLURM_NODELIST SLURM_NPROCS SLURM_NTASKS SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_NODE
SLURM_NTASKS_PER_SOCKET SLURM_OOMKILLSTEP SLURM_OVERCOMMIT SLURM_PRIO_PROCESS SLURM_PROCID SLURM_PROFILE SLURM_RESTART_COUNT SLURM_RUNTIME
SLURM_SHARDS_ON_NODE SLURM_SUBMIT_DIR SLURM_SUBMIT_HOST SLURM_TASK_PID SLURM_TASKS_PER_NODE SLURM_THREADS_PER_CORE SLURM_TOPOLOGY_ADDR
SLURM_TOPOLOGY_ADDR_PATTERN SLURM_TRES_PER_TASK SLURMD_NODENAME
SLURM_STEP_ID SLURM_STEP_NODELIST SLURM_STEP_NUM_TASKS SLURM_STEP_TASKS_PER_NODE SLURM_LAUNCH_NODE_IPADDR SLURM_SRUN_COMM_HOST
SLURM_SRUN_COMM_PORT CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GPU_DEVICE_ORDINAL`

func TestEveryVariableOfSlurmHasARow(t *testing.T) {
	rows := make(map[string]int)
	for _, v := range variables {
		rows[v.name]++
		if v.when == "" || v.in != 0 && v.meaning == "" {
			t.Errorf("%s: its row does not say when or what", v.name)
		}
	}
	for _, name := range strings.Fields(appendixC) {
		if rows[name] != 1 {
			t.Errorf("%s has %d rows", name, rows[name])
		}
	}
}

// TestConditionalVariables gives every option that makes a variable, and none.
func TestConditionalVariables(t *testing.T) {
	full := steptest.WithOptions(steptest.Anna(steptest.Uniform(2, 2, 4, 2)), "ntasks-per-node=2", "cpus-per-task=2")
	full.Account, full.QOS, full.Reservation, full.Licenses, full.Attempt = "team", "high", "r", "matlab:1", 3
	full.Gang = "/g/7.1.json"
	full.Checkpoint, full.Restore = "/c/7", "/c/7/step-1"
	full.Groups[0].Overcommit, full.Groups[0].Distribution = true, "plane=2"
	full.Array = &job.ArrayTask{Job: 1, Index: 2, Count: 3, Min: 1, Max: 3, Step: 1}
	full.Export = "ALL,A=1"
	for _, option := range []string{"mem", "mem-per-cpu", "mem-per-gpu", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "cpus-per-gpu", "gpu-bind", "gpu-freq", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-socket", "threads-per-core", "tres-per-task", "profile", "network", "hint", "dependency", "segment"} {
		full.Given[option] = "2"
	}
	names := func(env []string) map[string]bool {
		out := make(map[string]bool)
		for _, v := range env {
			name, _, _ := strings.Cut(v, "=")
			out[name] = true
		}
		return out
	}
	with, without := names(Batch(full, nil, 0)), names(Batch(steptest.Uniform(1, 1, 1, 0), nil, 0))
	for _, v := range variables {
		switch {
		case v.in&inBatch == 0 || v.name == "SLURM_HET_SIZE" || v.name == "SLURM_TASK_PID" || v.name == "CUDA_DEVICE_ORDER" || v.name == "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" || v.name == "COX_GPU_MEMORY" || v.name == "HIP_VISIBLE_DEVICES":
		case !with[v.name]:
			t.Errorf("%s is not set although %s", v.name, v.when)
		case v.when == always && !without[v.name] && v.name != "SLURM_SUBMIT_DIR" && v.name != "SLURM_SUBMIT_HOST":
			t.Errorf("%s is not always set", v.name)
		case v.when != always && without[v.name]:
			t.Errorf("%s is set although not: %s", v.name, v.when)
		}
	}
}

// TestTaskEnvironmentsAgree walks random steps: ranks are 0 to n-1, each once, and
// what tasks are told of each other is the same for all.
func TestTaskEnvironmentsAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := steptest.Uniform(rapid.IntRange(1, 5).Draw(r, "nodes"), rapid.IntRange(1, 3).Draw(r, "tasks"), rapid.IntRange(1, 8).Draw(r, "cpus"), rapid.IntRange(0, 3).Draw(r, "gpus"))
		q := steptest.RandomRequest(r, a)
		info, _, err := place.NewAllocator(a).Create(wire.Request{Components: []wire.ComponentRequest{q}})
		if err != nil {
			return
		}
		prep := &wire.Preparation{Info: *info, Env: Batch(a, nil, 0), Programs: make([]wire.Program, 1)}
		ranks := make(map[string]bool)
		for i, p := range info.Parts {
			for local := range p.Ranks {
				env := newEnviron(Task(a, prep, i, local, nil))
				ranks[env.get("SLURM_PROCID")] = true
				for name, want := range map[string]string{
					"SLURM_NTASKS": fmt.Sprint(info.Tasks), "SLURM_NODEID": fmt.Sprint(i), "SLURM_LOCALID": fmt.Sprint(local),
					"SLURM_GTIDS": step.FormatInts(p.Ranks), "SLURMD_NODENAME": a.Nodes[p.Node].Name,
				} {
					if env.get(name) != want {
						r.Fatalf("%s=%s, want %s", name, env.get(name), want)
					}
				}
			}
		}
		if len(ranks) != info.Tasks {
			r.Fatalf("%d ranks for %d tasks", len(ranks), info.Tasks)
		}
	})
}

func TestEnvironmentDocument(t *testing.T) {
	steptest.Document(t, "environment.md", environmentDocument())
}

// environmentDocument is docs/reference/environment.md.
func environmentDocument() string {
	var b strings.Builder
	b.WriteString(environmentIntroduction)
	rows := slices.Clone(variables)
	slices.SortFunc(rows, func(x, y variable) int { return strings.Compare(x.name, y.name) })
	b.WriteString("| variable | script | task | when | what |\n|---|---|---|---|---|\n")
	yes := map[bool]string{true: "yes"}
	for _, v := range rows {
		if v.in != 0 {
			name := "`" + v.name + "`"
			if v.perGroup {
				name += " †"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, yes[v.in&inBatch != 0], yes[v.in&inTask != 0], v.when, v.meaning)
		}
	}
	b.WriteString("\n## Not set\n\n| variable | why |\n|---|---|\n")
	for _, v := range rows {
		if v.in == 0 {
			fmt.Fprintf(&b, "| `%s` | %s |\n", v.name, v.when)
		}
	}
	return b.String()
}

const environmentIntroduction = `# The environment of a job

The variables that a job finds. Names and formats are Slurm's, compared with environments of Slurm 22.05. A test makes this page
from the table in ` + "`agent/step/env/variables.go`" + `.

- *script*: set for the batch script; tasks inherit it through srun. *task*: set by srun for every task of a step, with the
  step's own value.
- †: a heterogeneous job also has it as ` + "`NAME_HET_GROUP_n`" + ` for each component. Without ` + "`--het-group`" + ` the plain names
  describe the first component. The components share one job number.
- Hosts are in rank order: the first of ` + "`scontrol show hostnames`" + ` is the node of rank 0 and of the script.
- ` + "`HOSTNAME`" + ` is the node's name. ` + "`ENVIRONMENT`" + ` is BATCH, as in Slurm. ` + "`TMPDIR`" + ` stays as it is, else it is /tmp. ` + "`PATH`" + ` begins with the
  directory of srun and scontrol. ` + "`COX_ALLOC`" + ` names the file that describes the allocation.
- ` + "`--export`" + `: ALL (default) passes the submission's environment. NONE and a list pass Slurm's own variables, the listed
  ones, and those that a login sets (HOME, USER, LOGNAME, SHELL, a standard PATH). Of those of a login, NIL passes only
  PATH. srun gets a value other than ALL as ` + "`SLURM_EXPORT_ENV`" + `.
- If a job is submitted from inside another one, the variables of the outer job are removed.

`

// TestOfContainer: a task in another container than srun has the devices of its own, and none
// where it has none. Seen to fail on real kubelets with the environment of srun as it was.
func TestOfContainer(t *testing.T) {
	base := []string{"PATH=/bin", "NVIDIA_VISIBLE_DEVICES=GPU-1", "PCIDEVICE_INTEL_COM_SRIOV=0000:01:00.0", "MINE=1"}
	own := OfContainer([]string{"HOME=/", "NVIDIA_VISIBLE_DEVICES=GPU-7,GPU-8", "HOSTNAME=x"})
	for _, tt := range []struct {
		own        []string
		gpus, card string
	}{
		{nil, "GPU-1", "0000:01:00.0"},
		{own, "GPU-7,GPU-8", ""},
		{OfContainer(nil), "", ""},
	} {
		env := newEnviron(base)
		env.inContainer(tt.own)
		if env.get("NVIDIA_VISIBLE_DEVICES") != tt.gpus || env.get("PCIDEVICE_INTEL_COM_SRIOV") != tt.card || env.get("MINE") != "1" || env.hasName("HOME") {
			t.Errorf("with %q: %q", tt.own, env.pairs())
		}
	}
}
