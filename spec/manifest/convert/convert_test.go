package convert_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/manifest/convert"
	"github.com/coxswain-sched/coxswain/spec/manifest/work"
)

func readText(t *testing.T, name, text string) *intake.Request {
	t.Helper()
	r, err := intake.Read(intake.Text{Form: intake.Detect(name, []byte(text)), Name: name, Data: []byte(text)}, intake.Options{Dir: "/", Now: time.Unix(1, 0), Owner: job.Owner{User: "ada"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func listLost(ws []spec.Warning) string {
	var b strings.Builder
	for _, w := range ws {
		b.WriteString(w.Option + ": " + w.Message + "\n")
	}
	return b.String()
}

// TestRender: a job becomes a manifest that reads back as the same amounts, and what is lost is named.
func TestRender(t *testing.T) {
	for _, c := range []struct{ name, text, want, lost string }{
		{
			"a.sbatch", "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --cpus-per-task=4 --mem=8G --gpus-per-node=2 --time=10 --account=nlp --mail-type=END\nsrun python train.py\n  echo $$ $(date)\n",
			`apiVersion: batch/v1
kind: Job
metadata:
  name: "a.sbatch"
  annotations:
    coxswain.sh/account: "nlp"
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  backoffLimit: 0
  activeDeadlineSeconds: 600
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: "IMAGE"
        command: ["/bin/bash","-c"]
        args:
        - |2
          srun python train.py
            echo $$$ $$(date)
        - "a.sbatch"
        resources:
          requests: {cpu: 4000m, memory: 8Gi}
          limits: {memory: 8Gi, nvidia.com/gpu: 2}
`, "mail: ",
		},
		{
			"b.yaml", "name: B\ncommand: [python, train.py]\nimage: pytorch\ntasks: 3\ngpus_per_task: 1\nenv: {A: $(b)}\n",
			`apiVersion: batch/v1
kind: Job
metadata:
  name: "b"
spec:
  completionMode: Indexed
  completions: 3
  parallelism: 3
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: "pytorch"
        command: ["python","train.py"]
        env:
        - {name: "A", value: "$$(b)"}
        resources:
          requests: {cpu: 1000m}
          limits: {nvidia.com/gpu: 1}
`, "nodes: 3 pods",
		},
	} {
		r := readText(t, c.name, c.text)
		out, ws, err := convert.Render(r.Spec, r.Script)
		if err != nil {
			t.Fatal(err)
		}
		if string(out) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, out, c.want)
		}
		if !strings.Contains(listLost(ws), c.lost) {
			t.Errorf("%s: lost %s, want %q", c.name, listLost(ws), c.lost)
		}
		works, err := work.Read("back.yaml", out)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got, want := works[0].Job.Groups[0].Tasks.Want, max(r.Spec.Groups[0].Tasks.Want, r.Spec.Groups[0].Nodes.Min); got != want {
			t.Errorf("%s: %d pods, want %d", c.name, got, want)
		}
	}
}

// TestToJob: pods with one program become tasks; the rest is named.
func TestToJob(t *testing.T) {
	r := readText(t, "j.yaml", `apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      affinity: {}
      tolerations: [{key: gpu, operator: Exists}]
      initContainers: [{name: wait, image: busybox}]
      containers:
      - name: main
        image: busybox
        args: [sleep, "1"]
        tty: true
        resources: {claims: [{name: gpu}]}
        env: [{name: A, value: b}, {name: WHO, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        volumeMounts: [{name: data, mountPath: /data, readOnly: true}]
      volumes: [{name: data, hostPath: {path: /srv/data}}]
`)
	set, err := podspec.Parse(r.Script)
	if err != nil {
		t.Fatal(err)
	}
	got, ws, err := convert.ToJob(r.Spec, set)
	if err != nil {
		t.Fatal(err)
	}
	if got.Image != "busybox" || strings.Join(got.Program.Args, " ") != "sleep 1" || !*got.Container.Entrypoint || got.Groups[0].Tasks.Want != 2 || got.Container.Mounts[0].Source != "/srv/data" || got.Container.Mounts[0].Flags[0] != "ro" {
		t.Errorf("%+v %+v", got, got.Container)
	}
	for _, want := range []string{"initContainers.wait: is lost", "env.WHO: is lost", "JOB_COMPLETION_INDEX", "affinity: is lost", "tolerations: is lost", "containers.main.tty: is lost", "containers.main.resources.claims: is lost"} {
		if !strings.Contains(listLost(ws), want) {
			t.Errorf("lost %s, want %q", listLost(ws), want)
		}
	}
	r = readText(t, "p.yaml", `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: t}
spec:
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: pytorch, image: a, command: [run-x]}]}}}
    Worker: {template: {spec: {containers: [{name: pytorch, image: a, command: [run-y]}]}}}
`)
	if set, err = podspec.Parse(r.Script); err != nil {
		t.Fatal(err)
	}
	if _, _, err := convert.ToJob(r.Spec, set); err == nil || !strings.Contains(err.Error(), "run another program") {
		t.Errorf("%v", err)
	}
}
