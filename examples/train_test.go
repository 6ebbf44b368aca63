package examples

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// startRanks runs train.py as srun would, one process a rank, and returns how each
// ended. The ranks of a node share an address of their own in 127.0.0.0/8.
func startRanks(t *testing.T, world int, env ...string) []outcome {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real processes")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	address := func(rank int) string { return fmt.Sprintf("127.0.11.%d", rank/2+1) }
	root := copyExamples(t)
	port := freePort(t, address(0))
	results := make([]outcome, world)
	var group sync.WaitGroup
	for rank := range world {
		group.Go(func() {
			vars := append([]string{
				"MASTER_ADDR=" + address(0), fmt.Sprint("MASTER_PORT=", port), "SLURM_JOB_ID=1",
				fmt.Sprint("SLURM_NTASKS=", world), fmt.Sprint("SLURM_PROCID=", rank),
				fmt.Sprint("SLURM_LOCALID=", rank%2), "SLURMD_NODENAME=" + address(rank),
				"SLURM_RESTART_COUNT=", "CUDA_VISIBLE_DEVICES=0,1",
			}, env...)
			results[rank] = run(t, time.Minute, root, vars, "python3", "-u", "examples/train.py")
		})
	}
	group.Wait()
	return results
}

func freePort(t *testing.T, address string) int {
	t.Helper()
	listener, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Skipf("this machine has no address %s: %v", address, err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func TestTrainLearns(t *testing.T) {
	for _, world := range []int{1, 3, 8} {
		results := startRanks(t, world, "TRAIN_EPOCHS=6")
		for rank, got := range results {
			if got.code != 0 {
				t.Errorf("%d ranks: rank %d ended with %d\n%s", world, rank, got.code, got.output)
			}
		}
		want := fmt.Sprintf("weights identical on %d ranks", world)
		if !strings.Contains(results[0].output, want) {
			t.Errorf("rank 0 of %d did not say %q\n%s", world, want, results[0].output)
		}
	}
}

func TestTrainLosesRank(t *testing.T) {
	results := startRanks(t, 4, "TRAIN_FAIL=2@3")
	for rank, got := range results {
		switch {
		case rank == 2 && got.code != 9:
			t.Errorf("rank 2 ended with %d, not as asked\n%s", got.code, got.output)
		case rank != 2 && (got.code != 4 || !strings.Contains(got.output, "lost rank ")):
			t.Errorf("rank %d ended with %d and does not say whom it lost\n%s", rank, got.code, got.output)
		}
	}
}
