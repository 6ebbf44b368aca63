package nodes_test

import (
	"net/http"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
)

// TestMachines: the list with owners, hand-overs and marks, and what cox doctor says of a machine that two
// engines could use.
//
// Seen to fail with: a doctor whose exit code is 0 whatever it finds.
func TestMachines(t *testing.T) {
	f := newFake(t)
	open := []string{"s"}
	f.Answer("GET /v1/machines", func(*http.Request) (any, error) {
		return api.Machines{Machines: []api.Machine{
			{Name: "m1", Pool: "s", Epoch: 1, Open: open, Nodes: []api.MachineNode{
				{Pool: "s", Engine: "slurm", Node: "n1", State: "up"}, {Pool: "k", Engine: "kube", Node: "w1", State: "draining", Fence: 1},
			}},
			{Name: "m2", Pool: "k", Epoch: 2, To: "s", Step: "fence", Waits: "pod a/b", By: "root", Nodes: []api.MachineNode{
				{Pool: "k", Engine: "kube", Node: "w2", State: "draining", Fence: 2, Drained: "bad fan"},
			}},
		}}, nil
	})
	f.Cox(t, "machines").Check(t, 0, `MACHINE  OWNER  HAND-OVER    NODES                            WAITS OR WHY
m1       s      -            s/n1 k/w1(fence 1)               -
m2       k      to s, fence  k/w2(fence 2; drained: bad fan)  pod a/b
`, "")
	f.Cox(t, "machines", "--moving", "-o", "name").Check(t, 0, "m2\n", "")
	f.Cox(t, "machines", "--owner", "s", "-o", "name").Check(t, 0, "m1\n", "")
	f.Cox(t, "machines", "m[2-3]").Check(t, 3, "", "~there is no machine m3")
	f.Cox(t, "doctor").Check(t, 0, "2 machines: on none of them could two engines start work\n", "")
	open = []string{"s", "k"}
	f.Cox(t, "doctor").Check(t, 1, "m1: pool s owns the machine, and the engine of pool k could start work there too: no mark stands on w1\n  kubectl cordon w1\n", "")
	f.Cox(t, "machines", "m1").Check(t, 0, "~open in s and k: cox doctor", "")
}
