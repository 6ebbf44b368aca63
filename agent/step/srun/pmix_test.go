package srun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// buildHelper builds cox-pmix and has the nodes of the test use it.
func buildHelper(t *testing.T) {
	t.Helper()
	name, err := pmixHelper()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COX_PMIX_HELPER", name)
}

// checkNothingLeft looks for directories of PMIx servers of this job, whose attempt no other
// test has.
func (c *crew) checkNothingLeft() {
	c.t.Helper()
	left, err := filepath.Glob(fmt.Sprintf("/dev/shm/cox-pmix.cox.%s.%d.*", c.alloc.Job, c.alloc.Attempt))
	if err != nil || len(left) > 0 {
		c.t.Errorf("left over: %q (%v)", left, err)
	}
}

// helperDir has the helper that the tests built; empty: none was built.
var helperDir string

var pmixHelper = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cox-pmix-test")
	if err != nil {
		return "", err
	}
	helperDir = dir
	name := filepath.Join(dir, "cox-pmix")
	build := exec.Command("go", "build", "-o", name, "../../../cmd/cox-pmix")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	return name, build.Run()
})

// TestMPI4Py has Debian's Python find its ranks, by its Open MPI.
func TestMPI4Py(t *testing.T) {
	if out, err := exec.Command("/usr/bin/python3", "-c", "import mpi4py").CombinedOutput(); err != nil {
		t.Skipf("python3-mpi4py is not installed: %s", out)
	}
	buildHelper(t)
	c := launch(t, perNode2())
	got := c.run(`srun -l /usr/bin/python3 -c 'from mpi4py import MPI; c = MPI.COMM_WORLD; print(c.rank, c.size, c.allreduce(c.rank))'`)
	if lines(got.out) != "0: 0 8 28\n1: 1 8 28\n2: 2 8 28\n3: 3 8 28\n4: 4 8 28\n5: 5 8 28\n6: 6 8 28\n7: 7 8 28" || got.code != 0 {
		t.Errorf("exit %d, printed\n%s\nsaid\n%s", got.code, lines(got.out), got.err)
	}
}

func TestOpenMPI(t *testing.T) {
	program := compileMPI(t, "mpicc.openmpi")
	buildHelper(t)
	c := launch(t, perNode2())
	want := "rank 0 of 8 sum 28 near 2\nrank 1 of 8 sum 28 near 2\nrank 2 of 8 sum 28 near 2\nrank 3 of 8 sum 28 near 2\nrank 4 of 8 sum 28 near 2\nrank 5 of 8 sum 28 near 2\nrank 6 of 8 sum 28 near 2\nrank 7 of 8 sum 28 near 2"
	for _, options := range []string{"--mpi=pmix", "-m cyclic", "bash -c"} { // a shell: PMIx begins when the program connects
		if got := c.run("srun " + options + " " + program); lines(got.out) != want || got.code != 0 {
			t.Errorf("%s: exit %d, printed\n%s\nsaid\n%s", options, got.code, lines(got.out), got.err)
		}
	}
	if got := c.run("srun --mpi=list"); got.out != "MPI plugin types are...\n\tnone\n\tpmi1\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n" || got.code != 0 {
		t.Errorf("list: exit %d, printed\n%s", got.code, got.out)
	}
	if got := c.run("COX_PMIX=/none srun --mpi=list"); got.out != "MPI plugin types are...\n\tnone\n\tpmi1\n\tpmi2\n" {
		t.Errorf("list without libpmix: printed\n%s", got.out)
	}
	got := c.run("srun " + program + " abort")
	if got.code != 7 || !strings.Contains(got.err, "task 1 aborts the step with code 7") {
		t.Errorf("abort: exit %d, said\n%s", got.code, got.err)
	}
}

// TestOpenMPIFaults has a rank die while the others wait for it, a program spawn others, and
// the PMIx server itself die.
func TestOpenMPIFaults(t *testing.T) {
	program := compileMPI(t, "mpicc.openmpi")
	buildHelper(t)
	a := perNode2()
	a.Attempt = uint32(os.Getpid())
	c := launch(t, a)
	got := c.run("srun " + program + " die")
	if got.code != 9 || !strings.Contains(got.err, "srun: error: task 1 left the MPI program without MPI_Finalize\nsrun: Terminating StepId=1.0\n") {
		t.Errorf("die: exit %d, said\n%s", got.code, got.err)
	}
	got = c.run("srun -n2 -N2 " + program + " spawn")
	if !strings.Contains(got.err, "srun: error: task 0: MPI_Comm_spawn is not served in steps of srun; start the program with mpirun inside the job, or start all ranks at once\n") {
		t.Errorf("spawn: exit %d, said\n%s", got.code, got.err)
	}
	got = c.run(`srun --mpi=pmix -n2 -N1 sh -c 'test $SLURM_PROCID = 1 || pkill -SEGV -f "^$COX_PMIX_HELPER"; exec sleep 60'`)
	if got.code != 1 || !regexp.MustCompile(`srun: error: v1: the PMIx server of the step \(libpmix\) (was ended by signal|ended with exit code) .*\nsrun: Terminating StepId=1.2\n`).MatchString(got.err) {
		t.Errorf("crash: exit %d, said\n%s", got.code, got.err)
	}
	c.checkNothingLeft()
}

// TestNeverWorldsOfOne has Open MPI programs meet a node that cannot serve PMIx.
func TestNeverWorldsOfOne(t *testing.T) {
	program := compileMPI(t, "mpicc.openmpi")
	buildHelper(t)
	a := perNode2()
	a.Attempt = uint32(os.Getpid())
	c := launch(t, a)
	for _, v := range []struct{ script, want string }{
		{"COX_PMIX=/none/libpmix.so srun " + program, `^srun: error: v\d: the program speaks PMIx, as Open MPI does, and no libpmix of this node can be used \(/none/libpmix.so: .*\); install libpmix, .*\n$`},
		{"COX_PMIX=/none/libpmix.so srun bash -c " + program, `v\d: the program speaks PMIx, .*\nsrun: Terminating StepId=1.1\n`},
		{"srun --mpi=pmix_v5 " + program, `^srun: error: v\d: --mpi=pmix_v5: this node has libpmix 4\..*; say --mpi=pmix\n$`},
		{"COX_PMIX=libc.so.6 srun " + program, `libc.so.6: it has no PMIx_Get_version, so it is not libpmix`},
		{"srun --mpi=pmi3 " + program, `^srun: error: invalid MPI type 'pmi3', --mpi=list for acceptable types\n$`},
	} {
		got := c.run(v.script)
		if got.code == 0 || got.out != "" || !regexp.MustCompile(v.want).MatchString(got.err) {
			t.Errorf("%s: exit %d, printed\n%s\nsaid\n%s", v.script, got.code, got.out, got.err)
		}
	}
	if got := c.run("srun -n1 -N1 " + program); got.out != "rank 0 of 1 sum 0 near 1\n" || got.code != 0 {
		t.Errorf("one task: exit %d, printed\n%s\nsaid\n%s", got.code, got.out, got.err)
	}
	c.checkNothingLeft()
}
