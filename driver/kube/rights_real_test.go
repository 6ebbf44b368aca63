package kube_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/inventory"
	"github.com/coxswain-sched/coxswain/driver/kube/preflight"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// TestRights: accounts of the cluster that have the roles of the manifest and nothing else run
// jobs there, and the API server's own record of what they did has each verb of the roles and no
// other. Without them each is found missing.
func TestRights(t *testing.T) {
	t.Parallel()
	a := audited(t, lab.Config{Kubelets: 1, NoScheduler: true})
	t.Run("Placed", func(t *testing.T) {
		terms := settings.Terms{Pool: "k8s-a", Namespace: "cox", Placed: true, Reserve: true, Handover: true, Image: lab.Base, AgentImage: lab.Cox, PriorityClass: "batch"}
		scratch, err := settings.ParseVolume("ephemeral:1Mi,class=lab-waits")
		if err != nil {
			t.Fatal(err)
		}
		home := settings.Volume{Kind: settings.Claim, Name: "home"}
		terms.Paths, terms.WorkDir = []settings.Path{{Prefix: "/scratch", Volume: scratch}, {Prefix: "/data", Volume: home}}, settings.WorkDirEmpty
		provisions(t, a.l)
		a.l.Kubectl(t, "create", "namespace", "cox")
		a.l.Kubectl(t, "create", "priorityclass", "batch", "--value=7")
		a.l.Apply(t, fmt.Sprintf(`
{apiVersion: v1, kind: PersistentVolume, metadata: {name: home}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: by-hand, persistentVolumeReclaimPolicy: Retain, hostPath: {path: %q}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: home, namespace: cox}, spec: {storageClassName: by-hand, volumeName: home, accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}
`, t.TempDir()))
		a.l.Kubectl(t, "wait", "pvc/home", "--namespace", "cox", "--for=jsonpath={.status.phase}=Bound", "--timeout=5m")
		a.prove(t, "ann", terms, nil, twoOnOne)
	})
	t.Run("Claims", func(t *testing.T) { testClaimRights(t, a) })
	t.Run("Accounts", func(t *testing.T) { testAccountRights(t, a) })
}

// twoOnOne is a job of two pods, which have names, on one node.
func twoOnOne(allocation uint64, script string) *engine.Launch {
	l := launch(allocation, script, "n1")
	l.Job.Spec.Groups = []job.TaskGroup{{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 2}, TasksPerNode: 2}}
	l.Job.Spec.Pod = &job.Pod{PerTask: true}
	l.Claims[0].Tasks = 2
	return l
}

// audit is a lab whose API server writes down what is done.
type audit struct {
	l      *lab.Lab
	record string
}

// audited starts one. It writes down what users do whose names begin so, or who are named.
func audited(t *testing.T, c lab.Config) *audit {
	t.Helper()
	dir := t.TempDir()
	policy, record := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n  users: [ann, bea, cid, dan]\n- level: None\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.APIServer = append(c.APIServer, "--audit-policy-file="+policy, "--audit-log-path="+record)
	return &audit{lab.Start(t, c), record}
}

// prove has a user, who has nothing but the roles, do what a pool of these terms does, and compares
// the verbs of the roles with those that were used.
// Those of unseen are proved elsewhere.
func (a *audit) prove(t *testing.T, user string, terms settings.Terms, gang *gang.Gang, job func(allocation uint64, script string) *engine.Launch, unseen ...string) {
	t.Helper()
	k, err := cluster.Open(cluster.Config{Kubeconfig: a.l.User(t, user, "research"), Namespace: terms.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	nodes := inventory.New(k, terms, "")
	for _, ns := range terms.Spaces() {
		if _, err := a.l.Try(t.Context(), "", "get", "namespace", ns); err != nil { // there is none yet
			a.l.Kubectl(t, "create", "namespace", ns)
		}
	}
	var want []string
	for _, r := range preflight.Rights(&terms, gang) {
		for _, v := range r.Verbs {
			want = append(want, rightWords(v, &r))
		}
	}
	slices.Sort(want)
	if d := cmp.Diff(want, lacks(t, k, terms)); d != "" {
		t.Errorf("without any right: %s", d)
	}
	if _, err := nodes.Nodes(t.Context()); fault.KindOf(err) != fault.Permission {
		t.Errorf("nodes without rights: %v", err)
	}
	a.l.Apply(t, preflight.Manifest(&terms, gang, settings.Subject{Kind: "User", Name: user}))
	until(t, "the manifest's roles are all that it takes", func() bool {
		left := lacks(t, k, terms)
		if len(left) > 0 {
			t.Logf("missing: %q", left)
		}
		return len(left) == 0
	})
	if all, err := nodes.Nodes(t.Context()); err != nil || len(all) == 0 {
		t.Errorf("nodes: %+v %v", all, err)
	}
	if terms.Reserve {
		keeps, err := preflight.PolicyManifest(&terms, settings.Subject{Kind: "User", Name: user})
		if err != nil {
			t.Fatal(err)
		}
		a.l.Apply(t, keeps)
	}
	a.work(t, kube.Config{Root: filepath.Join(t.TempDir(), "state"), Cluster: k, Terms: terms, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}, job)

	got := a.did(t, user)
	for _, w := range want {
		// The roles of namespaces have the same verbs; to open a shell is written down as get alone, and
		// needs create too (shellNeedsBoth); pods are deleted of jobs that cannot begin, of which there is
		// one alone (work); a Service is changed where a second replica joins it, and ConfigMaps are made of
		// manifests, as TestKubelets does.
		configMaps := strings.HasPrefix(w, "create configmaps in ") || strings.HasPrefix(w, "get configmaps in ")
		used := !terms.Reserve && configMaps || strings.HasPrefix(w, "create pods/exec in ") || strings.HasPrefix(w, "patch services in ") || !terms.Reserve && strings.HasPrefix(w, "delete pods in ") || slices.Contains(unseen, w)
		if verb, everywhere := strings.CutSuffix(w, " everywhere"); everywhere { // of one object
			used = used || slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, verb+" in ") })
		}
		for _, ns := range terms.Spaces() {
			verb, _, in := strings.Cut(w, " in ")
			used = used || slices.Contains(got, w) || in && slices.Contains(got, verb+" in "+ns)
		}
		if !used {
			t.Errorf("%s is asked for and not used", w)
		}
	}
	for _, g := range got {
		verb, _, _ := strings.Cut(g, " in ")
		if !slices.Contains(want, g) && !slices.Contains(want, verb+" everywhere") {
			t.Errorf("%s is used and not in the roles", g)
		}
	}
}

// rightWords are "create pods in cox", "list nodes everywhere".
func rightWords(verb string, r *preflight.Right) string {
	switch {
	case r.All && verb == "impersonate":
		return verb + " " + r.String() + " " + r.Name + " everywhere"
	case r.All:
		return verb + " " + r.String() + " everywhere"
	case verb == "impersonate":
		return verb + " " + r.String() + " " + r.Name + " in " + r.Namespace
	}
	return verb + " " + r.String() + " in " + r.Namespace
}

// lacks are the rights of the pool's own account that a look finds missing, in these words.
func lacks(t *testing.T, k *cluster.Cluster, terms settings.Terms) (out []string) {
	t.Helper()
	found, err := preflight.Check(t.Context(), k, terms, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.What != "rights" || f.State == engine.Found {
			continue
		}
		what, _, _ := strings.Cut(f.Text, ": ")
		if strings.Contains(what, ", for ") { // of those in whose names jobs are made
			continue
		}
		what, where, in := strings.Cut(what, " in namespace ")
		if in {
			where = " in " + where
		} else {
			what, where = strings.TrimSuffix(what, " in the whole cluster"), " everywhere"
		}
		verbs := ""
		for {
			v, rest, _ := strings.Cut(what, " ")
			verbs, what = verbs+v, rest
			if !strings.HasSuffix(v, ",") {
				break
			}
		}
		for v := range strings.SplitSeq(verbs, ",") {
			out = append(out, v+" "+what+where)
		}
	}
	slices.Sort(out)
	return out
}

// work runs jobs to their ends: one that ends by itself, and one that is stopped; between them the
// driver is lost before it has written down that all was made.
func (a *audit) work(t *testing.T, c kube.Config, job func(allocation uint64, script string) *engine.Launch) {
	t.Helper()
	l := a.l
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // after a failure an attempt may go on
		defer cancel()
		if err := e.Leave(ctx); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := e.Nodes(t.Context()); err != nil {
		t.Error(err)
	}
	if c.Terms.Reserve {
		l.Kubectl(t, "wait", "node/n1", "--for=jsonpath={.spec.taints[?(@.key=='coxswain.sh/pool')].value}=k8s-a", "--timeout=5m")
		l.Kubectl(t, "patch", "configmap", "coxswain-k8s-a", "--namespace=cox", "--type=merge", "-p", `{"data":{"n1":null}}`) // as for a node that comes later
		if _, err := e.Nodes(t.Context()); err != nil {
			t.Error(err)
		}
		l.Kubectl(t, "wait", "configmap/coxswain-k8s-a", "--namespace=cox", "--for=jsonpath={.data.n1}", "--timeout=5m")
	}
	if c.Terms.Handover {
		a.closeNode(t, e)
	}
	first, second := job(1, "#!/bin/sh\necho hello\nexit 3\n"), job(2, forever)
	if err := e.Launch(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, first.Ref); r.Exit.Status != 3 {
		t.Errorf("%+v", r)
	}
	begin(t, e, second)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	forgetMade(t, filepath.Join(c.Root, "kube"))
	if e, err = kube.New(c); err != nil {
		t.Fatal(err)
	}
	await(t, e, second.Ref, "running", func(r engine.Report) bool { return r.Phase == engine.Running })
	if c.Terms.Reserve {
		a.shellNeedsBoth(t, c.Terms.Namespace)
	}
	if err := e.Signal(t.Context(), second.Ref, 18, engine.ToAll); err != nil {
		t.Errorf("signal: %v", err)
	}
	if err := e.Stop(t.Context(), second.Ref, engine.Stop{}); err != nil {
		t.Error(err)
	}
	gone(t, e, second.Ref)
	refs := []engine.Ref{first.Ref, second.Ref}
	if c.Terms.Reserve { // once is enough: one that cannot begin, so that nobody in its pods could be told to end, and they are deleted
		l := job(3, forever)
		l.Job.Spec.Image = "lab/None"
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		gone(t, e, l.Ref)
		refs = append(refs, l.Ref)
	}
	for _, ref := range refs {
		if err := e.Forget(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	for _, ns := range c.Terms.Spaces() {
		l.Emptied(t, ns, "secrets,pods")
	}
}

// closeNode closes a node with a pod of somebody else's on it, which goes on, and opens it.
func (a *audit) closeNode(t *testing.T, e *kube.Engine) {
	t.Helper()
	a.l.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: others, labels: {coxswain.sh/everywhere: 'true'}}\n")
	stays := strings.Replace(othersPod("stays", ", nodeName: n1, automountServiceAccountToken: false"), "{name: stays}", "{name: stays, namespace: others}", 1)
	until(t, "the namespace may have pods on the node", func() bool {
		_, err := a.l.Try(t.Context(), stays, "apply", "-f", "-")
		return err == nil
	})
	a.l.Kubectl(t, "wait", "pod/stays", "--namespace=others", "--for=jsonpath={.status.phase}=Running", "--timeout=5m")
	f := engine.NodeFence{Epoch: 1, Reason: "test"}
	defer func() { // other tests use the node, whatever becomes of this one
		if err := e.Unfence(t.Context(), "n1", f); err != nil {
			t.Error(err)
		}
		if _, err := a.l.Try(t.Context(), "", "delete", "pod", "stays", "--namespace=others", "--ignore-not-found"); err != nil {
			t.Error(err)
		}
	}()
	if err := e.Fence(t.Context(), "n1", f); err != nil {
		t.Fatal(err)
	}
	until(t, "its kubelet is heard of", func() bool {
		c, err := e.Empty(t.Context(), "n1")
		if err != nil || len(c.Work) != 1 || c.Work[0].Name != "others/stays" {
			t.Fatalf("%+v, %v", c, err)
		}
		return len(c.Unknown) == 0
	})
	if got := a.l.Kubectl(t, "get", "pod", "stays", "--namespace=others", "-o", "jsonpath={.status.phase}"); got != "Running" {
		t.Errorf("a pod that ran when its node was fenced is %s", got)
	}
}

// shellNeedsBoth: who may get pods/exec and not create it opens no shell in the second job's pod.
func (a *audit) shellNeedsBoth(t *testing.T, ns string) {
	t.Helper()
	eve, err := cluster.Open(cluster.Config{Kubeconfig: a.l.User(t, "eve")})
	if err != nil {
		t.Fatal(err)
	}
	pod := a.l.Kubectl(t, "get", "pods", "--namespace="+ns, "-l", "coxswain.sh/allocation=2", "-o", "jsonpath={.items[0].metadata.name}")
	try := func() error {
		code, err := eve.Exec(t.Context(), cluster.Command{Namespace: ns, Pod: pod, Container: "job", Args: []string{"/cox/bin/cox-pod", "started"}})
		if err == nil && code != 0 {
			t.Errorf("cox-pod started: %d", code)
		}
		return err
	}
	role := func(verbs string) string {
		return `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: eve, namespace: ` + ns + `}
rules: [{apiGroups: [""], resources: [pods/exec], verbs: [` + verbs + `]}, {apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: eve, namespace: ` + ns + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: eve}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
`
	}
	a.l.Apply(t, role("get"))
	until(t, "eve may get pods", func() bool { return eve.Get(t.Context(), cluster.Pods, ns, pod, nil) == nil })
	if err := try(); err == nil {
		t.Error("without the right to create pods/exec a shell opens")
	}
	a.l.Apply(t, role("get, create"))
	until(t, "with both rights a shell opens", func() bool { return try() == nil })
}

// forgetMade takes from a journal what was written down after a launch.
func forgetMade(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	cut := false
	for line := range strings.Lines(string(text)) {
		var e struct {
			Kind string
			Ref  engine.Ref
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Ref.Allocation == 2 && (e.Kind == "made" || e.Kind == "start") {
			cut = true
			continue
		}
		out = append(out, line)
	}
	if !cut {
		t.Fatalf("the journal has nothing of the second attempt's objects:\n%s", text)
	}
	if err := os.WriteFile(file, []byte(strings.Join(out, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// deed is what somebody was let do, as the API server wrote it down.
type deed struct{ user, as, verb, what, namespace string }

// deeds are those of a user, each once. What everybody may do is not in it.
func (a *audit) deeds(t *testing.T, user string) (out []deed) {
	t.Helper()
	f, err := os.Open(a.record)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb      string `json:"verb"`
			User      struct{ Username string }
			As        struct{ Username string } `json:"impersonatedUser"`
			ObjectRef *struct {
				Resource, Namespace, APIGroup, Subresource, Name string
			} `json:"objectRef"`
			Annotations map[string]string `json:"annotations"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		o := e.ObjectRef
		if o == nil || e.User.Username != user || e.Annotations["authorization.k8s.io/decision"] != "allow" || strings.HasPrefix(o.Resource, "selfsubject") {
			continue
		}
		d := deed{user, e.As.Username, e.Verb, o.Resource, o.Namespace}
		if o.Subresource != "" {
			d.what += "/" + o.Subresource
		}
		if o.APIGroup != "" {
			d.what += "." + o.APIGroup
		}
		if o.Resource == "namespaces" {
			d.namespace = ""
		}
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// did are the deeds in a user's own name, in the words of lacks, and as whom else it did any.
func (a *audit) did(t *testing.T, user string) (out []string) {
	t.Helper()
	for _, d := range a.deeds(t, user) {
		what := d.verb + " " + d.what
		switch {
		case d.as != "":
			if what = "impersonate users " + d.as + " everywhere"; strings.HasPrefix(d.as, "system:serviceaccount:") {
				p := strings.Split(d.as, ":")
				what = "impersonate serviceaccounts " + p[3] + " in " + p[2]
			}
		case d.namespace == "":
			what += " everywhere"
		default:
			what += " in " + d.namespace
		}
		if !slices.Contains(out, what) {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// testAccountRights: of two accounts that have namespaces and identities of their own the pool
// makes nothing itself, and the API server's record has who did.
func testAccountRights(t *testing.T, a *audit) {
	terms := settings.Terms{
		Pool: "k8s-b", Namespace: "base", Placed: true, Image: lab.Base, AgentImage: lab.Cox, OnlyNamed: true,
		Namespaces:  map[string]string{"nlp": "team-nlp", "vision": "team-vision"},
		Impersonate: map[string]settings.Subject{"nlp": {Kind: "User", Name: "nlp-batch"}, "vision": {Kind: "ServiceAccount", Name: "runner"}},
	}
	a.prove(t, "bea", terms, nil, func(allocation uint64, script string) *engine.Launch {
		l := twoOnOne(allocation, script)
		l.Job.Spec.Account = []string{"nlp", "vision"}[allocation-1]
		return l
	})
	by := map[string][]string{}
	for _, d := range a.deeds(t, "bea") {
		if d.verb == "create" && (d.what == "pods" || d.what == "secrets" || d.what == "services") || d.as != "" {
			by[d.as] = append(by[d.as], d.verb+" "+d.what+" in "+d.namespace)
		}
	}
	for _, list := range by {
		slices.Sort(list)
	}
	made := func(ns string) []string {
		return []string{"create pods in " + ns, "create secrets in " + ns, "create services in " + ns}
	}
	want := map[string][]string{"nlp-batch": made("team-nlp"), "system:serviceaccount:team-vision:runner": made("team-vision")}
	if d := cmp.Diff(want, by); d != "" {
		t.Errorf("who made what: %s", d)
	}

	k, err := cluster.Open(cluster.Config{Kubeconfig: a.l.User(t, "bea", "research")})
	if err != nil {
		t.Fatal(err)
	}
	const text = "create pods in namespace team-nlp, for nlp-batch: jobs are made in this name"
	says := func(state engine.FindingState, what, text string) bool {
		found, err := preflight.Check(t.Context(), k, terms, nil)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(found, func(f engine.Finding) bool {
			return f.State == state && f.What == what && f.Text == text && (state == engine.Found || strings.Contains(f.Mend, `--set 'namespaces={"nlp":"team-nlp","vision":"team-vision"}' --set only_named=true --set 'impersonate={"nlp":"user:nlp-batch","vision":"serviceaccount:runner"}'`))
		})
	}
	if !says(engine.Found, "jobs as", "nlp-batch, who may make them in namespace team-nlp") || says(engine.Missing, "rights", text) {
		t.Error("the look does not find nlp-batch")
	}
	a.l.Kubectl(t, "delete", "rolebinding", "coxswain-k8s-b-jobs", "--namespace=team-nlp")
	until(t, "the look finds that nlp-batch may make nothing", func() bool { return says(engine.Missing, "rights", text) })
}
