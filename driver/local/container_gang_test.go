package local_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
)

// testHalfGang runs a gang of which the runtime fails on the second node: before it has made the
// container, and when the container is there. The job does not start, says which node and why, and
// leaves nothing on either.
func testHalfGang(j *podmanJobs) {
	t, lab := j.t, j.lab
	broken := filepath.Join(t.TempDir(), "podman")
	root := t.TempDir()
	e := newEngine(t, local.Config{Root: root, Cox: lab.Cox, Containers: container.Settings{Runtime: container.Podman, Program: broken}})
	for name, c := range map[string]struct{ instead, want string }{
		"at once":          {`echo "no space left on device" >&2; exit 125`, "podman could not start the container: no space left on device"},
		"with a container": {podmanCreate(lab) + `; echo "crun: cannot set up the network" >&2; exit 126`, "podman could not start the container: crun: cannot set up the network"},
		"by a signal":      {`kill -9 $$`, "podman could not start the container: it was ended by signal 9"},
	} {
		l := inImage(t, e, 2, "touch ran")
		l.Job.Spec.WorkDir = t.TempDir()
		j.number(l)
		script := "#!/bin/sh\ncase \"$*\" in\nrun*-" + l.Claims[1].Node + "-*) " + c.instead + " ;;\nesac\nexec " + lab.Podman + ` "$@"` + "\n"
		if err := os.WriteFile(broken, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		launch(t, e, l)
		r := until(t, e, l.Ref, gone)
		if !strings.Contains(r.Message, c.want) || !strings.Contains(r.Message, l.Claims[1].Node) || !r.Started.IsZero() {
			t.Errorf("%s: %+v, want %q on %s", name, r, c.want, l.Claims[1].Node)
		}
		if _, err := os.Stat(filepath.Join(l.Job.Spec.WorkDir, "ran")); err == nil {
			t.Errorf("%s: the job ran", name)
		}
		j.nothingLeft()
	}
}

// podmanCreate makes the container of a podman run without starting it.
func podmanCreate(lab *podmanlab.Lab) string {
	return `shift; ` + lab.Podman + ` create "$@" >/dev/null`
}
