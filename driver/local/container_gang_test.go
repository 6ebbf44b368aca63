package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
)

// testHalfGang runs a gang of which the runtime fails on the second node: before it has made the
// container, and when the container is there. The job does not start, says which node and why, and
// leaves nothing on either.
func testHalfGang(t *testing.T, lab *podmanlab.Lab) {
	broken := filepath.Join(t.TempDir(), "podman")
	root := t.TempDir()
	e := newEngine(t, local.Config{Root: root, Cox: lab.Cox, Containers: container.Settings{Runtime: container.Podman, Program: broken}})
	ref := uint64(0)
	for name, c := range map[string]struct{ instead, want string }{
		"at once":          {`echo "no space left on device" >&2; exit 125`, "podman could not start the container: no space left on device"},
		"with a container": {podmanCreate(lab) + `; echo "crun: cannot set up the network" >&2; exit 126`, "podman could not start the container: crun: cannot set up the network"},
		"by a signal":      {`kill -9 $$`, "podman could not start the container: it was ended by signal 9"},
	} {
		l := inImage(t, e, 2, "touch ran")
		ref++
		l.Ref.Allocation, l.Job.Spec.WorkDir = ref, t.TempDir()
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
		if left := lab.Containers(t); len(left) > 0 {
			t.Errorf("%s: containers are left: %s", name, left)
		}
	}
}

// podmanCreate makes the container of a podman run without starting it.
func podmanCreate(lab *podmanlab.Lab) string {
	return `shift; ` + lab.Podman + ` create "$@" >/dev/null`
}
