package podspec_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

func template(t *testing.T, text string) json.RawMessage {
	t.Helper()
	if !json.Valid([]byte(text)) {
		t.Fatalf("no JSON: %s", text)
	}
	return json.RawMessage(text)
}

const container = `{"spec":{"containers":[{"name":"main","image":"busybox","resources":{"limits":{"cpu":2,"nvidia.com/gpu":"1"},"requests":{"cpu":"500m"}}}]}}`

// TestExpand: variables of operators name pods by names that resolve in every pod.
func TestExpand(t *testing.T) {
	s := &podspec.Set{Kind: "PyTorchJob", Name: "train", Roles: []podspec.Role{
		{Name: "master", Replicas: 1, PodName: "train-master-0", Template: template(t, container)},
		{Name: "worker", Replicas: 2, PodName: "train-worker-{i}", Subdomain: "train", Template: template(t, container)},
	}}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"{pod:master:0}:29500":            "train-master-0:29500",
		"{pod:worker:1},{pod:worker:0}":   "train-worker-1.train,train-worker-0.train",
		"{i}":                             "3",
		"{pod:nobody:0}":                  "{pod:nobody:0}",
		"{pod:worker:x} and {pod:worker:": "{pod:worker:x} and {pod:worker:",
	} {
		if got := s.Expand(value, 3); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// TestParse: what no set can have is refused; amounts are text or numbers, requests outrank limits.
func TestParse(t *testing.T) {
	role := func(name, pod string, n int, tpl string) podspec.Role {
		return podspec.Role{Name: name, PodName: pod, Replicas: n, Template: template(t, tpl)}
	}
	for want, s := range map[string]podspec.Set{
		"there is no role":             {},
		"there twice":                  {Roles: []podspec.Role{role("a", "x", 1, container), role("a", "y", 1, container)}},
		"at least one":                 {Roles: []podspec.Role{role("a", "x", 0, container)}},
		"is not one for each pod":      {Roles: []podspec.Role{role("a", "x", 2, container)}},
		"has no container":             {Roles: []podspec.Role{role("a", "x", 1, `{"spec":{}}`)}},
		`complete: there is no role "`: {Roles: []podspec.Role{role("a", "x", 1, container)}, Complete: &podspec.Complete{Roles: []string{"b"}}},
	} {
		text, err := json.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = podspec.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	r := role("a", "x", 1, container)
	p, err := r.Pod()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]podspec.Quantity{"cpu": "500m", "nvidia.com/gpu": "1", "memory": ""} {
		if q, ok := p.Spec.Containers[0].Resources.Asked(name); q != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", name, q, ok, want)
		}
	}
}

// TestForJob: the number of an array's task stands in names, values and labels, and in no other set.
func TestForJob(t *testing.T) {
	s := &podspec.Set{Kind: "Job", Name: "sweep", Roles: []podspec.Role{{
		Name: "pod", Replicas: 2, PodName: "sweep-{task}-{i}", Template: template(t, container),
		Env: []podspec.EnvVar{{Name: "JOB_COMPLETION_INDEX", Value: "{task}"}, {Name: "RANK", Value: "{i+1}"}}, Labels: map[string]string{"index": "{task}"},
	}}}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for want, j := range map[uint32]*job.Job{
		7: {Array: &job.ArrayTask{Index: 7}, Spec: &job.Spec{}},
		3: {Spec: &job.Spec{Part: &job.Part{Index: 3}}},
		0: {Spec: &job.Spec{}},
	} {
		got, err := podspec.ForJob(j, text)
		if err != nil {
			t.Fatal(err)
		}
		r, n := &got.Roles[0], strconv.Itoa(int(want))
		if r.NameOf(1) != "sweep-"+n+"-1" || r.Env[0].Value != n || r.Labels["index"] != n || got.Expand(r.Env[1].Value, 1) != "2" {
			t.Errorf("task %d: %+v", want, r)
		}
	}
	if s.ForTask(5); s.Roles[0].Env[0].Value != "{task}" || s.Roles[0].Labels["index"] != "{task}" {
		t.Errorf("the set itself was changed: %+v", s.Roles[0])
	}
}

// TestNamesAreChecked: names that could be text of a shell or leave a directory are in no set.
func TestNamesAreChecked(t *testing.T) {
	for what, change := range map[string]func(*podspec.Set){
		"name":           func(s *podspec.Set) { s.Name = "a b" },
		"namespace":      func(s *podspec.Set) { s.Namespace = "a.b" },
		"role":           func(s *podspec.Set) { s.Roles[0].Name = "$(id)" },
		"pod":            func(s *podspec.Set) { s.Roles[0].PodName = "a-{j}" },
		"subdomain":      func(s *podspec.Set) { s.Roles[0].Subdomain = "a\nb" },
		"variable":       func(s *podspec.Set) { s.Roles[0].Env = []podspec.EnvVar{{Name: "A;id"}} },
		"relative file":  func(s *podspec.Set) { s.Roles[0].Files = map[string]string{"etc/x": ""} },
		"file":           func(s *podspec.Set) { s.Roles[0].Files = map[string]string{"/etc/../x": ""} },
		"line in a file": func(s *podspec.Set) { s.Roles[0].Files = map[string]string{"/etc/a\nb": ""} },
		"service":        func(s *podspec.Set) { s.Services = []podspec.Service{{Name: "a'b"}} },
		"key of ConfigMap": func(s *podspec.Set) {
			s.ConfigMaps = []podspec.ConfigMap{{Name: "c", Data: map[string]string{"../x": ""}}}
		},
		"key of Secret": func(s *podspec.Set) { s.Secrets = []podspec.Secret{{Name: "c", Keys: []string{".."}}} },
		"host name": func(s *podspec.Set) {
			s.Roles[0].Template = template(t, `{"spec":{"hostname":"a b","containers":[{"name":"c"}]}}`)
		},
		"own variable": func(s *podspec.Set) {
			s.Roles[0].Template = template(t, `{"spec":{"containers":[{"name":"c","env":[{"name":"a=b"}]}]}}`)
		},
		"container": func(s *podspec.Set) { s.Roles[0].Template = template(t, `{"spec":{"containers":[{"name":"c/d"}]}}`) },
	} {
		s := &podspec.Set{Kind: "Job", Name: "a.b", Namespace: "n", Roles: []podspec.Role{{
			Name: "pod", Replicas: 2, PodName: "a-{task}-{i+1}", Subdomain: "s", Template: template(t, container),
			Env: []podspec.EnvVar{{Name: "A.b_C", Value: "x\ny"}}, Files: map[string]string{"/etc/x/y.host": ""},
		}}, Services: []podspec.Service{{Name: "s"}}}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if change(s); s.Check() == nil {
			t.Errorf("%s is taken", what)
		}
	}
}
