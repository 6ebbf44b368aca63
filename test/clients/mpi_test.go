package clientstest

import "testing"

// The wheels of Open MPI, MPICH and Intel MPI from PyPI, and Open MPI of Debian, with mpi4py: 8
// ranks on 4 nodes.

func TestOpenMPI(t *testing.T) { testRanks(t, "openmpi") }

// TestDebianMPI has the Open MPI of Debian, where each node has a network of its own if root tests.
func TestDebianMPI(t *testing.T) { testRanks(t, "debian-mpi") }

func TestMPICH(t *testing.T) { testRanks(t, "mpich") }

func TestIntelMPI(t *testing.T) { testRanks(t, "intel-mpi") }

// testRanks runs a job that starts ranks in each way that its MPI has.
func testRanks(t *testing.T, client string) {
	t.Parallel()
	s := openSite(t, client)
	s.run("sbatch", "--wait", "ranks.sbatch")
	s.compare("ranks.txt", s.run("cat", "ranks.out")+s.states("State,ExitCode,AllocNodes"))
}
