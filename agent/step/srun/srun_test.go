package srun

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/step/steptest"
)

// lines sorts the lines of an output; ranks print in any order.
func lines(s string) string {
	l := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	slices.Sort(l)
	return strings.Join(l, "\n")
}

func TestSrunRunsTheJobsTasks(t *testing.T) {
	c := launch(t, steptest.WithOptions(steptest.Uniform(4, 2, 2, 0), "ntasks-per-node=2"))
	got := c.run(`srun -l sh -c 'echo $SLURMD_NODENAME $SLURM_PROCID/$SLURM_NTASKS'`)
	want := "0: v1 0/8\n1: v1 1/8\n2: v2 2/8\n3: v2 3/8\n4: v3 4/8\n5: v3 5/8\n6: v4 6/8\n7: v4 7/8"
	if lines(got.out) != want || got.err != "" || got.code != 0 {
		t.Errorf("got %d\n%s\n%s\nwant\n%s", got.code, lines(got.out), got.err, want)
	}
}
