package sbatchargs

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs/sbatchargstest"
	"github.com/coxswain-sched/coxswain/engine/podscript/podscripttest"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestPodsByRuntimes: how a pool's runtime starts the pods of a manifest, or why it does not.
func TestPodsByRuntimes(t *testing.T) {
	set, err := json.Marshal(podscripttest.Train("registry.test/busybox:1", "/results"))
	if err != nil {
		t.Fatal(err)
	}
	for runtime, want := range map[ContainerRuntime]string{
		Pyxis:        "--container-image=registry.test/busybox:1 '--container-mounts='\"$_cox_pod\"'/hosts:/etc/hosts:ro,",
		Podman:       "podman run --rm --pull=never --log-driver=none --cgroups=disabled --network=host --uts=host --ipc=host --security-opt=label=disable --env=",
		Apptainer:    "exec apptainer exec --no-mount=cwd,bind-paths --cleanenv",
		Enroot:       `"${XDG_CACHE_HOME:-$HOME/.cache}/coxswain/"registry.test+busybox+1.sqsh "$@"`,
		NoContainers: "",
	} {
		s := sbatchargstest.Job()
		s.Source.Form, s.Program = "manifest", job.Program{Kind: job.Pods}
		s.Groups = []job.TaskGroup{{Tasks: job.Count{Want: 1}}, {Tasks: job.Count{Want: 2}}}
		s.Secrets = []job.Secret{{Name: "login.token", File: "login.token"}}
		w, err := build(Settings{Containers: runtime}, s, string(set))
		if runtime == NoContainers {
			if fault.KindOf(err) != fault.Unsupported || fault.Remedy(err) == "" {
				t.Errorf("none: %v", err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", runtime, err)
			continue
		}
		if s.Program.Kind != job.Pods {
			t.Fatal("the job itself was changed")
		}
		text := string(w.Script)
		for _, want := range []string{"#!/bin/bash\n", " --het-group=1 --quiet", want} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", runtime, want, text)
			}
		}
		check := exec.Command("bash", "-n")
		check.Stdin = strings.NewReader(text)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", runtime, err, out)
		}
	}
}
