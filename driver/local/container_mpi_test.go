package local_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/testcluster/mpiimage"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
)

// testContainerMPI: ranks in containers of two nodes find each other by the node's PMIx server,
// started by the job's own container and by containers of the step, and nothing of it is left.
func testContainerMPI(t *testing.T, e *local.Engine, lab *podmanlab.Lab, next func(n int, script ...string) *engine.Launch) {
	const tag = "coxswain.test/mpi:1"
	file := filepath.Join(t.TempDir(), "mpi.tar")
	mpiimage.Write(t, file, tag)
	lab.Call(t, "load", "--quiet", "--input", file)
	const step = "srun --mpi=pmix " + mpiimage.Program
	for where, l := range map[string]*engine.Launch{
		"the job's image":  next(2, step),
		"the step's image": next(2, strings.Replace(step, "srun", "srun --container-image="+tag, 1)),
	} {
		l.Job.Spec.Image = ""
		if where == "the job's image" {
			l.Job.Spec.Image = tag
		}
		if r, out := outputOf(t, e, l); !r.Exit.OK() || out != "2 ranks, sum 1\n" {
			t.Errorf("%s: %+v: %q", where, r, out)
		}
	}
	if left, err := filepath.Glob("/dev/shm/cox-pmix.cox.7.*"); err != nil || len(left) > 0 {
		t.Errorf("left over: %q (%v)", left, err)
	}
}
