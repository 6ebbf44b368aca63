package kube_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/test/testcluster/mpiimage"
)

// testMPI: ranks of Open MPI in two pods find each other by the libpmix of their image, as a user
// whom the image does not name. An image without a C library is told from one that has it.
func testMPI(t *testing.T, b *bench, e *kube.Engine) {
	file := filepath.Join(t.TempDir(), "mpi.tar")
	mpiimage.Write(t, file, "docker.io/lab/mpi:1")
	b.l.Import(t, file)
	started := map[string]*engine.Launch{}
	for n, image := range []string{"lab/mpi:1", ""} {
		l := launch(uint64(n+1), "#!/bin/sh\nsrun --mpi=pmix "+mpiimage.Program+" 2>&1\necho exit $?\n", "n1", "n2")
		l.Job.Spec.Image, l.Job.Spec.Owner = image, job.Owner{User: "anna", UID: 54321, GID: 54321}
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		started[image] = l
	}
	for image, want := range map[string]string{"lab/mpi:1": "2 ranks, sum 1\nexit 0\n", "": "the job's image has no glibc ("} {
		r := await(t, e, started[image].Ref, "running", func(r engine.Report) bool { return r.Native != "" })
		if text := b.l.Prints(t, "default", r.Native+"-0", "exit "); !strings.Contains(text, want) {
			t.Errorf("image %q: no %q in\n%s", image, want, text)
		}
		if r := gone(t, e, started[image].Ref); !r.Exit.OK() {
			t.Errorf("%+v", r)
		}
	}
}
