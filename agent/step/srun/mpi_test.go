package srun

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/step"
)

const mpiProgram = `#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
	int rank, size, sum = 0, near;
	MPI_Comm node;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (argc > 1 && !strcmp(argv[1], "abort")) {
		if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (argc > 1 && !strcmp(argv[1], "die")) {
		if (rank == 1) _exit(9);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (argc > 1 && !strcmp(argv[1], "spawn")) {
		MPI_Comm child;
		MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		if (MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE) == MPI_SUCCESS) return 3;
	}
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &near);
	printf("rank %d of %d sum %d near %d\n", rank, size, sum, near);
	MPI_Finalize();
	return 0;
}
`

// compileMPI compiles the program with an MPI of this machine, if it has one.
func compileMPI(t *testing.T, compiler string) string {
	t.Helper()
	path, err := exec.LookPath(compiler)
	if err != nil {
		t.Skipf("%s is not installed", compiler)
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "hello.c"), filepath.Join(dir, "hello")
	if err := os.WriteFile(source, []byte(mpiProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, source, "-o", program).CombinedOutput(); err != nil {
		t.Skipf("%s does not work here: %s", compiler, out)
	}
	return program
}

func TestMPICH(t *testing.T) {
	program := compileMPI(t, "mpicc.mpich")
	// Else UCX opens every network interface of the machine, and gives up where one of them vanishes
	// meanwhile, such as those of other tests' networks.
	t.Setenv("UCX_TLS", "sm,self")
	c := launch(t, perNode2())
	want := "rank 0 of 8 sum 28 near 2\nrank 1 of 8 sum 28 near 2\nrank 2 of 8 sum 28 near 2\nrank 3 of 8 sum 28 near 2\nrank 4 of 8 sum 28 near 2\nrank 5 of 8 sum 28 near 2\nrank 6 of 8 sum 28 near 2\nrank 7 of 8 sum 28 near 2"
	for _, options := range []string{"", "--mpi=pmi1", "-m cyclic"} {
		if got := c.run("srun " + options + " " + program); lines(got.out) != want || got.code != 0 {
			t.Errorf("%s: exit %d, printed\n%s\nsaid\n%s", options, got.code, lines(got.out), got.err)
		}
	}
	got := c.run("srun " + program + " abort")
	if got.code != 7 || !strings.Contains(got.err, "task 1 aborts the step with code 7") {
		t.Errorf("abort: exit %d, said\n%s", got.code, got.err)
	}
}

func TestOpenMPIsMpirun(t *testing.T) {
	program := compileMPI(t, "mpicc.openmpi")
	if _, err := exec.LookPath("mpirun.openmpi"); err != nil {
		t.Skip("mpirun.openmpi is not installed")
	}
	c := launch(t, perNode2())
	got := c.run("export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo; mpirun.openmpi " + program)
	if !regexp.MustCompile(`(rank \d of 8 sum 28 near \d\n?){8}`).MatchString(lines(got.out)) || got.code != 0 {
		t.Errorf("exit %d, printed\n%s\nsaid\n%s", got.code, got.out, got.err)
	}
}

// talk lets the ranks of a step say lines to the server and collects the answers.
type talk struct {
	server  *pmiServer
	answers map[int][]string
	aborted int
	said    string
}

func newTalk(i *step.Info) *talk {
	k := &talk{answers: make(map[int][]string)}
	answer := func(rank int, line string) {
		k.answers[rank] = append(k.answers[rank], line)
	}
	k.server = newPMIServer(i, answer, func(_, code int, _ string) { k.aborted = code }, func(text string) { k.said = text })
	return k
}

// say returns the answer to a line, or "" if there is none yet.
func (k *talk) say(rank int, line string) string {
	before := len(k.answers[rank])
	k.server.handleCommand(rank, line+"\n")
	out := strings.Join(k.answers[rank][before:], "")
	if out != "" && !strings.HasSuffix(out, "\n") {
		return "without an end: " + out
	}
	return strings.TrimSuffix(out, "\n")
}

func TestPMI(t *testing.T) {
	i := &step.Info{Step: 3, Tasks: 2, Components: []step.Component{{Tasks: 1}, {Tasks: 1, First: 1}}, Parts: []step.StepPart{{Node: 0, Ranks: []int{0}}, {Node: 1, Ranks: []int{1}}}}
	k := newTalk(i)
	for _, c := range []struct{ say, want string }{
		{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
		{"cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=4096 rc=0"},
		{"cmd=get_appnum", "cmd=appnum appnum=1 rc=0"},
		{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_3 rc=0"},
		{"cmd=get_universe_size", "cmd=universe_size size=2 rc=0"},
		{"cmd=put kvsname=kvs_3 key=a value=x y=z", "cmd=put_result rc=0"},
		{"cmd=get kvsname=kvs_3 key=a", "cmd=get_result rc=0 msg=success value=x y=z"},
		{"cmd=get kvsname=kvs_3 key=b", "cmd=get_result rc=-1 msg=key_not_found value=unknown"},
		{"cmd=get kvsname=kvs_3 key=PMI_process_mapping", "cmd=get_result rc=0 msg=success value=(vector,(0,2,1))"},
		{"mcmd=spawn", ""},
		{"nprocs=1", ""},
		{"endcmd", "cmd=spawn_result rc=-1 msg=not_served"},
		{"cmd=lookup_name service=a", "cmd=lookup_result info=server_not_found rc=-1"},
		{"cmd=publish_name service=a port=tag#0$x", "cmd=publish_result info=ok rc=0"},
		{"cmd=lookup_name service=a", "cmd=lookup_result info=ok rc=0 port=tag#0$x"},
		{"cmd=unpublish_name service=a", "cmd=unpublish_result info=ok rc=0"},
		{"cmd=lookup_name service=a", "cmd=lookup_result info=server_not_found rc=-1"},
		{"cmd=nonsense", "cmd=nonsense_result rc=-1 msg=unknown_command"},
		{"", "cmd=_result rc=-1 msg=unknown_command"},
		{"cmd=finalize", "cmd=finalize_ack rc=0"},
	} {
		if got := k.say(1, c.say); got != c.want {
			t.Errorf("%s: %q, want %q", c.say, got, c.want)
		}
	}
	for range 2 { // a barrier lets nobody through before all have come, each time
		if got := k.say(0, "cmd=barrier_in"); got != "" {
			t.Errorf("through the barrier alone: %q", got)
		}
		if got := k.say(1, "cmd=barrier_in"); got != "cmd=barrier_out rc=0" {
			t.Errorf("barrier: %q", got)
		}
	}
	if a := k.answers[0]; len(a) != 2 {
		t.Errorf("rank 0 was answered %q", a)
	}
	if want := "error: task 1: MPI_Comm_spawn is not served in steps of srun;"; !strings.HasPrefix(k.said, want) {
		t.Errorf("said %q, want %q …", k.said, want)
	}
	if k.say(0, "cmd=abort exitcode=5 error_msg=no more"); k.aborted != 5 {
		t.Errorf("aborted with %d", k.aborted)
	}
}

func TestProcessMapping(t *testing.T) {
	for want, ranks := range map[string][][]int{
		"(vector,(0,2,2))":                 {{0, 1}, {2, 3}},
		"(vector,(0,1,3),(1,1,1))":         {{0, 1, 2}, {3}},
		"(vector,(0,2,1),(0,2,1))":         {{0, 2}, {1, 3}},
		"(vector,(0,1,1))":                 {{0}},
		"(vector,(0,2,1),(0,1,1),(2,1,1))": {{0, 2}, {1}, {3}},
	} {
		i := new(step.Info)
		for n, r := range ranks {
			i.Parts = append(i.Parts, step.StepPart{Node: n + 4, Ranks: r})
			i.Tasks += len(r)
		}
		if got := processMapping(i); got != want {
			t.Errorf("%v: %s, want %s", ranks, got, want)
		}
	}
}
