package intake

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/spec/route"
)

// manifestPair is a file in which two things run.
const manifestPair = `apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: hunter2}
---
apiVersion: v1
kind: Pod
metadata:
  name: one
  annotations: {coxswain.sh/qos: low, coxswain.sh/time: "10"}
spec:
  restartPolicy: Never
  activeDeadlineSeconds: 60
  containers:
  - name: main
    image: busybox
    command: [env]
    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}, {name: HUB, valueFrom: {secretKeyRef: {name: hub, key: Token}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: two}
spec:
  completions: 3
  parallelism: 3
  completionMode: Indexed
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: [env]}]}}
`

// TestManifest: of a file with several works one is read by name, with options and annotations over it, and its
// secrets beside it.
func TestManifest(t *testing.T) {
	text := Text{Form: api.FormManifest, Name: "a.yaml", Data: []byte(manifestPair)}
	works, err := Works(text)
	if diff := cmp.Diff([]string{"Pod/one", "Job/two"}, works); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	if _, err := Read(text, Options{Dir: "/"}); err == nil || !strings.Contains(err.Error(), "2 things to run: Pod/one, Job/two") {
		t.Errorf("%v", err)
	}
	text.Work = "Pod/one"
	o := Options{Dir: "/", Args: []string{"--account=nlp", "--time=20"}, Environ: []string{"SBATCH_QOS=high", "HOME=/h"}, Owner: job.Owner{User: "ada"}}
	r, err := Read(text, o)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Spec; s.Name != "one" || s.Account != "nlp" || s.QOS != "low" || s.TimeLimit.Minutes() != 20 || s.Program.Kind != job.Pods || s.Source.Form != api.FormManifest || len(s.Secrets) != 1 {
		t.Errorf("%+v", s)
	}
	if string(r.Secrets()["db.password"]) != "hunter2" || strings.Contains(string(r.Script), "hunter2") {
		t.Errorf("%q in %s", r.Secrets(), r.Script)
	}
	if diff := cmp.Diff([]string{"hub.token"}, r.ForeignSecrets()); diff != "" {
		t.Error(diff)
	}
	if set, err := podspec.Parse(r.Script); err != nil || set.Name != "one" {
		t.Errorf("%v %v", set, err)
	}
	if !strings.Contains(fmt.Sprint(r.Warnings), "are not read with a manifest") {
		t.Errorf("%v", r.Warnings)
	}
	o.Args = nil
	if r, err = Read(text, o); err != nil || r.Spec.TimeLimit.Minutes() != 10 {
		t.Errorf("the annotation's time: %v %v", r, err)
	}
	text.Work = "Job/two"
	if r, err = Read(text, o); err != nil {
		t.Fatal(err)
	}
	if r.Spec.Groups[0].Tasks.Want != 3 || len(r.Secrets()) != 0 {
		t.Errorf("%+v %v", r.Spec.Groups, r.Secrets())
	}
	f, err := r.Facts()
	if err != nil || f.Get(route.TightlyCoupled).Value != 1 || f.Get(route.Containers).Value != 1 {
		t.Errorf("%v %+v", err, f)
	}
}

// TestSecretsAreNotKeptWithTheText: what is kept of a service and of a schedule has no value of a Secret of the
// file, even of one that the work does not name.
func TestSecretsAreNotKeptWithTheText(t *testing.T) {
	const template = "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: busybox, command: [env]USES}]}}"
	const uses = ", env: [{name: P, valueFrom: {secretKeyRef: {name: db, key: password}}}]"
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: hunter2}\n---\n"
	works := []string{
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1, selector: {matchLabels: {app: web}}, " + template + "}\n",
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec: {schedule: '@daily', jobTemplate: {spec: {" + strings.Replace(template, "containers", "restartPolicy: Never, containers", 1) + "}}}\n",
	}
	for _, work := range works {
		for text, kept := range map[string]bool{
			strings.Replace(work, "USES", "", 1):            true,
			secret + strings.Replace(work, "USES", "", 1):   false,
			secret + strings.Replace(work, "USES", uses, 1): false,
		} {
			r, err := Read(Text{Form: api.FormManifest, Name: "a.yaml", Data: []byte(text)}, Options{Dir: "/", Owner: job.Owner{User: "ada"}})
			if err != nil {
				t.Fatal(err)
			}
			var spec any = r.Scheduled()
			if r.Service != nil {
				spec = r.Replicas()
			}
			doc, err := json.Marshal(spec)
			if err != nil || strings.Contains(string(doc), "hunter2") || strings.Contains(string(doc), `"text":`) != kept {
				t.Errorf("%s\nis kept as %s, %v", text, doc, err)
			}
		}
	}
}

// TestManifestRefuses: what does not go with a manifest is refused with what to do instead.
func TestManifestRefuses(t *testing.T) {
	for _, c := range []struct {
		o            Options
		work         string
		want, remedy string
	}{
		{Options{Args: []string{"--nodes=2"}}, "Pod/one", "--nodes does not go with a manifest", "change the manifest"},
		{Options{Args: []string{"--gpus=2"}}, "Pod/one", "--gpus does not go with a manifest", "change the manifest"},
		{Options{Args: []string{"--array=1-3"}}, "Job/two", "--array does not go with a manifest", "completions and parallelism"},
		{Options{Image: "x"}, "Pod/one", "--image and arguments", "change the manifest"},
		{Options{}, "Pod/three", `the file has no "Pod/three", but Pod/one, Job/two`, "name one of these"},
	} {
		c.o.Dir = "/"
		_, err := Read(Text{Form: api.FormManifest, Name: "a.yaml", Data: []byte(manifestPair), Work: c.work}, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(fault.Remedy(err), c.remedy) {
			t.Errorf("%+v: %v; %s", c.o, err, fault.Remedy(err))
		}
	}
}

// TestManifestFields: fields that an engine does not honour are refused there by their place.
func TestManifestFields(t *testing.T) {
	text := strings.Replace(manifestPair, "    command: [env]\n    env:", "    volumeMounts: [{name: v, mountPath: /v}]\n    command: [env]\n    env:", 1)
	text = strings.Replace(text, "  containers:\n  - name: main", "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n  containers:\n  - name: main", 1)
	r, err := Read(Text{Form: api.FormManifest, Name: "a.yaml", Data: []byte(text), Work: "Pod/one"}, Options{Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CheckFields("kubernetes"); err != nil {
		t.Errorf("on Kubernetes: %v", err)
	}
	for _, engine := range []string{"", "local", "slurm"} {
		if err := r.CheckFields(engine); err == nil || !strings.Contains(err.Error(), "a.yaml:14:") || !strings.Contains(err.Error(), "persistentVolumeClaim") {
			t.Errorf("%s: %v", engine, err)
		}
	}
}
