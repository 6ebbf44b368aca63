package work

import (
	"slices"
	"strings"
	"testing"
)

// TestPullSecrets: a Secret of the file by which images are pulled comes with the work. It is a pull secret alone as
// long as no container reads it.
func TestPullSecrets(t *testing.T) {
	login := "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{}'}\n---\n"
	pod := func(spec string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {imagePullSecrets: [{name: login}, {name: theirs}], containers: [{name: c, image: a" + spec + "}]}\n"
	}
	for _, c := range []struct {
		name, text string
		has, pulls bool
	}{
		{"of the cluster", pod(""), false, false},
		{"of the file", login + pod(""), true, true},
		{"a container reads it", login + pod(", envFrom: [{secretRef: {name: login}}]"), true, false},
	} {
		works, err := Read("x.yaml", []byte(c.text))
		if err != nil {
			t.Fatal(c.name, err)
		}
		w := works[0]
		const store = "login..dockerconfigjson"
		if _, has := w.Secrets[store]; has != c.has || (len(w.Job.Secrets) > 0) != c.has || slices.Contains(w.PullSecrets(), store) != c.pulls {
			t.Errorf("%s: has %v, secrets of the job %v, pull secrets %v", c.name, has, w.Job.Secrets, w.PullSecrets())
		}
	}
}

// TestKeysOfOneName: two keys that would be kept by one name are refused, and the message says which.
func TestKeysOfOneName(t *testing.T) {
	secret := func(name, keys string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: {" + keys + "}\n---\n"
	}
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: a\n    env:\n    - {name: A, valueFrom: {secretKeyRef: {name: a, key: b.c}}}\n    - {name: B, valueFrom: {secretKeyRef: {name: a.b, key: c}}}\n"
	for want, text := range map[string]string{
		"the key c of Secret a.b and the key b.c of Secret a are both kept as a.b.c":                            secret("a", "b.c: x") + secret("a.b", "c: z") + pod,
		"the key c of Secret a.b, which is not in the file, and the key b.c of Secret a are both kept as a.b.c": secret("a", "b.c: x") + pod,
		"two keys of Secret a differ in upper and lower case alone":                                             secret("a", "K: x, k: z") + pod,
	} {
		if _, err := Read("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), " x") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if works, err := Read("x.yaml", []byte(secret("a", `b.c: ""`)+strings.Replace(pod, "a.b", "theirs", 1))); err != nil || works[0].Secrets["a.b.c"] == nil || len(works[0].Secrets["a.b.c"]) != 0 {
		t.Errorf("an empty value: %v", err)
	}
}
