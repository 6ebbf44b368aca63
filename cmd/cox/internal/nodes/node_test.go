package nodes_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestNodeChanges(t *testing.T) {
	f := newFake(t)
	f.Answer("POST /v1/nodes/change", func(*http.Request) (any, error) {
		return api.Nodes{Nodes: []api.Node{{Name: "v1", State: "draining", Jobs: []string{"7"}}}}, nil
	})
	f.Answer("GET /v1/nodes", func(*http.Request) (any, error) {
		return api.Nodes{Nodes: []api.Node{{Name: "v1", State: "up", Partitions: []string{"gpu"}}, {Name: "v2", State: "down"}}}, nil
	})
	f.Cox(t, "node", "drain", "v[1-2]").Check(t, 2, "", "~a reason is required: --reason")
	f.Cox(t, "node", "drain", "v[1-2]", "--reason", "fan").Check(t, 0, "v1        draining: 1 job still there: 7\n", "")
	var got api.NodeChange
	f.Last(t, &got)
	if d := cmp.Diff(api.NodeChange{Nodes: []string{"v[1-2]"}, Verb: "drain", Reason: "fan"}, got); d != "" {
		t.Error(d)
	}
	f.Cox(t, "nodes", "-o", "name", "-t", "down").Check(t, 0, "v2\n", "")
	f.Cox(t, "nodes", "v[1-3]").Check(t, 3, "", "~node v3 does not exist")
	f.Cox(t, "nodes", "-p", "gpu", "-o", "name").Check(t, 0, "v1\n", "")
	f.Cox(t, "node").Check(t, 2, "", "~cox node needs a command: check, drain, fence, move, resume, show or unfence\n")
}

// TestNodeMove: what cox node move sends, what it prints, and its exit codes.
func TestNodeMove(t *testing.T) {
	f := newFake(t)
	answer := api.MovedMachines{Machines: []api.MovedMachine{{Machine: "m1", Node: "a1", From: "a", To: "b", Epoch: 2, Why: "idle"}}}
	f.Answer("POST /v1/machines/move", func(*http.Request) (any, error) { return answer, nil })
	f.Answer("POST /v1/machines/abort", func(*http.Request) (any, error) { return answer, nil })
	f.Cox(t, "node", "move", "a1").Check(t, 2, "", "~--to is required")
	f.Cox(t, "node", "move", "--to", "b").Check(t, 2, "", "~needs the names of nodes, --count or --rack")
	f.Cox(t, "node", "move", "--abort").Check(t, 2, "", "~needs the names of machines")
	f.Cox(t, "node", "move", "--abort", "m1", "--to", "b").Check(t, 2, "", "~no other flag")
	f.Cox(t, "node", "move", "a1", "--to", "b", "--deadline", "-1s").Check(t, 2, "", "~from now on")
	f.Cox(t, "node", "move", "a1", "--to", "b", "--now", "--deadline", "1h", "--reason", "day").Check(t, 0, "m1 (a1): moves from pool a to pool b; idle\ncox machines shows how far they are\n", "")
	var got api.MachineMove
	f.Last(t, &got)
	if d := cmp.Diff(api.MachineMove{Nodes: []string{"a1"}, To: "b", Now: true, Deadline: 3600, Reason: "day"}, got); d != "" {
		t.Error(d)
	}
	f.Cox(t, "node", "move", "--count", "1", "--rack", "r1", "--from", "a", "--to", "b", "--dry-run").Check(t, 0, "m1 (a1): would move from pool a to pool b; idle\n", "")
	got = api.MachineMove{}
	f.Last(t, &got)
	if d := cmp.Diff(api.MachineMove{Count: 1, Rack: "r1", From: "a", To: "b", DryRun: true, Deadline: 86400}, got); d != "" {
		t.Error(d)
	}
	f.Cox(t, "node", "move", "--abort", "m1").Check(t, 0, "m1 (a1): walked back, stays in pool a\ncox machines shows how far they are\n", "")
	answer.Machines = append(answer.Machines, api.MovedMachine{Machine: "m2", From: "a", To: "b", Error: api.ErrorOf(fault.New(fault.Conflict, "machine m2 is pool b's already"))})
	f.Cox(t, "node", "move", "m[1-2]", "--to", "b").Check(t, 4, "~m2: refused: machine m2 is pool b's already\n", "~1 of 2 machines were refused")
}

// TestNodeMoveWaits: cox node move --wait says each step, and ends when the hand-overs have ended.
func TestNodeMoveWaits(t *testing.T) {
	f := newFake(t)
	f.Answer("POST /v1/machines/move", func(*http.Request) (any, error) {
		return api.MovedMachines{Machines: []api.MovedMachine{{Machine: "m1", From: "a", To: "b", Epoch: 2, Why: "idle"}, {Machine: "m2", From: "a", To: "b", Epoch: 4, Why: "idle"}}}, nil
	})
	looks := 0
	f.Answer("GET /v1/machines", func(*http.Request) (any, error) {
		first, second := api.Machine{Name: "m1", Pool: "b", Last: "a", Epoch: 2, Step: "release"}, api.Machine{Name: "m2", Pool: "a", To: "b", Epoch: 4, Step: "fence", Waits: "pod web-0 on a2"}
		if looks++; looks > 1 {
			second = api.Machine{Name: "m2", Pool: "a", Epoch: 4, Step: "release", Evidence: "walked back: aborted by root"}
		}
		return api.Machines{Machines: []api.Machine{first, second, {Name: "m3", Pool: "a", To: "b", Epoch: 9, Step: "asked"}}}, nil
	})
	f.Cox(t, "node", "move", "m[1-2]", "--to", "b", "--wait").Check(t, 4,
		"m1: moves from pool a to pool b; idle\nm2: moves from pool a to pool b; idle\n"+
			"m1: belongs to pool b\nm2: waits for pod web-0 on a2\nm2: stays in pool a: walked back: aborted by root\n",
		"~1 of 2 hand-overs were walked back")
	f.Cox(t, "node", "move", "m1", "--to", "b", "--wait", "--dry-run").Check(t, 2, "", "~nothing moves that could be waited for")
}

// TestNodeFence: what cox node fence and unfence send and print, and their exit codes.
func TestNodeFence(t *testing.T) {
	f := newFake(t)
	answer := api.FencedMachines{Machines: []api.FencedMachine{{Machine: "m1", Owner: "a", Nodes: []string{"b/b1"}, Epoch: 2}}}
	f.Answer("POST /v1/machines/fence", func(*http.Request) (any, error) { return answer, nil })
	f.Cox(t, "node", "fence", "m1").Check(t, 2, "", "~a reason is required: --reason")
	f.Cox(t, "node", "fence", "--reason", "x").Check(t, 2, "", "~needs the names of nodes")
	f.Cox(t, "node", "fence", "m1", "--reason", "a has it").Check(t, 0, "m1: b/b1 is being closed; pool a has the machine\ncox machines shows the marks, as soon as the engines have answered\n", "")
	var got api.MachineFence
	f.Last(t, &got)
	if d := cmp.Diff(api.MachineFence{Nodes: []string{"m1"}, Reason: "a has it"}, got); d != "" {
		t.Error(d)
	}
	f.Cox(t, "node", "unfence", "m1").Check(t, 0, "m1: b/b1 is being opened; two engines can start work there then\ncox machines shows the marks, as soon as the engines have answered\n", "")
	got = api.MachineFence{}
	f.Last(t, &got)
	if d := cmp.Diff(api.MachineFence{Nodes: []string{"m1"}, Remove: true}, got); d != "" {
		t.Error(d)
	}
	answer.Machines[0].Already = true
	answer.Machines = append(answer.Machines, api.FencedMachine{Machine: "m2", Error: api.ErrorOf(fault.New(fault.Conflict, "machine m2 is handed over"))})
	f.Cox(t, "node", "fence", "m[1-2]", "--reason", "x").Check(t, 4, "~m1: b/b1 was closed before, or is being closed\nm2: refused: machine m2 is handed over\n", "~1 of 2 machines were refused")
}
