package kube_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// ofTasks has a launch have so many tasks for each of its claims, and a pod for each task.
func ofTasks(l *engine.Launch, each int) *engine.Launch {
	g := &l.Job.Spec.Groups[0]
	g.Tasks.Want *= each
	for i := range l.Claims {
		l.Claims[i].Tasks *= each
	}
	l.Job.Spec.Pod = &job.Pod{PerTask: true}
	return l
}

// tellScript has every task say who it is, and the script what it knows.
const tellScript = `#!/bin/sh
echo batch: $SLURM_NTASKS tasks on $SLURM_NNODES nodes, $SLURM_TASKS_PER_NODE.
srun sh -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS: local $SLURM_LOCALID, node $SLURM_NODEID of $SLURM_NNODES, $(hostname) sees $NVIDIA_VISIBLE_DEVICES as $CUDA_VISIBLE_DEVICES."'
echo all said
`

var tellsRank = regexp.MustCompile(`task (\d+) of (\d+): local (\d+), node (\d+) of (\d+), (\S+) sees (\S*) as (\S*)\.`)

// toldBy is what each task has said, when all have: what tellsRank finds, by rank.
func (b *bench) toldBy(t *testing.T, native string, tasks int) [][]string {
	t.Helper()
	text := b.l.Prints(t, "default", native+"-0", "all said\n")
	if want := fmt.Sprintf("batch: %d tasks on %[1]d nodes, 1(x%[1]d).", tasks); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	all := tellsRank.FindAllStringSubmatch(text, -1)
	slices.SortFunc(all, func(a, b []string) int { return strings.Compare(a[1], b[1]) })
	if len(all) != tasks {
		t.Fatalf("of %d tasks %d have said who they are:\n%s", tasks, len(all), text)
	}
	for i, m := range all {
		if want := fmt.Sprintf("task %d of %d: local 0, node %[1]d of %[2]d, %s-%[1]d sees ", i, tasks, native); !strings.HasPrefix(m[0], want) {
			t.Errorf("%q, want %q", m[0], want)
		}
	}
	return all
}

// testPodsOfTasks: two tasks on each of two nodes, each in a pod of its own that has two of the
// four GPUs of its node; srun between them; the exit code, and the end by a signal.
func testPodsOfTasks(t *testing.T, b *bench, e *kube.Engine) {
	l := ofTasks(withDevices(launch(1, tellScript+"exec sleep 600\n", "n3", "n4"), 0, 1, 2, 3), 2)
	r := begin(t, e, l)
	if len(r.Nodes) != 2 || r.Nodes[0].Node != "n3" || r.Nodes[1].Node != "n4" {
		t.Errorf("%+v", r.Nodes)
	}
	where := b.l.Kubectl(t, "get", "pods", "-l", "coxswain.sh/server="+strings.Split(r.Native, "-")[1], "-o", "jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName},{end}")
	if want := fmt.Sprintf("%s-0 n3,%[1]s-1 n3,%[1]s-2 n4,%[1]s-3 n4,", r.Native); where != want {
		t.Errorf("pods are %s, want %s", where, want)
	}
	had := map[string]bool{}
	for i, m := range b.toldBy(t, r.Native, 4) {
		node := []string{"n3", "n3", "n4", "n4"}[i]
		for _, d := range strings.Split(m[7], ",") {
			if had[d] || !strings.HasPrefix(d, "GPU-"+node+"-") {
				t.Errorf("task %d on %s sees %s", i, node, m[7])
			}
			had[d] = true
		}
		if m[8] != "0,1" {
			t.Errorf("task %d counts its devices as %s", i, m[8])
		}
	}
	if len(had) != 8 {
		t.Errorf("all see %v", had)
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); r.Cause != engine.Stopped || len(r.Nodes) != 2 {
		t.Errorf("%+v", r)
	}
	l = ofTasks(launch(2, "#!/bin/sh\nsrun sh -c 'exit $((SLURM_PROCID + 3))'\n", "n3", "n4"), 2)
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); r.Cause != engine.Exited || r.Exit.Status != 6 {
		t.Errorf("%+v", r)
	}
}

// testGangOfTasks: six tasks in a gang of the cluster's own, on fewer nodes than that, each in a pod
// of its own.
func testGangOfTasks(t *testing.T, b *bench, e *kube.Engine) {
	l := folded(11, tellScript+"exec sleep 600\n", 6)
	l.Job.Spec.Groups = []job.TaskGroup{{Tasks: job.Count{Want: 6}}}
	l.Job.Spec.Pod = &job.Pod{PerTask: true}
	r := begin(t, e, l)
	b.toldBy(t, r.Native, 6)
	if n := len(r.Nodes); n < 1 || n > 4 {
		t.Errorf("%+v", r.Nodes)
	}
	if min := b.l.Kubectl(t, "get", "podgroup.v1alpha2.scheduling.k8s.io", r.Native, "-o", "jsonpath={.spec.schedulingPolicy.gang.minCount}"); min != "6" {
		t.Errorf("its group has %q", min)
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	gone(t, e, l.Ref)
}

// testClaimsOfTasks: two tasks on a node, each in a pod whose claim has two of the node's four
// devices.
func testClaimsOfTasks(t *testing.T, b *bench, e *kube.Engine) {
	l := ofTasks(withDevices(launch(21, forever, "n2"), 0, 1, 2, 3), 2)
	r := begin(t, e, l)
	for pod, want := range map[string][]string{"-0": {"gpu-0", "gpu-1"}, "-1": {"gpu-2", "gpu-3"}} {
		if got := b.l.Prepared("n2")[r.Native+pod]; !slices.Equal(got, want) {
			t.Errorf("pod %s has %q, want %q", pod, got, want)
		}
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	gone(t, e, l.Ref)
}
