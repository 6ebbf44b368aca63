package security

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// doorOf is the engine of a pool of Kubernetes that lets jobs have some words. Its cluster answers nothing.
func doorOf(t *testing.T, allow ...string) *kube.Engine {
	t.Helper()
	mute := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(mute.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"`+mute.URL+`"}}],"users":[{"name":"u","user":{}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := cluster.Open(cluster.Config{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	e, err := kube.New(kube.Config{Root: dir, Cluster: k, Terms: settings.Terms{Pool: "k8s", Namespace: "jobs", Placed: true, AgentImage: "agent", Allow: allow}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// manifestDraft is a manifest's job of anna's, of one pod.
func manifestDraft(t *testing.T, spec string) *engine.JobDraft {
	t.Helper()
	spec = strings.ReplaceAll(spec, "{C", `{"name":"c","image":"i"`)
	set := podspec.Set{Kind: "Pod", Name: "p", Roles: []podspec.Role{{Name: "pod", Replicas: 1, PodName: "p", Template: json.RawMessage(`{"spec":` + spec + `}`)}}}
	script, err := json.Marshal(&set)
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	who := people["anna"]
	return &engine.JobDraft{Script: script, Spec: &job.Spec{
		Owner: job.Owner{User: who.Name, UID: who.UID, GID: who.GID}, Program: job.Program{Kind: job.Pods}, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}},
	}}
}

// TestManifestRights: each field of testdata/manifest-rights.txt passes in a pool that has its word, and in no other;
// what is refused names the field, and the word that an administrator would add.
func TestManifestRights(t *testing.T) {
	text, err := os.ReadFile("testdata/manifest-rights.txt")
	if err != nil {
		t.Fatal(err)
	}
	type right struct {
		field, word string
		draft       *engine.JobDraft
	}
	var all []right
	words := []string{"none"}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) < 3 || f[0] == "#" {
			continue
		}
		all = append(all, right{f[0], f[1], manifestDraft(t, f[2])})
		if !slices.Contains(words, f[1]) {
			words = append(words, f[1])
		}
	}
	for _, w := range settings.Allowances() {
		if !slices.Contains(words, w) && !strings.HasPrefix(w, "volume/") && !slices.Contains([]string{"labels", "annotations", "resource_claims"}, w) {
			t.Errorf("no field is tried for the word %s", w)
		}
	}
	for _, word := range words {
		door := doorOf(t, word)
		for _, r := range all {
			err := door.Admit(t.Context(), r.draft)
			if r.word == word && word != "none" {
				if err != nil {
					t.Errorf("allow: [%s]: %s: %v", word, r.field, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), r.field) {
				t.Errorf("allow: [%s]: %s (%s) is not refused by its name: %v", word, r.field, r.draft.Script, err)
			}
			if want := "`allow: [" + r.word + "]`"; r.word != "none" && (fault.KindOf(err) != fault.Permission || !strings.Contains(fault.Remedy(err), want)) {
				t.Errorf("allow: [%s]: %s: the remedy is %q, want %s", word, r.field, fault.Remedy(err), want)
			}
		}
	}
	everything := doorOf(t, settings.Allowances()...)
	for _, r := range all {
		if err := everything.Admit(t.Context(), r.draft); (err != nil) != (r.word == "none") {
			t.Errorf("where all is allowed: %s: %v", r.field, err)
		}
	}
}

// TestManifestLies: who writes the set of pods by hand gets no more by it: a Secret of somebody's that is said to be
// of the file is not, and labels of an operator's are as those of a template.
func TestManifestLies(t *testing.T) {
	door := doorOf(t)
	for what, change := range map[string]func(*podspec.Set){
		"a Secret of the file that the job is not given": func(s *podspec.Set) {
			s.Secrets = []podspec.Secret{{Name: "of-ben", Keys: []string{"token"}}}
		},
		"a label of Coxswain's": func(s *podspec.Set) { s.Roles[0].Labels = map[string]string{"coxswain.sh/server": "other"} },
		"a label of a queue's":  func(s *podspec.Set) { s.Roles[0].Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"} },
		"an annotation of a network's": func(s *podspec.Set) {
			s.Roles[0].Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "n"}
		},
		"a file outside of a container": func(s *podspec.Set) { s.Roles[0].Files = map[string]string{"etc/passwd": "x"} },
		"a host name of two hosts":      func(s *podspec.Set) { s.Roles[0].PodName = "a.b" },
	} {
		d := manifestDraft(t, `{"containers":[{C}]}`)
		var set podspec.Set
		if err := json.Unmarshal(d.Script, &set); err != nil {
			t.Fatal(err)
		}
		change(&set)
		d.Script, _ = json.Marshal(&set)
		if err := door.Admit(t.Context(), d); err == nil || fault.Remedy(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
