package kube_test

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kube"
	"github.com/coxswain-sched/coxswain/engine/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine/kube/lab"
	"github.com/coxswain-sched/coxswain/fault"
)

// TestRights: an account that has the roles of the manifest and nothing else looks at the
// cluster and runs jobs there, and the API server's own record of what it did has each verb
// of the roles. Without them each is found missing.
func TestRights(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, record := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n  users: [ann]\n- level: None\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := lab.Start(t, lab.Config{Kubelets: 1, NoScheduler: true, APIServer: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + record}})
	terms := kube.Terms{Pool: "k8s-a", Namespace: "cox", Placed: true, Reserve: true, Image: lab.Base, AgentImage: lab.Cox}
	ann, err := cluster.Open(cluster.Config{Kubeconfig: l.User(t, "ann", "research"), Namespace: "cox"})
	if err != nil {
		t.Fatal(err)
	}
	s := kube.NewSurvey(ann, terms, "")
	l.Kubectl(t, "create", "namespace", "cox")

	var want []string
	for _, r := range kube.Rights(&terms, nil) {
		for _, v := range r.Verbs {
			want = append(want, strings.TrimSpace(v+" "+r.String()+map[bool]string{true: " everywhere"}[r.All]))
		}
	}
	slices.Sort(want)
	if d := cmp.Diff(want, lacks(t, s)); d != "" {
		t.Errorf("without any right: %s", d)
	}
	if _, err := s.Nodes(t.Context()); fault.KindOf(err) != fault.Permission {
		t.Errorf("nodes without rights: %v", err)
	}

	l.Apply(t, kube.Manifest(&terms, nil, kube.Subject{Kind: "User", Name: "ann"}))
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // the API server reads roles when it gets to it
		if left := lacks(t, s); len(left) == 0 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("with the manifest's roles there is still missing: %q", left)
		}
	}
	if nodes, err := s.Nodes(t.Context()); err != nil || len(nodes) != 1 || nodes[0].Name != "n1" {
		t.Errorf("nodes: %+v %v", nodes, err)
	}
	keeps, err := kube.PolicyManifest(&terms, kube.Subject{Kind: "User", Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	l.Apply(t, keeps)
	work(t, l, kube.Config{Root: filepath.Join(dir, "state"), Cluster: ann, Terms: terms, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})

	got := did(t, record)
	// What is asked only where a create had no answer, or another's object is in the way, or a
	// node comes later, and the two forms in which a shell is opened, of which a server takes one.
	rare := []string{"patch configmaps", "get pods", "get services", "create pods/exec", "get pods/exec"}
	for _, w := range want {
		if !slices.Contains(got, w) && !slices.Contains(rare, w) {
			t.Errorf("%s is asked for and not used", w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("%s is used and not in the roles", g)
		}
	}
}

// lacks are the rights that a look finds missing: "create pods", "list nodes everywhere".
func lacks(t *testing.T, s *kube.Survey) (out []string) {
	t.Helper()
	found, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.What != "rights" || f.State == engine.Found {
			continue
		}
		what, _, _ := strings.Cut(f.Text, ": ")
		what, everywhere := strings.CutSuffix(what, " in the whole cluster")
		what = strings.TrimSuffix(what, " in namespace cox")
		i := strings.LastIndexByte(what, ' ')
		for v := range strings.SplitSeq(what[:i], ", ") {
			out = append(out, v+what[i:]+map[bool]string{true: " everywhere"}[everywhere])
		}
	}
	slices.Sort(out)
	return out
}

// work runs jobs to their ends: one that ends by itself, and one that is stopped.
func work(t *testing.T, l *lab.Lab, c kube.Config) {
	t.Helper()
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Leave(t.Context()); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := e.Nodes(t.Context()); err != nil {
		t.Error(err)
	}
	l.Kubectl(t, "wait", "node/n1", "--for=jsonpath={.spec.taints[?(@.key=='coxswain.sh/pool')].value}=k8s-a", "--timeout=150s")
	first, second := launch(1, "#!/bin/sh\necho hello\nexit 3\n", "n1"), launch(2, forever, "n1")
	if err := e.Launch(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, first.Ref); r.Exit.Status != 3 {
		t.Errorf("%+v", r)
	}
	begin(t, e, second)
	if err := e.Signal(t.Context(), second.Ref, 10, engine.ToAll); err != nil {
		t.Errorf("signal: %v", err)
	}
	if err := e.Stop(t.Context(), second.Ref, engine.Stop{}); err != nil {
		t.Error(err)
	}
	gone(t, e, second.Ref)
	for _, ref := range []engine.Ref{first.Ref, second.Ref} {
		if err := e.Forget(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	for end := time.Now().Add(time.Minute); l.Kubectl(t, "get", "secrets,pods", "--namespace=cox", "--output=name") != ""; time.Sleep(50 * time.Millisecond) { // there is no event for it
		if time.Now().After(end) {
			t.Fatalf("of forgotten attempts there is left:\n%s", l.Kubectl(t, "get", "secrets,pods", "--namespace=cox"))
		}
	}
}

// did is what ann was let do, as the API server wrote it down, in the words of lacks. What
// everybody may do is not in it.
func did(t *testing.T, record string) (out []string) {
	t.Helper()
	f, err := os.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb      string `json:"verb"`
			ObjectRef *struct {
				Resource, Namespace, APIGroup, Subresource, Name string
			} `json:"objectRef"`
			Annotations map[string]string `json:"annotations"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		o := e.ObjectRef
		if o == nil || e.Annotations["authorization.k8s.io/decision"] != "allow" || strings.HasPrefix(o.Resource, "selfsubject") {
			continue
		}
		what := o.Resource
		if o.Subresource != "" {
			what += "/" + o.Subresource
		}
		if o.APIGroup != "" {
			what += "." + o.APIGroup
		}
		if o.Namespace == "" || o.Resource == "namespaces" {
			what += " everywhere"
		}
		if what = e.Verb + " " + what; !slices.Contains(out, what) {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}
