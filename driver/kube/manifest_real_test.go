package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
	"github.com/coxswain-sched/coxswain/test/testcluster/samejob"
)

// podOf is a template of one container that runs a script, with more fields of its spec and of its container.
func podOf(script, spec, container string) json.RawMessage {
	text, _ := json.Marshal(script)
	return json.RawMessage(fmt.Sprintf(`{"spec":{"terminationGracePeriodSeconds":1%s,"containers":[{"name":"main","image":"%s","command":["sh","-c",%s]%s}]}}`, spec, lab.Base, text, container))
}

// manifest is a job with the pods of a set, each on one of some nodes.
func manifest(t *testing.T, allocation uint64, set podspec.Set, nodes ...string) *engine.Launch {
	t.Helper()
	script, err := json.Marshal(&set)
	if err != nil {
		t.Fatal(err)
	}
	l := launch(allocation, string(script), nodes...)
	l.Job.Spec.Program, l.Job.Spec.Groups, l.Claims = job.Program{Kind: job.Pods}, nil, nil
	l.Job.Spec.Owner = job.Owner{User: "nobody", UID: 65534, GID: 65534}
	for g, r := range set.Roles {
		l.Job.Spec.Groups = append(l.Job.Spec.Groups, job.TaskGroup{Tasks: job.Count{Want: r.Replicas}})
		for range r.Replicas {
			l.Claims = append(l.Claims, fleet.Claim{Node: nodes[len(l.Claims)%len(nodes)], Group: g, Tasks: 1})
		}
	}
	return l
}

// toldBy is a job's output, or that of a rank.
func toldBy(t *testing.T, e *kube.Engine, r engine.Report, rank int) string {
	t.Helper()
	file, err := engine.LogFile(r, "stdout", nil, &rank)
	if err != nil {
		t.Errorf("rank %d: %v", rank, err)
		return ""
	}
	out, err := e.OpenLog(context.Background(), job.Owner{}, file)
	if err != nil {
		t.Errorf("rank %d: %v", rank, err)
		return ""
	}
	text, err := io.ReadAll(out)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Error(err)
	}
	return string(text)
}

// namesTold are functions of a pod's script: serve has it answer with its host name on port 8080, and ask asks
// another pod until that does. A pod whose end ends the others asks them for their names last, and they serve once
// they have said all they have to say.
const namesTold = `serve() { mkdir /tmp/www && hostname >/tmp/www/name && httpd -p 8080 -h /tmp/www || exit 9; }
ask() { until wget -q -O - "http://$1:8080/name" 2>/dev/null; do sleep 0.2; done; }
`

// testManifests: pods of manifests on real kubelets, where Coxswain chooses the nodes.
func testManifests(t *testing.T, b *bench) {
	c := b.config(t, t.TempDir())
	c.Pull = 5 * time.Second
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	run := func(t *testing.T, l *engine.Launch) engine.Report {
		t.Helper()
		if err := e.Admit(t.Context(), &engine.JobDraft{Spec: l.Job.Spec, Script: l.Script}); err != nil {
			t.Fatalf("%v (%s)", err, fault.Remedy(err))
		}
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		return gone(t, e, l.Ref)
	}
	t.Run("PyTorchJob", func(t *testing.T) {
		r := run(t, manifest(t, 701, podspec.Set{
			Kind: "PyTorchJob", Name: "train", Complete: &podspec.Complete{Roles: []string{"master"}},
			Roles: []podspec.Role{
				{Name: "master", Replicas: 1, PodName: "train-master-{i}", Template: podOf(namesTold+"serve; ask train-worker-0; ask train-worker-1", "", "")},
				{
					Name: "worker", Replicas: 2, PodName: "train-worker-{i}", Template: podOf(namesTold+"ask $MASTER_ADDR; echo rank $RANK; cat /etc/hosts.mine; serve; sleep 600", "", ""),
					Env: []podspec.EnvVar{{Name: "MASTER_ADDR", Value: "{pod:master:0}"}, {Name: "RANK", Value: "{i+1}"}}, Files: map[string]string{"/etc/hosts.mine": "I am {i}\n"},
				},
			},
		}, "n1", "n2"))
		if r.Cause != engine.Exited || !r.Exit.OK() || r.Message != "" || len(r.Tasks) != 3 || r.Started.IsZero() {
			t.Errorf("%+v", r)
		}
		if got := toldBy(t, e, r, 0); got != "train-worker-0\ntrain-worker-1\n" {
			t.Errorf("the master printed %q", got)
		}
		if got := toldBy(t, e, r, 2); got != "train-master-0\nrank 2\nI am 1\n" {
			t.Errorf("the last worker printed %q", got)
		}
	})
	t.Run("JobSet", func(t *testing.T) {
		r := run(t, manifest(t, 702, podspec.Set{
			Kind: "JobSet", Name: "js", Complete: &podspec.Complete{Roles: []string{"driver"}},
			Roles: []podspec.Role{
				{Name: "driver", Replicas: 1, PodName: "js-driver-0-{i}", Subdomain: "js", Template: podOf(namesTold+"serve; ask js-workers-0-1.js; ask js-workers-0-0", "", "")},
				{Name: "workers", Replicas: 2, PodName: "js-workers-0-{i}", Subdomain: "js", Template: podOf(namesTold+"ask js-driver-0-0.js.default.svc.cluster.local; serve; sleep 600", "", "")},
			},
		}, "n1", "n2"))
		if r.Cause != engine.Exited || !r.Exit.OK() || toldBy(t, e, r, 0) != "js-workers-0-1\njs-workers-0-0\n" || toldBy(t, e, r, 1) != "js-driver-0-0\n" {
			t.Errorf("%+v: %q, %q", r, toldBy(t, e, r, 0), toldBy(t, e, r, 1))
		}
	})
	t.Run("Parts", func(t *testing.T) {
		l := manifest(t, 703, podspec.Set{
			Kind: "Job", Name: "parts", ConfigMaps: []podspec.ConfigMap{{Name: "settings", Data: map[string]string{"lr": "0.1", "LOUD": "yes"}}},
			Secrets: []podspec.Secret{{Name: "login", Keys: []string{"Token"}}},
			Roles: []podspec.Role{{Name: "main", Replicas: 1, PodName: "parts-0", Template: podOf(
				`cat /scratch/init /settings/lr; echo; cat /login/Token; echo; ask() { until wget -q -O - localhost:8080/up 2>/dev/null; do sleep 0.2; done; }; ask; echo $LOUD $(id -u)`,
				`,"restartPolicy":"OnFailure","volumes":[{"name":"scratch","emptyDir":{}},{"name":"settings","configMap":{"name":"settings"}},{"name":"login","secret":{"secretName":"login"}}],
				"initContainers":[{"name":"first","image":"`+lab.Base+`","command":["sh","-c","echo made >/scratch/init"],"volumeMounts":[{"name":"scratch","mountPath":"/scratch"}]},
				{"name":"side","image":"`+lab.Base+`","restartPolicy":"Always","command":["sh","-c","mkdir /tmp/w; echo beside >/tmp/w/up; exec httpd -f -p 8080 -h /tmp/w"]}]`,
				`,"envFrom":[{"configMapRef":{"name":"settings"}}],"volumeMounts":[{"name":"scratch","mountPath":"/scratch"},{"name":"settings","mountPath":"/settings"},{"name":"login","mountPath":"/login"}]`,
			)}},
		}, "n2")
		l.Job.Spec.Secrets = []job.Secret{{Name: "login.token"}}
		l.Secrets = []engine.Secret{{Secret: l.Job.Spec.Secrets[0], Value: []byte("hush-hush-4321")}}
		r := run(t, l)
		if got, want := toldBy(t, e, r, 0), "made\n0.1\nhush-hush-4321\nbeside\nyes 65534\n"; !r.Exit.OK() || got != want {
			t.Errorf("%+v: it printed %q, want %q", r, got, want)
		}
		if err := e.Forget(t.Context(), l.Ref); err != nil {
			t.Fatal(err)
		}
		b.l.Emptied(t, "default", "pods,secrets,configmaps", "-l", "coxswain.sh/allocation=703")
	})
	t.Run("Fails", func(t *testing.T) {
		for n, c := range []struct {
			worker json.RawMessage
			cause  engine.Cause
			exit   job.ExitCode
			says   string
		}{
			{podOf("exit 7", "", ""), engine.Exited, job.ExitCode{Status: 7}, "container main ended with 7"},
			{podOf("true", `,"initContainers":[{"name":"first","image":"`+lab.Base+`","command":["sh","-c","exit 3"]}]`, ""), engine.Exited, job.ExitCode{Status: 1}, "container first ended with 3"},
			{json.RawMessage(`{"spec":{"containers":[{"name":"main","image":"lab/nowhere:1","imagePullPolicy":"Never"}]}}`), engine.Refused, job.ExitCode{Status: 1}, "ErrImageNeverPull"},
			{podOf("x=x; while :; do x=$x$x; done", "", `,"resources":{"limits":{"memory":"20Mi"}}`), engine.OutOfMemory, job.ExitCode{Signal: 9}, "OOMKilled"},
		} {
			set := podspec.Set{Kind: "Job", Name: "fails", Roles: []podspec.Role{
				{Name: "good", Replicas: 1, PodName: "good-0", Template: podOf("exec sleep 600", "", "")},
				{Name: "bad", Replicas: 1, PodName: "bad-0", Template: c.worker},
			}}
			if r := run(t, manifest(t, uint64(710+n), set, "n1", "n2")); r.Cause != c.cause || r.Exit != c.exit || !strings.Contains(r.Message, c.says) {
				t.Errorf("%s: %+v", c.says, r)
			}
		}
	})
	t.Run("SameFiles", func(t *testing.T) { testManifestFiles(t, b) })
	t.Run("Serves", func(t *testing.T) { testManifestServes(t, b, e) })
	t.Run("Restart", func(t *testing.T) { testManifestRestart(t, b) })
	t.Run("Refused", func(t *testing.T) {
		l := manifest(t, 790, podspec.Set{Kind: "Pod", Name: "p", Roles: []podspec.Role{{Name: "p", Replicas: 1, PodName: "p", Template: podOf("true", `,"volumes":[{"name":"v","hostPath":{"path":"/"}}]`, "")}}}, "n1")
		for what, err := range map[string]error{"at the door": e.Admit(t.Context(), &engine.JobDraft{Spec: l.Job.Spec, Script: l.Script}), "at the launch": e.Launch(t.Context(), l)} {
			if fault.KindOf(err) != fault.Permission || !strings.Contains(err.Error(), "pod template of p: spec.volumes[0].hostPath") || !strings.Contains(fault.Remedy(err), "`allow: [host_path]`") {
				t.Errorf("%s: %v (%s)", what, err, fault.Remedy(err))
			}
		}
	})
}

// testManifestServes: a replica of a Deployment is ready as its own probe says, is begun again in its pod when it
// ends, and clients find it by the Service of the manifest.
func testManifestServes(t *testing.T, b *bench, e *kube.Engine) {
	l := manifest(t, 720, podspec.Set{
		Kind: "Deployment", Name: "web", Services: []podspec.Service{{Name: "front", Ports: []podspec.Port{{Port: 80, Target: "http"}}}},
		Roles: []podspec.Role{{Name: "web", Replicas: 1, PodName: "web-0", Template: podOf(
			namesTold+`serve; : >/tmp/www/ready; if [ -e /scratch/again ]; then rm /scratch/again; exit 3; fi; until [ -e /scratch/again ]; do sleep 0.2; done`,
			`,"volumes":[{"name":"scratch","emptyDir":{}}]`,
			`,"ports":[{"name":"http","containerPort":8080}],"readinessProbe":{"periodSeconds":1,"failureThreshold":1,"httpGet":{"path":"/ready","port":"http"}},"volumeMounts":[{"name":"scratch","mountPath":"/scratch"}]`,
		)}},
	}, "n1")
	l.Job.Spec.Serve = &job.Serve{Ports: []job.Port{{Name: "http", Number: 8080}}}
	l.Job.Spec.Part = &job.Part{Controller: "service/web", Revision: 1}
	r := begin(t, e, l)
	ready := untilServes(t, e, l.Ref, func(s engine.Endpoints) bool { return s.Ready })
	if ready.List[0].Port != "http" || ready.List[0].Number != 8080 || ready.List[0].Host == "" {
		t.Errorf("%+v", ready)
	}
	pod := r.Native + "-0"
	until(t, "the Service has the pod", func() bool {
		return strings.TrimSpace(b.l.Kubectl(t, "get", "endpointslices", "-l", "kubernetes.io/service-name=front", "--output=jsonpath={.items[*].endpoints[*].addresses[0]}")) == ready.List[0].Host
	})
	b.l.Kubectl(t, "exec", pod, "--", "touch", "/scratch/again")
	untilServes(t, e, l.Ref, func(s engine.Endpoints) bool { return !s.Ready })
	untilServes(t, e, l.Ref, func(s engine.Endpoints) bool { return s.Ready })
	if got := b.l.Kubectl(t, "get", "pod", pod, "--output=jsonpath={.status.containerStatuses[0].restartCount}"); got == "0" {
		t.Errorf("it was begun again %s times", got)
	}
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: time.Second, Reason: "it is replaced"}); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); r.Cause != engine.Stopped || r.Message != "it is replaced" {
		t.Errorf("%+v", r)
	}
}

// testManifestRestart: a driver that begins anew follows the pods of a manifest, and knows which of them decide.
//
// Seen to fail with: a script that is not kept in the journal.
func testManifestRestart(t *testing.T, b *bench) {
	root := t.TempDir()
	e := b.open(t, root)
	l := manifest(t, 730, podspec.Set{
		Kind: "PyTorchJob", Name: "again", Complete: &podspec.Complete{Roles: []string{"master"}},
		Roles: []podspec.Role{
			{Name: "master", Replicas: 1, PodName: "again-master-{i}", Template: podOf("until [ -e /tmp/over ]; do sleep 0.2; done; echo over", "", "")},
			{Name: "worker", Replicas: 1, PodName: "again-worker-{i}", Template: podOf("exec sleep 600", "", "")},
		},
	}, "n1", "n2")
	r := begin(t, e, l)
	b.close(t, e)
	e = b.open(t, root)
	if err := e.Launch(t.Context(), l); err != nil { // as after an answer that was lost
		t.Fatal(err)
	}
	b.l.Kubectl(t, "exec", r.Native+"-0", "--", "touch", "/tmp/over")
	if r := gone(t, e, l.Ref); r.Cause != engine.Exited || !r.Exit.OK() || toldBy(t, e, r, 0) != "over\n" {
		t.Errorf("%+v", r)
	}
}

// testManifestGangs: two gangs of five pods on eight devices, whose nodes the cluster's scheduler chooses: the first
// has five, and the other none until the first has ended.
func testManifestGangs(t *testing.T, b *bench, e *kube.Engine) {
	devices := map[string][]lab.Device{}
	for i := 1; i <= 4; i++ {
		n := fmt.Sprintf("n%d", i)
		devices[n] = gpus(n, 2)
	}
	b.l.Plug(t, gpu, devices)
	plan := func(n uint64) *engine.Launch {
		limits := `,"resources":{"limits":{"` + gpu + `":1}}`
		l := manifest(t, n, podspec.Set{Kind: "PyTorchJob", Name: fmt.Sprintf("g%d", n), Roles: []podspec.Role{
			{Name: "master", Replicas: 1, PodName: fmt.Sprintf("g%d-master", n), Template: podOf("until [ -e /tmp/over ]; do sleep 0.2; done; exit 0", "", limits)},
			{Name: "worker", Replicas: 4, PodName: fmt.Sprintf("g%d-worker-{i}", n), Template: podOf("exec sleep 600", "", limits)},
		}, Complete: &podspec.Complete{Roles: []string{"master"}}}, "n1")
		l.Claims = []fleet.Claim{{Node: "@kube", Tasks: 5}}
		return l
	}
	bound := func(n uint64) int {
		return len(strings.Fields(b.l.Kubectl(t, "get", "pods", "-l", fmt.Sprintf("coxswain.sh/allocation=%d", n), "--output=jsonpath={.items[*].spec.nodeName}")))
	}
	first, second := plan(741), plan(742)
	for _, l := range []*engine.Launch{first, second} {
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	runs := await(t, e, engine.Ref{}, "running", func(r engine.Report) bool {
		return (r.Ref == first.Ref || r.Ref == second.Ref) && r.Phase == engine.Running
	})
	winner, loser := first, second
	if runs.Ref == second.Ref {
		winner, loser = second, first
	}
	await(t, e, loser.Ref, "waiting with the scheduler's words", func(r engine.Report) bool { return r.Phase == engine.Accepted && r.Message != "" })
	if w, l := bound(winner.Ref.Allocation), bound(loser.Ref.Allocation); w != 5 || l != 0 {
		t.Errorf("the gangs have %d and %d pods on nodes", w, l)
	}
	b.l.Kubectl(t, "exec", runs.Native+"-0", "--", "touch", "/tmp/over")
	if r := gone(t, e, winner.Ref); r.Cause != engine.Exited || !r.Exit.OK() {
		t.Errorf("%+v", r)
	}
	await(t, e, loser.Ref, "running", func(r engine.Report) bool { return r.Phase == engine.Running })
	if n := bound(loser.Ref.Allocation); n != 5 {
		t.Errorf("the second gang has %d pods on nodes", n)
	}
	if err := e.Stop(t.Context(), loser.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	gone(t, e, loser.Ref)
}

// testManifestFiles: a PyTorchJob writes the same files as on this machine and on Slurm.
func testManifestFiles(t *testing.T, b *bench) {
	c := b.config(t, t.TempDir())
	c.Terms.Allow = []string{"host_path"}
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer b.clear(t, e)
	results := t.TempDir()
	w, secrets, err := samejob.Read(lab.Base, results)
	if err != nil {
		t.Fatal(err)
	}
	l := manifest(t, 740, *w.Set, "n1", "n2")
	l.Job.Spec.Secrets, l.Secrets = w.Job.Secrets, secrets
	if err := e.Admit(t.Context(), &engine.JobDraft{Spec: l.Job.Spec, Script: l.Script}); err != nil {
		t.Fatalf("%v (%s)", err, fault.Remedy(err))
	}
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, l.Ref)
	if problem := samejob.CheckFiles(results); !r.Exit.OK() || problem != "" {
		t.Errorf("%+v: %s", r, problem)
	}
}
