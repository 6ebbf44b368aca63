package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// kubeDeadlock: the classic one, where Coxswain chooses the nodes. Two clients submit a gang of five
// at once, a GPU each, to eight nodes of a GPU. At every moment pods of one gang alone are there:
// it has five nodes, the other waits without any pod and says why, until the first has ended; then
// it begins whole. The nodes have no machines: the test says for them that pods run, and have ended.
//
// The gangs are of a script, and then of a PyTorchJob, whose pods have no agent.
//
// Seen to fail with: each node's GPU counted twice.
func kubeDeadlock(t *testing.T, s *slurmSite, l *lab.Lab, add []string) {
	t.Helper()
	const pool = "k8s-e"
	var nodes []lab.Fake
	for i := range 8 {
		nodes = append(nodes, lab.Fake{Name: fmt.Sprintf("e%d", i+1), Labels: map[string]string{"eight": "yes"}, Capacity: map[string]string{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}})
	}
	l.Fake(t, nodes...)
	add = slices.Concat(add, []string{"--set", `node_selector={"eight":"yes"}`})
	add[2] = pool
	s.ok(t, "pool "+pool+" added", add...)
	s.eventually(t, pool+` .* up `, "pool", "list")
	fiveAtOnce(t, s, l, pool, kubeScript(t, s, "five.sh", "#SBATCH --nodes=5 --gpus-per-node=1\nexec sleep 600\n"), "job")
	manifest := filepath.Join(s.dir, "five.yaml")
	if err := os.WriteFile(manifest, []byte(fiveManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	fiveAtOnce(t, s, l, pool, manifest, "pytorch")
	s.ok(t, pool+" is gone", "pool", "remove", pool)
	l.Kubectl(t, "delete", "nodes", "--selector=eight")
}

// fiveManifest is a gang of five pods with a GPU each.
const fiveManifest = `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: five}
spec:
  pytorchReplicaSpecs:
    Master:
      template: {spec: &pod {containers: [{name: pytorch, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}
    Worker:
      replicas: 4
      template: {spec: *pod}
`

// fiveAtOnce is kubeDeadlock for jobs of a file, and the container of their pods that runs.
func fiveAtOnce(t *testing.T, s *slurmSite, l *lab.Lab, pool, file, container string) {
	t.Helper()
	all := watched(t, l)
	defer all.apart(t)
	var said [2]clitest.Ran
	var both sync.WaitGroup
	for i := range said {
		both.Go(func() { said[i] = s.cox(t, "submit", "--pool", pool, file) })
	}
	both.Wait()
	var jobs []string
	for _, r := range said {
		r.Check(t, 0, "~submitted", "~")
		jobs = append(jobs, regexp.MustCompile(`\d+`).FindString(r.Out))
	}
	first := all.whole(t)
	second := jobs[(slices.Index(jobs, first)+1)%2]
	all.says(t, l, first, `{"phase":"Running","containerStatuses":[{"name":"`+container+`","image":"i","imageID":"","containerID":"containerd://x","ready":true,"started":true,"restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}`)
	s.eventually(t, `(?m)^ *`+first+` .*RUNNING.* e\[`, "queue")
	s.ok(t, "PENDING", "show", second)
	s.eventually(t, `needs [45] GPUs, free now: 3 GPUs(?s:.*)held by +job `+first+` `, "why", second)
	if pods := l.Kubectl(t, "get", "pods", "--namespace=cox", "--selector=coxswain.sh/job="+second, "--output=name"); pods != "" {
		t.Errorf("of the gang that waits there is %s", pods)
	}
	for i, id := range []string{first, second} {
		if i > 0 {
			if now := all.whole(t); now != id {
				t.Errorf("job %s has five nodes", now)
			}
		}
		s.ok(t, "", "cancel", id)
		for _, pod := range all.pods(id) {
			l.Kubectl(t, "wait", "--namespace=cox", "--for=jsonpath={.metadata.deletionTimestamp}", "pod/"+pod, "--timeout=5m")
		}
		all.says(t, l, id, `{"phase":"Failed","containerStatuses":[{"name":"`+container+`","image":"i","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":143,"reason":"Error"}}}]}`)
		s.cox(t, "wait", id)
		s.ok(t, "CANCELLED", "show", id)
	}
}

// sharing is which pods of jobs are there, and have not ended. Jobs of before do not count.
type sharing struct {
	mu      sync.Mutex
	there   map[types.UID]*corev1.Pod
	before  map[string]bool // jobs whose pods were there at the beginning
	listed  bool
	both    []string      // moments in which there were pods of several jobs
	changed chan struct{} // closed with the next change
}

// watched is told of all pods of jobs that come from now on, until the test ends.
func watched(t *testing.T, l *lab.Lab) *sharing {
	t.Helper()
	k, err := cluster.Open(cluster.Config{Kubeconfig: l.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	s := &sharing{there: map[types.UID]*corev1.Pod{}, before: map[string]bool{}, changed: make(chan struct{})}
	listed := make(chan struct{})
	begun := sync.OnceFunc(func() {
		s.mu.Lock()
		s.listed = true
		s.mu.Unlock()
		close(listed)
	})
	go cluster.Follow(t.Context(), k, cluster.Pods, cluster.Selection{Namespace: "cox", Labels: labelJob}, cluster.Follower[corev1.Pod]{Each: s.note, Listed: begun})
	<-listed
	return s
}

const labelJob = "coxswain.sh/job"

func (s *sharing) note(p *corev1.Pod, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed {
		s.before[p.Labels[labelJob]] = true
	}
	if s.before[p.Labels[labelJob]] {
		return
	}
	if s.there[p.UID] = p; deleted || p.Status.Phase == corev1.PodFailed {
		delete(s.there, p.UID)
	}
	jobs := map[string]int{}
	for _, p := range s.there {
		jobs[p.Labels[labelJob]]++
	}
	if len(jobs) > 1 {
		s.both = append(s.both, fmt.Sprint(jobs))
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// apart wants that at no moment there were pods of two jobs.
func (s *sharing) apart(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.both) > 0 {
		t.Errorf("pods of two gangs, by job: %s", strings.Join(s.both, ", "))
	}
}

// whole waits until a job has pods on five nodes, and names it.
func (s *sharing) whole(t *testing.T) string {
	t.Helper()
	for end := time.After(5 * time.Minute); ; {
		s.mu.Lock()
		on, changed := map[string]map[string]bool{}, s.changed
		for _, p := range s.there {
			id := p.Labels[labelJob]
			if on[id] == nil {
				on[id] = map[string]bool{}
			}
			if p.Spec.NodeName != "" {
				on[id][p.Spec.NodeName] = true
			}
		}
		s.mu.Unlock()
		for id, nodes := range on {
			if len(nodes) == 5 {
				return id
			}
		}
		select {
		case <-changed:
		case <-end:
			t.Fatalf("no gang has five nodes: %v", on)
		}
	}
}

// pods are the names of a job's.
func (s *sharing) pods(id string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range maps.Values(s.there) {
		if p.Labels[labelJob] == id {
			names = append(names, p.Name)
		}
	}
	return names
}

// says is the word of the kubelets for all pods of a job.
func (s *sharing) says(t *testing.T, l *lab.Lab, id, status string) {
	t.Helper()
	for _, pod := range s.pods(id) {
		l.Kubectl(t, "patch", "pod", pod, "--namespace=cox", "--subresource=status", "--type=merge", "--patch", `{"status":`+status+`}`)
	}
}
