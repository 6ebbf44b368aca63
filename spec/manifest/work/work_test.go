package work

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/google/go-cmp/cmp"
)

func compile(t *testing.T, text string) []*Work {
	t.Helper()
	works, err := Read("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return works
}

// pods is a spec with one container, indented for the place where it stands.
func pods(indent int, more string) string {
	var b bytes.Buffer
	for line := range strings.Lines("template:\n  metadata: {labels: {app: x}}\n  spec:\n    containers:\n    - name: main\n      image: busybox\n      command: [sh, -c, 'true']\n      resources: {limits: {nvidia.com/gpu: 2, memory: 4Gi}, requests: {cpu: 1500m}}\n" + more) {
		b.WriteString(strings.Repeat(" ", indent) + line)
	}
	return b.String()
}

// summary is what a work runs, in a line for each role.
func summary(w *Work) (out []string) {
	out = append(out, fmt.Sprintf("%s %s retries=%v limit=%v held=%v array=%v", w.Kind, w.Name, w.Job.Retries != nil, w.Job.TimeLimit, w.Job.Held, w.Job.Array != nil))
	for i := range w.Set.Roles {
		r, g := &w.Set.Roles[i], &w.Job.Groups[i]
		line := fmt.Sprintf("%s ×%d %s", r.Name, g.Tasks.Want, w.Set.Address(r, 0))
		for _, e := range r.Env {
			line += fmt.Sprintf(" %s=%s", e.Name, w.Set.Expand(e.Value, 0))
		}
		out = append(out, line)
	}
	if c := w.Set.Complete; c != nil {
		index := "-"
		if c.Index != nil {
			index = fmt.Sprint(*c.Index)
		}
		out = append(out, fmt.Sprintf("complete %v any=%v index=%s", c.Roles, c.Any, index))
	}
	return out
}

// TestKinds: each kind becomes the roles, names, variables and ends that its controller would make.
func TestKinds(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{
			"a Pod runs once", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  restartPolicy: OnFailure\n  activeDeadlineSeconds: 60\n  containers: [{name: c, image: busybox}]\n",
			"Pod p retries=true limit=1m0s held=false array=false\npod ×1 p",
		},
		{
			"an Indexed Job is a gang", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  completions: 3\n  parallelism: 3\n  completionMode: Indexed\n  backoffLimit: 0\n  suspend: true\n" + pods(2, "    restartPolicy: Never\n"),
			"Job j retries=false limit=0s held=true array=false\npod ×3 j-0 JOB_COMPLETION_INDEX=0",
		},
		{
			"Kueue lifts suspend", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, labels: {kueue.x-k8s.io/queue-name: q}}\nspec:\n  backoffLimit: 0\n  suspend: true\n" + pods(2, "    restartPolicy: Never\n"),
			"Job j retries=false limit=0s held=false array=false\npod ×1 j",
		},
		{
			"a Job with fewer at once is an array", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  completions: 5\n  parallelism: 2\n" + pods(2, "    restartPolicy: Never\n"),
			"Job j retries=true limit=0s held=false array=true\npod ×1 j-{task}",
		},
		{
			"one index for success", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  completions: 2\n  parallelism: 2\n  completionMode: Indexed\n  successPolicy: {rules: [{succeededIndexes: \"0\"}]}\n" + pods(2, "    restartPolicy: Never\n"),
			"Job j retries=true limit=0s held=false array=false\npod ×2 j-0 JOB_COMPLETION_INDEX=0\ncomplete [] any=false index=0",
		},
		{
			"JobSet", "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec:\n  successPolicy: {operator: All, targetReplicatedJobs: [leader]}\n  failurePolicy: {maxRestarts: 2}\n  replicatedJobs:\n  - name: leader\n    template:\n      spec:\n" + pods(8, "") +
				"  - name: workers\n    replicas: 2\n    template:\n      spec:\n        parallelism: 3\n        completions: 3\n" + pods(8, ""),
			"JobSet s retries=true limit=0s held=false array=false\nleader ×1 s-leader-0-0.s JOB_COMPLETION_INDEX=0\nworkers-0 ×3 s-workers-0-0.s JOB_COMPLETION_INDEX=0\nworkers-1 ×3 s-workers-1-0.s JOB_COMPLETION_INDEX=0\ncomplete [leader] any=false index=-",
		},
		{
			"PyTorchJob", "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t}\nspec:\n  runPolicy: {activeDeadlineSeconds: 3600}\n  pytorchReplicaSpecs:\n    Master:\n      restartPolicy: OnFailure\n" + pods(6, "") + "    Worker:\n      replicas: 2\n" + pods(6, ""),
			"PyTorchJob t retries=true limit=1h0m0s held=false array=false\n" +
				"master ×1 t-master-0 PYTHONUNBUFFERED=1 MASTER_PORT=23456 MASTER_ADDR=t-master-0 PET_MASTER_PORT=23456 PET_MASTER_ADDR=t-master-0 WORLD_SIZE=3 RANK=0 PET_NODE_RANK=0 PET_NNODES=3\n" +
				"worker ×2 t-worker-0 PYTHONUNBUFFERED=1 MASTER_PORT=23456 MASTER_ADDR=t-master-0 PET_MASTER_PORT=23456 PET_MASTER_ADDR=t-master-0 WORLD_SIZE=3 RANK=1 PET_NODE_RANK=1 PET_NNODES=3\n" +
				"complete [master] any=false index=-",
		},
		{
			"MPIJob", "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: m}\nspec:\n  slotsPerWorker: 2\n  mpiImplementation: MPICH\n  mpiReplicaSpecs:\n    Launcher:\n" + pods(6, "") + "    Worker:\n      replicas: 2\n" + pods(6, ""),
			"MPIJob m retries=true limit=0s held=false array=false\nlauncher ×1 m-launcher K_MPI_JOB_ROLE=launcher HYDRA_HOST_FILE=/etc/mpi/hostfile HYDRA_LAUNCH_EXTRA_ARGS=-o ConnectionAttempts=10 -o StrictHostKeyChecking=no\nworker ×2 m-worker-0 K_MPI_JOB_ROLE=worker\ncomplete [launcher] any=false index=-",
		},
		{
			"Volcano", "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: v}\nspec:\n  minAvailable: 3\n  plugins: {svc: [], env: []}\n  tasks:\n  - name: ps\n    replicas: 1\n" + pods(4, "") + "  - name: worker\n    replicas: 2\n    policies: [{event: TaskCompleted, action: CompleteJob}]\n" + pods(4, ""),
			"VolcanoJob v retries=false limit=0s held=false array=false\n" +
				"ps ×1 v-ps-0.v VK_TASK_INDEX=0 VC_TASK_INDEX=0 VC_PS_HOSTS=v-ps-0.v VC_PS_NUM=1 VC_WORKER_HOSTS=v-worker-0.v,v-worker-1.v VC_WORKER_NUM=2\n" +
				"worker ×2 v-worker-0.v VK_TASK_INDEX=0 VC_TASK_INDEX=0 VC_PS_HOSTS=v-ps-0.v VC_PS_NUM=1 VC_WORKER_HOSTS=v-worker-0.v,v-worker-1.v VC_WORKER_NUM=2\ncomplete [worker] any=false index=-",
		},
	} {
		works := compile(t, c.text)
		if len(works) != 1 {
			t.Fatalf("%s: %d works", c.name, len(works))
		}
		if diff := cmp.Diff(strings.Split(c.want, "\n"), summary(works[0])); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}

// TestRequests: requests outrank limits of CPUs, limits outrank requests of memory, containers and sidecars add
// up, and an init container counts where it is larger.
func TestRequests(t *testing.T) {
	w := compile(t, `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  initContainers:
  - {name: big, image: b, resources: {requests: {cpu: 4, memory: 1Gi}}}
  - {name: side, image: b, restartPolicy: Always, resources: {requests: {cpu: 500m}}}
  containers:
  - {name: a, image: b, resources: {requests: {cpu: "1", memory: 1Gi}, limits: {cpu: 2, memory: 2Gi, nvidia.com/gpu: "2", rdma/hca: 1}}}
  - {name: c, image: b, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 1, ephemeral-storage: 1e3}}}
`)[0]
	want := resource.Requirements{
		Vector:  resource.Vector{CPU: 4 * resource.OneCPU, Memory: 2 << 30, Disk: 1000},
		Devices: []resource.DeviceRequest{{Count: 3}, {Profile: "1g.10gb", Count: 1}},
	}
	if diff := cmp.Diff(want, w.Job.Groups[0].PerTask); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	w = compile(t, `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Never
  initContainers: [{name: big, image: b, resources: {limits: {nvidia.com/gpu: 8}}}]
  containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}]
`)[0]
	if n := w.Job.Groups[0].PerTask.DeviceCount(); n != 8 {
		t.Errorf("%d GPUs, want those of the init container, 8", n)
	}
	for text, want := range map[string]resource.Amount{"1": 1000, "100m": 100, "0.1": 100, "1u": 1, "2k": 2_000_000, "1e3": 1_000_000, "1Ki": 1024_000, "5E-1": 500} {
		if got, ok := parseQuantity(quantity(text), 1000); got != want || !ok {
			t.Errorf("%s: %d %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-1", "1 Gi", "1gb", "e3", "1e99", "9999999Ei", "1.2.3", "0x10"} {
		if got, ok := parseQuantity(quantity(text), 1); ok {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
}

// TestServices: a Deployment with its Service and HorizontalPodAutoscaler is one service.
func TestServices(t *testing.T) {
	works := compile(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {a.txt: hello}
---
apiVersion: v1
kind: Secret
metadata: {name: token}
data: {Token: c2VjcmV0}
stringData: {user: lovelace}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 6
  metrics: [{type: Pods, pods: {metric: {name: in_flight}, target: {type: AverageValue, averageValue: "7500m"}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {coxswain.sh/account: nlp}}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: vllm
        envFrom: [{secretRef: {name: token}}, {secretRef: {name: hf}}]
        ports: [{name: http, containerPort: 8000}, {containerPort: 9090}]
        readinessProbe: {httpGet: {path: /health, port: http}, periodSeconds: 5}
        livenessProbe: {tcpSocket: {port: 9090}}
      volumes: [{name: c, configMap: {name: conf}}]
`)
	if len(works) != 1 {
		t.Fatalf("%d works", len(works))
	}
	w := works[0]
	s := w.Service
	if s == nil || s.Replicas.Min != 2 || s.Replicas.Max != 6 || s.Scale.Metric != "in_flight" || s.Scale.Target != 7.5 || s.Update.Surge != 1 || s.Update.Unavailable != 1 {
		t.Fatalf("%+v", s)
	}
	serve := w.Job.Serve
	if len(serve.Ports) != 2 || serve.Ports[0].Name != "http" || serve.Ports[0].Number != 8000 || serve.Readiness.HTTP != "/health" || serve.Readiness.Port != "http" || !serve.Liveness.TCP || serve.Liveness.Port != "port-9090" {
		t.Errorf("%+v", serve)
	}
	if len(w.Set.ConfigMaps) != 1 || w.Set.ConfigMaps[0].Data["a.txt"] != "hello" {
		t.Errorf("%+v", w.Set.ConfigMaps)
	}
	script, err := w.Script()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(script, []byte("c2VjcmV0")) || bytes.Contains(script, []byte("lovelace")) {
		t.Errorf("a secret's value stands in the script: %s", script)
	}
	if string(w.Secrets["token.token"]) != "secret" || string(w.Secrets["token.user"]) != "lovelace" || len(w.Job.Secrets) != 2 {
		t.Errorf("%q %+v", w.Secrets, w.Job.Secrets)
	}
	if len(w.Set.Secrets) != 2 || !w.Set.Secrets[0].Foreign || w.Set.Secrets[0].Name != "hf" || w.Set.Secrets[1].Foreign {
		t.Errorf("%+v", w.Set.Secrets)
	}
	if len(w.Set.Services) != 1 || w.Set.Services[0].Name != "web" || w.Set.Services[0].Ports[0].Target != "http" || w.Set.Services[0].Headless {
		t.Errorf("%+v", w.Set.Services)
	}
	if diff := cmp.Diff([]string{"--account=nlp"}, w.Options); diff != "" {
		t.Error(diff)
	}
}

// TestRay: the containers of a RayCluster start Ray, and a RayJob ends with its entry point.
func TestRay(t *testing.T) {
	group := "rayStartParams: {num-cpus: \"2\"}\n" + pods(0, "")
	group = strings.ReplaceAll(group, "      command: [sh, -c, 'true']\n", "")
	text := "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: r}\nspec:\n  entrypoint: python train.py\n  rayClusterSpec:\n    headGroupSpec:\n" + indent(group, 6) +
		"    workerGroupSpecs:\n    - groupName: small\n      replicas: 2\n" + indent(group, 6)
	w := compile(t, text)[0]
	if len(w.Set.Roles) != 3 || w.Set.Complete.Roles[0] != "submitter" || w.Job.Groups[1].Tasks.Want != 2 || w.Job.Groups[2].PerTask.DeviceCount() != 0 {
		t.Fatalf("%v %+v", summary(w), w.Job.Groups)
	}
	for i, want := range []string{"exec ray start --head --block --dashboard-host=0.0.0.0 --dashboard-port=8265 --num-cpus=2 --port=6379", "exec ray start --address=$RAY_HEAD_ADDRESS --block --num-cpus=2", "-- python train.py"} {
		p, err := w.Set.Roles[i].Pod()
		if err != nil {
			t.Fatal(err)
		}
		if c := p.Spec.Containers[0]; len(c.Args) != 1 || !strings.Contains(c.Args[0], want) || len(p.Spec.Containers) != 1 {
			t.Errorf("%s: %q, want %q", w.Set.Roles[i].Name, c.Args, want)
		}
	}
}

func indent(text string, n int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Repeat(" ", n) + line)
	}
	return b.String()
}

// TestCronJob: what a CronJob does not say is as Kubernetes has it.
func TestCronJob(t *testing.T) {
	cron := func(more string) string {
		return "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec:\n" + more + "  jobTemplate:\n    spec:\n      backoffLimit: 0\n" + pods(6, "    restartPolicy: Never\n")
	}
	for text, want := range map[string]schedule.Settings{
		"  schedule: '0 3 * * *'\n": {Cron: "0 3 * * *", Overlap: schedule.Allow, CatchUp: true, Keep: schedule.History{Done: 3, Failed: 1}},
		"  schedule: '@daily'\n  timeZone: Europe/Zurich\n  concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 90\n  suspend: true\n  successfulJobsHistoryLimit: 5\n": {
			Cron: "@daily", Zone: "Europe/Zurich", Overlap: schedule.Skip, CatchUp: true, Late: 90 * time.Second, Suspend: true, Keep: schedule.History{Done: 5, Failed: 1},
		},
	} {
		w := compile(t, cron(text))[0]
		if w.Schedule == nil || *w.Schedule != want || w.Job.Retries != nil || len(w.Set.Roles) != 1 {
			t.Errorf("%s: %+v, want %+v", text, w.Schedule, want)
		}
	}
	for text, want := range map[string]string{"  schedule: '0 30 * * *'\n": "spec.schedule: ", "  schedule: '0 3 * * *'\n  timeZone: Mars/Base\n": "spec.timeZone: "} {
		if _, err := Read("x.yaml", []byte(cron(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestLeaderWorkerSet: a replica is a gang whose names have the number of the replica.
func TestLeaderWorkerSet(t *testing.T) {
	w := compile(t, "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: l}\nspec:\n  replicas: 2\n  leaderWorkerTemplate:\n    size: 4\n    workerTemplate:\n"+indent(strings.TrimPrefix(strings.ReplaceAll(pods(0, ""), "\n  ", "\n"), "template:\n"), 6))[0]
	got := w.Set.ForTask(1)
	if w.Service == nil || w.Service.Replicas.Min != 2 || len(got.Roles) != 2 || got.Roles[1].NameOf(2) != "l-1-3" || got.Roles[0].NameOf(0) != "l-1" {
		t.Fatalf("%+v", got.Roles)
	}
	if a := got.Expand("{pod:leader:0}", 0); a != "l-1.l" {
		t.Error(a)
	}
}

// TestRefused: what cannot be had is refused by its path, with a remedy.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  parallelism: 3\n" + pods(2, "    restartPolicy: Never\n"):                                           "spec.parallelism: ",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n":                                                                                                            "nothing in the file runs",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: []}\n":                                                                                          "no container",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: b, resources: {limits: {memory: 4 GB}}}]}\n":                                  "4 GB",
		"apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: r}\nspec: {entrypoint: x}\n":                                                                                 "no cluster of its own",
		"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t}\nspec: {pytorchReplicaSpecs: {}}\n":                                                             "there is no role",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {app: y}}\n" + pods(2, ""):                                            "spec.selector.matchLabels.app",
		"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec:\n  successPolicy: {operator: All, targetReplicatedJobs: [x]}\n  replicatedJobs: []": "no replicated job \"x\"",
	} {
		_, err := Read("x.yaml", []byte(text))
		var at *spec.Error
		if !errors.As(err, &at) || !strings.Contains(at.Message, want) || at.Remedy == "" {
			t.Errorf("%s\n%v, want %q with a remedy", text, err, want)
		}
	}
}

func quantity(s string) podspec.Quantity { return podspec.Quantity(s) }
