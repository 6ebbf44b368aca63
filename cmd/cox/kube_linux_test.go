package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// TestKube adds a cluster of real Kubernetes to a server in one command, runs a job there and
// takes the cluster away.
func TestKube(t *testing.T) {
	c := lab.NativeGangs()
	c.Kubelets = 2
	l := lab.Start(t, c)
	s, _ := onPaper(t)
	file := l.Kubeconfig()

	// Before anything is there: what is missing is said, and nothing is added.
	add := []string{"pool", "add", "k8s-a", "--engine", "kube", "--kubeconfig", file, "--namespace", "cox"}
	s.cox(t, add...).Check(t, 4, "~", "~namespace: there is no namespace cox\n  kubectl create namespace cox\n")
	l.Kubectl(t, "create", "namespace", "cox")
	add = append(add, "--image", lab.Base, "--agent-image", lab.Cox)
	if said := s.ok(t, "pool k8s-a: nothing is missing", append(add, "--dry-run")...); !strings.Contains(said, "jobs find none of the files beside their script") {
		t.Errorf("nothing is said of the files that jobs do not find:\n%s", said)
	}
	s.ok(t, "pool k8s-a added", add...)
	s.ok(t, "k8s-a", "pool", "list")
	s.ok(t, "n[1-2]", "pool", "check", "k8s-a")

	script := filepath.Join(s.dir, "hello.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n#SBATCH --nodes=2 --chdir=/tmp\nsrun hostname\necho from $SLURM_JOB_NUM_NODES nodes\n"), 0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	// A file that is nowhere in the pods: the line that names it, and no job.
	lost := filepath.Join(s.dir, "lost.sh")
	if err := os.WriteFile(lost, []byte("#!/bin/sh\n#SBATCH --nodes=1\n#SBATCH --output=/srv/none/%j.out\ntrue\n"), 0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	s.cox(t, "submit", "--pool", "k8s-a", lost).Check(t, 2, "~", "~lost.sh:3: --output=/srv/none/%j.out: pool k8s-a: /srv/none/%j.out is nowhere in the pods: the pool has no volumes")
	s.ok(t, "1", "submit", "--pool", "k8s-a", script)
	s.ok(t, "COMPLETED", "wait", "1")
	s.ok(t, "from 2 nodes", "logs", "1")

	// Commands beside a job's tasks: in the script's place, and in that of a rank on the other node.
	if err := os.WriteFile(script, []byte("#!/bin/sh\n#SBATCH --nodes=2 --chdir=/tmp\nsrun sleep 600\n"), 0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	s.ok(t, "2", "submit", "--pool", "k8s-a", script)
	s.eventually(t, `^1 of job 2\n$`, "exec", "2.1", "--", "sh", "-c", "echo $SLURM_PROCID of job $SLURM_JOB_ID")
	s.ok(t, "script of job 2\n", "exec", "2", "--", "sh", "-c", "echo script$SLURM_STEP_ID of job $SLURM_JOB_ID")
	s.cox(t, "exec", "2", "--", "sh", "-c", "exit 7").Check(t, 7, "", "")
	s.cox(t, "exec", "2.7", "--", "true").Check(t, 3, "", "~no task 7 that runs")
	s.ok(t, "", "cancel", "2")
	kubeRefused(t, s, l)
	kubeDevices(t, s, l)
	kubeServes(t, s, l)
	l.Emptied(t, "cox", "pods") // another server's jobs have the same numbers
	s.ok(t, "k8s-a is gone", "pool", "remove", "k8s-a")
	t.Run("MakesRoom", func(t *testing.T) { kubeMakesRoom(t, l, add) })
	t.Run("Upload", func(t *testing.T) { kubeUpload(t, s, add) }) // in a working directory of its own
	kubeLocal(t, s, l, add)
	t.Run("Deadlock", func(t *testing.T) { kubeDeadlock(t, s, l, add) })
	kubeDelegated(t, s, l)
	kubeInside(t, l)
}

// kubeRefused: a policy of others refuses one of a job's pods its node. Nothing of it runs, it
// says why, and it is launched again, until the policy is gone; then it runs, once.
func kubeRefused(t *testing.T, s *slurmSite, l *lab.Lab) {
	t.Helper()
	l.Apply(t, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: theirs}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods/binding"]}]}
  validations: [{expression: "object.target.name != 'n2'", message: "not to n2"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: theirs}
spec: {policyName: theirs, validationActions: [Deny]}
`)
	for { // it takes notice after a while; what is refused is refused before it is looked for
		_, err := l.Try(t.Context(), `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"none","namespace":"cox"},"target":{"apiVersion":"v1","kind":"Node","name":"n2"}}`, "create", "--raw", "/api/v1/namespaces/cox/pods/none/binding", "-f", "-")
		if err != nil && strings.Contains(err.Error(), "not to n2") {
			break
		}
	}
	job := strings.Fields(s.ok(t, "submitted", "submit", "--pool", "k8s-a", s.file(t, "refused.sh", "#SBATCH --nodes=2 --chdir=/tmp\necho it runs\n")))[0]
	s.eventually(t, "(?s)PENDING.*not to n2", "show", job)
	l.Kubectl(t, "delete", "validatingadmissionpolicybinding/theirs", "validatingadmissionpolicy/theirs")
	s.ok(t, "COMPLETED", "wait", job)
	if said := s.ok(t, "it runs", "logs", job); strings.Count(said, "it runs") != 1 {
		t.Errorf("it printed %q", said)
	}
}

// kubeDevices: nodes get GPUs. cox verify says which each rank was given, and jobs never hold
// more than there are.
func kubeDevices(t *testing.T, s *slurmSite, l *lab.Lab) {
	t.Helper()
	all := map[string][]lab.Device{}
	for _, n := range l.Nodes {
		all[n] = []lab.Device{{ID: "GPU-" + n + "-a"}, {ID: "GPU-" + n + "-b"}}
	}
	l.Plug(t, "nvidia.com/gpu", all)
	s.eventually(t, "(?s)n1 .*gpu.*n2 .*gpu", "nodes")
	said := s.ok(t, "pool k8s-a runs gangs as it should", "verify", "k8s-a", "--dir", "/tmp", "--gpus-per-node", "2", "--fabric")
	if !strings.Contains(said, "bus bandwidth over TCP, of the slowest rank: 1 MB ") {
		t.Errorf("cox verify --fabric says\n%s", said)
	}
	if !regexp.MustCompile(`devices +2 on each: \S+ GPU-n\d-a,GPU-n\d-b; \S+ GPU-n\d-a,GPU-n\d-b\n`).MatchString(said) {
		t.Errorf("cox verify says\n%s", said)
	}
	script := func(gpus int) string {
		return s.file(t, fmt.Sprintf("gpus%d.sh", gpus), fmt.Sprintf("#SBATCH --gpus-per-node=%d --chdir=/tmp\nexec sleep 600\n", gpus))
	}
	if r := s.cox(t, "submit", "--pool", "k8s-a", script(3)); r.Code == 0 || !strings.Contains(r.Err, "GPU") {
		t.Errorf("three GPUs of nodes that have two: %+v", r)
	}
	var jobs []string
	for range 3 {
		jobs = append(jobs, strings.Fields(s.ok(t, "submitted", "submit", "--pool", "k8s-a", script(2)))[0])
	}
	s.eventually(t, "RUNNING", "show", jobs[0])
	s.eventually(t, "RUNNING", "show", jobs[1])
	s.ok(t, "PENDING", "show", jobs[2])
	s.ok(t, "", append([]string{"cancel"}, jobs...)...)
	for _, j := range jobs {
		s.cox(t, "wait", j)
	}
}

// kubeUpload: the directory where a job is submitted is in its pods, at its own path.
func kubeUpload(t *testing.T, s *slurmSite, add []string) {
	t.Helper()
	s.ok(t, "pool k8s-a added", append(add, "--set", "workdir=upload")...)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil { //nolint:gosec // a test's
		t.Fatal(err)
	}
	for name, text := range map[string]string{"data/in": "given", "data/secret.bin": "x", ".coxignore": "*.bin\n", "train.sh": "#!/bin/sh\n#SBATCH --nodes=2\nsrun sh -c 'echo $SLURM_PROCID in $PWD has $(ls data) $(cat " + dir + "/data/in)'\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // a test's
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	s.cox(t, "submit", "--pool", "k8s-a", "train.sh").Check(t, 2, "~", "~cox submit --upload")
	id := strings.Fields(s.ok(t, "submitted", "submit", "--pool", "k8s-a", "--upload", "train.sh"))[0]
	s.ok(t, "COMPLETED", "wait", id)
	for _, rank := range []string{"0", "1"} {
		s.ok(t, rank+" in "+dir+" has in given", "logs", id)
	}
	s.ok(t, "k8s-a is gone", "pool", "remove", "k8s-a")
}

// kubeLocal: a volume of the second node alone. A job runs there, though the first node would be
// taken otherwise, and its files are on the volume; one that asks for two nodes is refused.
func kubeLocal(t *testing.T, s *slurmSite, l *lab.Lab, add []string) {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o777); err != nil { //nolint:gosec // a volume of the test's pods
			t.Fatal(err)
		}
	}
	l.Apply(t, fmt.Sprintf(`
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk-of-n2}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: by-hand, persistentVolumeReclaimPolicy: Retain, local: {path: %q},
 nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n2]}]}]}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: disk, namespace: cox}, spec: {storageClassName: by-hand, volumeName: disk-of-n2, accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}
`, dir))
	l.Kubectl(t, "wait", "pvc/disk", "--namespace", "cox", "--for=jsonpath={.status.phase}=Bound", "--timeout=5m")
	run := func(script string) string {
		job := strings.Fields(s.ok(t, "submitted", "submit", "--pool", "k8s-a", s.file(t, "local.sh", "#SBATCH --nodes=1 --chdir=/tmp\n"+script)))[0]
		s.ok(t, "COMPLETED", "wait", job)
		return s.ok(t, job, "show", job)
	}
	on := regexp.MustCompile(`(?m)\bn[12]\b`)
	s.ok(t, "pool k8s-a added", add...)
	if said := run("true\n"); on.FindString(said) != "n1" {
		t.Errorf("without the volume it is not on n1: %s", said)
	}
	s.ok(t, "k8s-a is gone", "pool", "remove", "k8s-a")
	s.ok(t, "its volume disk-of-n2 is for nodes with kubernetes.io/hostname in (n2): 1 of 2, n2", append(add, "--set", `paths={"/data":"pvc:disk"}`, "--set", "workdir=empty")...)
	s.eventually(t, `n1 .*drain`, "nodes")
	if said := run("echo here >/data/was\n"); on.FindString(said) != "n2" {
		t.Errorf("with the volume it is not on n2: %s", said)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "was")); string(text) != "here\n" {
		t.Errorf("on the volume there is %q %v", text, err)
	}
	s.cox(t, "submit", "--pool", "k8s-a", s.file(t, "two.sh", "#SBATCH --nodes=2 --chdir=/tmp\ntrue\n")).
		Check(t, 2, "~", "~two.sh:3: --nodes=2: pool k8s-a: the job asks for 2 nodes, and of the pool's 2 nodes 1 can have its volumes (n2): claim disk (its volume disk-of-n2) of path /data only on nodes with kubernetes.io/hostname in (n2)")
	s.ok(t, "k8s-a is gone", "pool", "remove", "k8s-a")
}
