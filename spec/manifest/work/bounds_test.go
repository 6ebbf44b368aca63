package work

import (
	"runtime"
	"strings"
	"testing"
)

// TestBoundsBeforeLoops: counts that a few lines can say are refused before anything is made of them.
func TestBoundsBeforeLoops(t *testing.T) {
	const many = "2147483647"
	jobset := "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec:\n  replicatedJobs:\n  - name: w\n    replicas: " + many + "\n    template:\n      spec:\n"
	for what, c := range map[string]struct{ text, want string }{
		"JobSet of one pod each":    {jobset + pods(8, ""), "too many for one gang"},
		"JobSet of no pod each":     {jobset + "        completions: 0\n" + pods(8, ""), "too many for one gang"},
		"JobSet of many roles":      {strings.Replace(jobset, many, "200", 1) + "        parallelism: 2\n        completions: 2\n" + pods(8, ""), "at most 128"},
		"JobSet of many roles of 0": {strings.Replace(jobset, many, "9000", 1) + "        completions: 0\n        parallelism: 0\n" + pods(8, ""), "at most 128"},
		"MPIJob":                    {"apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: m}\nspec:\n  mpiReplicaSpecs:\n    Launcher:\n" + pods(6, "") + "    Worker:\n      replicas: " + many + "\n" + pods(6, ""), "too many for one gang"},
		"Volcano":                   {"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: v}\nspec:\n  plugins: {svc: []}\n  tasks:\n  - name: w\n    replicas: " + many + "\n" + pods(4, ""), "too many for one gang"},
		"PyTorchJob":                {"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: p}\nspec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: " + many + "\n" + pods(6, ""), "more than 100000 pods"},
		"LeaderWorkerSet":           {"apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: l}\nspec:\n  leaderWorkerTemplate:\n    size: " + many + "\n    workerTemplate:\n" + strings.Replace(pods(4, ""), "    template:", "", 1), "more than 100000 pods"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read("x.yaml", []byte(c.text))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 32 {
			t.Errorf("%s: %d MiB", what, used)
		}
	}
}

// TestDoubledNames: two works of one name would both be the first.
func TestDoubledNames(t *testing.T) {
	pod := func(meta string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {" + meta + "}\nspec: {containers: [{name: c, image: busybox}]}\n"
	}
	for want, text := range map[string]string{
		"x.yaml:8:":                pod("name: a, namespace: p") + "---\n" + pod("name: a, namespace: q"),
		"line 1 has another Pod":   pod("generateName: a-") + "---\n" + pod("name: a"),
		"metadata.name is missing": pod("labels: {a: b}"),
	} {
		if _, err := Read("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	compile(t, pod("name: a")+"---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n"+pods(2, "    restartPolicy: Never\n"))
}

// TestNames: names that are no names of Kubernetes are refused by their line.
func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: \"a;id\"}\nspec: {containers: [{name: c, image: b}]}\n":                        "x.yaml:3:",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: A}\nspec: {containers: [{name: c, image: b}]}\n":                 "metadata.namespace",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {hostname: a b, containers: [{name: c, image: b}]}\n":                "spec.hostname",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {subdomain: a.b, containers: [{name: c, image: b}]}\n":               "spec.subdomain",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: b, env: [{name: a b, value: x}]}]}\n": "env[0].name",
		"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: v}\nspec:\n  tasks:\n  - name: W_1\n" + pods(4, ""):     "spec.tasks[0].name",
	} {
		if _, err := Read("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
