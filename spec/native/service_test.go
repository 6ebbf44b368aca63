package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// parseService reads the text of a service.
func parseService(t *testing.T, text string) (*service.Spec, error) {
	t.Helper()
	doc, err := yaml.Parse(spec.Source{Name: "serve.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := ParseService(doc, "serve.yaml", options())
	return s, err
}

// TestService: each field of a service says what it means.
func TestService(t *testing.T) {
	text, err := os.ReadFile("testdata/service.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseService(t, string(text))
	if err != nil {
		t.Fatal(err)
	}
	want := service.Spec{
		Name: "chat", Account: "team", Replicas: service.Bounds{Min: 0, Max: 4}, SpareQOS: "scavenger",
		Update: service.Update{Surge: 2, Unavailable: 1, Canary: []int{10, 50}, Step: 30 * time.Second, Timeout: 5 * time.Minute, ManualUndo: true},
		Scale:  &service.Scale{Metric: "vllm:num_requests_waiting", Target: 2.5, Path: "/prom", Port: "metrics", Cooldown: time.Minute, ToZero: 10 * time.Minute},
		Route:  service.Route{Host: "chat.example.org", Path: "/v1", Port: "http", Tokens: []string{"key"}, Timeout: 90 * time.Second, Sticky: true, Rate: 50, Held: 7, H2C: true},
	}
	serve := &job.Serve{
		Ports:     []job.Port{{Name: "http"}, {Name: "metrics", Number: 9000}},
		Startup:   &job.Probe{Exec: []string{"/bin/sh", "-c", "./loaded"}, Failures: 60},
		Readiness: &job.Probe{HTTP: "/health"},
		Liveness:  &job.Probe{TCP: true, Port: "metrics", Every: 5 * time.Second, Timeout: 2 * time.Second, Delay: 10 * time.Second, Passes: 2},
		Drain:     10 * time.Second,
		Log:       job.LogRotation{Size: 10 << 20, Keep: 2},
	}
	if diff := cmp.Diff(serve, s.Job.Serve); diff != "" {
		t.Errorf("serve (-want +got):\n%s", diff)
	}
	if s.Job.Groups[0].Total.DeviceCount() != 1 || !s.Job.Requeue || s.Job.TimeLimit != 48*time.Hour {
		t.Errorf("the job of a replica: %+v", s.Job)
	}
	want.Owner = s.Job.Owner
	s.Job = job.Spec{}
	if diff := cmp.Diff(want, *s); diff != "" {
		t.Errorf("service (-want +got):\n%s", diff)
	}
}

// TestServiceDefaults: what a service has where its file says nothing.
func TestServiceDefaults(t *testing.T) {
	s, err := parseService(t, "kind: service\nname: web\ncommand: [./web]\nports: 8000\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(service.Bounds{Min: 1, Max: 1}, s.Replicas); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(service.Update{Surge: 1, Step: time.Minute, Timeout: 10 * time.Minute}, s.Update); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&job.Serve{Ports: []job.Port{{Name: "http", Number: 8000}}, Drain: 30 * time.Second}, s.Job.Serve); diff != "" {
		t.Error(diff)
	}
	inPlace, err := parseService(t, "kind: service\nname: web\ncommand: [./web]\nports: [http]\nupdate: {in_place: true}\n")
	if err != nil || inPlace.Update.Surge != 0 || inPlace.Update.Unavailable != 1 {
		t.Errorf("in place: %+v, %v", inPlace, err)
	}
}

// TestServiceMistakes: each file of testdata/service is refused with the place and the remedy that
// stand in its first line.
func TestServiceMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/service/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(data), "\n")
		want := strings.TrimPrefix(first, "# ")
		_, err = parseService(t, string(data))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", file, err, want)
		}
	}
}
