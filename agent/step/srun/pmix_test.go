package srun

import (
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
	got := c.run("srun " + program + " abort")
	if got.code != 7 || !strings.Contains(got.err, "task 1 aborts the step with code 7") {
		t.Errorf("abort: exit %d, said\n%s", got.code, got.err)
	}
}

// TestNeverWorldsOfOne has Open MPI programs meet a node that cannot serve PMIx.
func TestNeverWorldsOfOne(t *testing.T) {
	program := compileMPI(t, "mpicc.openmpi")
	buildHelper(t)
	c := launch(t, perNode2())
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
	if left, err := filepath.Glob("/dev/shm/cox-pmix.cox.1.1.*"); err != nil || len(left) > 0 {
		t.Errorf("left over: %q (%v)", left, err)
	}
}
