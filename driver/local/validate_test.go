package local

import (
	"errors"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestPodsAreRefused: what is asked of pods is not dropped where there are none.
func TestPodsAreRefused(t *testing.T) {
	e := new(Engine)
	if err := e.Admit(t.Context(), &engine.JobDraft{Spec: &job.Spec{Pod: &job.Pod{HostNetwork: true}}}); fault.KindOf(err) != fault.Unsupported || fault.Remedy(err) == "" {
		t.Error(err)
	}
	if err := e.Admit(t.Context(), &engine.JobDraft{Spec: &job.Spec{}}); err != nil {
		t.Error(err)
	}
}

// TestImageIsRefused: without a runtime, and where it can never run.
func TestImageIsRefused(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	given := func(name string) job.Source { return job.Source{Given: map[string]string{name: "x"}} }
	mount := func(source string) *job.Container {
		return &job.Container{Mounts: []job.Mount{{Source: source, Target: "/t"}}}
	}
	here := container.Settings{Runtime: container.Podman, Program: "/bin/sh", Mounts: []string{"/data"}}
	for _, c := range []struct {
		settings container.Settings
		spec     job.Spec
		want     string // empty: it is admitted
		remedy   string
		field    string
	}{
		{spec: job.Spec{}},
		{spec: job.Spec{Image: "nosuch/image:1"}, want: `image: "nosuch/image:1": no container runtime is installed here`, remedy: "apt install podman crun", field: "image"},
		{spec: job.Spec{Image: "x", Source: given("container-image")}, want: "no container runtime", remedy: "apt install podman", field: "image"},
		{settings: container.Settings{Runtime: container.Enroot}, spec: job.Spec{Image: "x"}, want: "enroot (containers.runtime of the server's configuration) is not installed here", remedy: "apt install", field: "image"},
		{settings: here, spec: job.Spec{Image: "x"}},
		{settings: here, spec: job.Spec{Image: "-x"}, want: `"-x" is no image`, remedy: "", field: "image"},
		{settings: here, spec: job.Spec{Image: "x", Source: given("container-save")}, want: "--container-save is refused: a container is not saved", field: "container-save"},
		{settings: here, spec: job.Spec{Container: mount("/data")}, want: "need an image", remedy: "add image", field: "container_options"},
		{settings: here, spec: job.Spec{Image: "x", Container: mount("/data/sub")}},
		{settings: here, spec: job.Spec{Image: "x", WorkDir: "/data/w", Container: mount("./sub")}},
		{settings: here, spec: job.Spec{Image: "x", Container: mount("tmpfs")}},
		{settings: here, spec: job.Spec{Image: "x", Container: mount("/data/../etc")}, want: "jobs of this pool may mount /data and what is below, not /etc", remedy: "ask an administrator", field: "container_options"},
		{settings: here, spec: job.Spec{Image: "x", Container: mount("/database")}, want: "not /database", remedy: "copy it there", field: "container_options"},
	} {
		e := &Engine{cfg: Config{Containers: c.settings}}
		err := e.Admit(t.Context(), &engine.JobDraft{Spec: &c.spec})
		var at *engine.FieldError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c.spec, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(fault.Remedy(err), c.remedy) || !errors.As(err, &at) || at.Fields[0] != c.field):
			t.Errorf("%+v: %v (%s), want %q (%s)", c.spec, err, fault.Remedy(err), c.want, c.remedy)
		}
	}
}
