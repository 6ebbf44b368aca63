package podagent_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/test/testcluster/mpiimage"
)

// TestOpenMPI: ranks of Open MPI find each other between members, as a user whom no file names.
// Where the image has no libpmix, the step is refused and says what the image lacks.
func TestOpenMPI(t *testing.T) {
	c := planned(t, 2, "")
	program := mpiimage.Compile(t, c.work(""))
	if os.Getuid() == 0 {
		c.user = &syscall.Credential{Uid: 54321, Gid: 54321}
		for dir := c.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.plan.Script = []byte("#!/bin/sh\nsrun --mpi=list | tail -n 1\nsrun --mpi=pmix -n4 --overcommit " + program +
		"\nCOX_PMIX=/none/libpmix.so srun " + program + " 2>&1\necho $?\n")
	for i := range c.plan.Claims {
		c.plan.Claims[i].Tasks = 2
	}
	c.start()
	_, code := c.members[0].end()
	out := c.members[0].out.String()
	for _, want := range []string{
		"specific pmix plugin versions available: pmix_v4\n", "\n4 ranks, sum 6\n",
		"no libpmix of the job's image can be used (/none/libpmix.so: ", "install libpmix, version 4 or 5, in the image (Debian: package libpmix2)", "\n1\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in the output", want)
		}
	}
	if code != 0 || strings.Contains(out, "1 ranks") {
		t.Errorf("exit code %d, printed\n%s", code, out)
	}
}
