package local_test

import (
	"path/filepath"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/testcluster/mpiimage"
)

// testContainerMPI: ranks in containers of two nodes find each other by the node's PMIx server,
// started by the job's own container and by containers of the step, and nothing of it is left.
func testContainerMPI(j *podmanJobs) {
	t := j.t
	const tag = "coxswain.test/mpi:1"
	file := filepath.Join(t.TempDir(), "mpi.tar")
	mpiimage.Write(t, file, tag)
	j.lab.Call(t, "load", "--quiet", "--input", file)
	const step = "srun --mpi=pmix " + mpiimage.Program
	for where, l := range map[string]*engine.Launch{
		"the job's image":  j.next(2, step),
		"the step's image": j.next(2, strings.Replace(step, "srun", "srun --container-image="+tag, 1)),
	} {
		l.Job.Spec.Image = ""
		if where == "the job's image" {
			l.Job.Spec.Image = tag
		}
		if r, out := outputOf(t, j.engine, l); !r.Exit.OK() || out != "2 ranks, sum 1\n" {
			t.Errorf("%s: %+v: %q", where, r, out)
		}
	}
	for _, m := range j.mine {
		id := strings.Trim(strings.TrimPrefix(m, "cox"), "-")
		if left, err := filepath.Glob("/dev/shm/cox-pmix.cox." + id + ".*"); err != nil || len(left) > 0 {
			t.Errorf("left over: %q (%v)", left, err)
		}
	}
	j.nothingLeft()
}
