package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// TestCheckServe: each case breaks one field of a job that is in order.
func TestCheckServe(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*job.Spec)
		want string // "": it is in order
	}{
		{"in order", func(*job.Spec) {}, ""},
		{"tcp", func(s *job.Spec) { s.Serve.Readiness = &job.Probe{TCP: true, Port: "metrics"} }, ""},
		{"no ports", func(s *job.Spec) { s.Serve.Ports = nil }, "0 ports are not between 1 and 32"},
		{"a large number", func(s *job.Spec) { s.Serve.Ports[1].Number = 70000 }, "serve.ports[1].number 70000"},
		{"upper case", func(s *job.Spec) { s.Serve.Ports[0].Name = "HTTP" }, "lower case letters"},
		{"begins with a digit", func(s *job.Spec) { s.Serve.Ports[0].Name = "8http" }, "a letter first"},
		{"a long name", func(s *job.Spec) { s.Serve.Ports[0].Name = strings.Repeat("a", 16) }, "between 1 and 15 characters"},
		{"one name twice", func(s *job.Spec) { s.Serve.Ports[1].Name = "http" }, `two ports are named "http"`},
		{"one number twice", func(s *job.Spec) { s.Serve.Ports[1].Number = 8000 }, "have the same number, 8000"},
		{"a long drain", func(s *job.Spec) { s.Serve.Drain = 25 * time.Hour }, "serve.drain 25h0m0s"},
		{"two kinds of probe", func(s *job.Spec) { s.Serve.Readiness.TCP = true }, "serve.readiness: needs exactly one"},
		{"no kind of probe", func(s *job.Spec) { s.Serve.Liveness = &job.Probe{} }, "serve.liveness: needs exactly one"},
		{"no path", func(s *job.Spec) { s.Serve.Readiness.HTTP = "health" }, "begins with /"},
		{"a path of two lines", func(s *job.Spec) { s.Serve.Readiness.HTTP = "/x\r\nHost: y" }, "that no path of a URL has"},
		{"a long look", func(s *job.Spec) { s.Serve.Readiness.Timeout = time.Hour }, "timeout 1h0m0s is not between 0 and 1m0s"},
		{"no such port", func(s *job.Spec) { s.Serve.Readiness.Port = "grpc" }, `there is no port "grpc"`},
		{"a command and a port", func(s *job.Spec) { s.Serve.Startup = &job.Probe{Exec: []string{"true"}, Port: "http"} }, "looks at no port"},
		{"a negative pause", func(s *job.Spec) { s.Serve.Readiness.Every = -time.Second }, "every -1s"},
		{"negative failures", func(s *job.Spec) { s.Serve.Readiness.Failures = -1 }, "failures -1"},
		{"no program", func(s *job.Spec) { s.Program.Kind = job.BareAllocation }, "has no ports"},
		{"no kind of controller", func(s *job.Spec) { s.Part.Controller = "chat" }, "is not KIND/NAME"},
		{"no revision", func(s *job.Spec) { s.Part.Revision = 0 }, "counts from 1"},
	} {
		s := &job.Spec{
			Groups:  []job.TaskGroup{{Tasks: job.Count{Want: 1}}},
			Program: job.Program{Kind: job.Direct, Args: []string{"serve"}},
			Serve: &job.Serve{
				Ports:     []job.Port{{Name: "http", Number: 8000}, {Name: "metrics"}},
				Readiness: &job.Probe{HTTP: "/health"}, Drain: 30 * time.Second,
			},
			Part: &job.Part{Controller: "service/ml/chat", Revision: 1},
		}
		c.set(s)
		err := s.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
