package nodes_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// TestMachines: the list with owners, hand-overs and marks, and what cox doctor says of a machine that two
// engines could use.
//
// Seen to fail with: a doctor whose exit code is 0 whatever it finds.
func TestMachines(t *testing.T) {
	f := newFake(t)
	open, closed := []string{"s"}, false
	f.Answer("GET /v1/machines", func(*http.Request) (any, error) {
		return api.Machines{Machines: []api.Machine{
			{Name: "m1", Pool: "s", Epoch: 1, Open: open, Closed: closed, Nodes: []api.MachineNode{
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
	f.Cox(t, "doctor").Check(t, 1, "m1: pool s owns the machine, and the engine of pool k could start work there too: no mark stands on w1\n  cox node fence m1 --reason \"pool s has it\"\n", "")
	f.Cox(t, "machines", "m1").Check(t, 0, "~open in s and k: cox doctor", "")
	closed = true
	f.Cox(t, "doctor").Check(t, 1, "~\n  cox pool check k says which right is missing; until then: kubectl cordon w1\n", "")
}

// TestDoctorOfHandovers: machines that were admitted to a pool that does not report them, or were not ready by the
// deadline, and rules without effect.
//
// Seen to fail without the deadline.
func TestDoctorOfHandovers(t *testing.T) {
	f := newFake(t)
	all := api.Machines{Machines: []api.Machine{
		{Name: "m1", Pool: "k", To: "k", Last: "s", Step: "admit", Epoch: 2, Nodes: []api.MachineNode{{Pool: "s", Node: "n1", State: "draining", Fence: 2}}},
		{Name: "m2", Pool: "k", To: "k", Last: "s", Step: "admit", Epoch: 2, Waits: "node w2 of pool k to be up", Deadline: time.Now().Add(time.Hour), Nodes: []api.MachineNode{{Pool: "k", Node: "w2"}}},
		{Name: "m3", Pool: "k", Epoch: 1},
	}}
	f.Answer("GET /v1/machines", func(*http.Request) (any, error) { return all, nil })
	f.Cox(t, "doctor").Check(t, 1, "m1: it belongs to pool k, which reports no node there\n  start the agent of pool k there (cox pool list shows whether its engine answers), or give the machine back, if you have seen that nothing of that pool runs there: cox node move m1 --to s --force\n", "")
	all.Machines = all.Machines[1:]
	f.Cox(t, "doctor").Check(t, 0, "~2 machines: on none of them", "")
	all.Machines[0].Deadline = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	all.Warnings = []api.MachineWarning{{Text: "the rules name k", Do: "leave it out"}}
	f.Cox(t, "doctor").Check(t, 1, "m2: it has come to pool k, and was not ready by the deadline 2026-01-02T03:04:05Z: it waits for node w2 of pool k to be up\n  mend that, or move the machine back: cox node move m2 --to s\nthe rules name k\n  leave it out\n", "")
}
