package reason_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/reason"
)

// TestTexts shows every code as a user reads it.
func TestTexts(t *testing.T) {
	for _, c := range []struct {
		reason reason.Reason
		want   string
	}{
		{reason.Reason{}, "nothing holds it"},
		{reason.Reason{Code: reason.Resources, Resource: "gpu", Need: 5, Free: 3}, "needs 5 GPUs, free now: 3 GPUs"},
		{reason.Reason{Code: reason.Resources, Resource: "gpu", Need: 1, Used: 20 << 30, Most: 12 << 30}, "no GPU has 20 GiB left: the most that one has is 12 GiB"},
		{reason.Reason{Code: reason.Resources, Resource: "gpu:h100", Need: 4, Free: 3, Used: 20 << 30, Most: 40 << 30}, "needs 4 times 20 GiB of a gpu:h100, room now: for 3"},
		{reason.Reason{Code: reason.TooLarge, Resource: "gpu", Need: 1, Used: 90 << 30, Most: 80 << 30}, "no GPU has 90 GiB: the largest has 80 GiB"},
		{reason.Reason{Code: reason.Resources, Resource: "gpu", Need: 1, Free: 0}, "needs 1 GPU, free now: 0 GPUs"},
		{reason.Reason{Code: reason.Resources, Resource: "gres/gpu", Need: 8}, "needs 8 GPUs, free now: 0 GPUs"},
		{reason.Reason{Code: reason.Resources, Resource: "gres/gpu:h100", Need: 8, Free: 1}, "needs 8 h100 GPUs, free now: 1 h100 GPU"},
		{reason.Reason{Code: reason.Resources, Resource: "gres/fpga", Need: 2, Free: 1}, "needs 2 fpga, free now: 1 fpga"},
		{reason.Reason{Code: reason.Resources, Resource: "cpu", Need: 1500, Free: 500}, "needs 1.5 CPUs, free now: 0.5 CPUs"},
		{reason.Reason{Code: reason.Resources, Resource: "memory", Need: 3 << 29, Free: 1 << 20}, "needs 1.5 GiB memory, free now: 1 MiB memory"},
		{reason.Reason{Code: reason.Resources, Resource: "nodes", Need: 2, Free: 1}, "needs 2 nodes, free now: 1 node"},
		{reason.Reason{Code: reason.Resources, Resource: "port:8000", Need: 1, Want: "a", Job: 12}, "port 8000 is taken on node a by job 12"},
		{reason.Reason{Code: reason.Resources, Resource: "port:8000", Need: 1}, "port 8000 is taken on every node that it could run on"},
		{reason.Reason{Code: reason.Priority, Ahead: 1, Job: 4}, "1 job before it, first job 4"},
		{reason.Reason{Code: reason.Priority, Job: 4}, "others are before it, first job 4"},
		{reason.Reason{Code: reason.Priority}, "others are before it"},
		{reason.Reason{Code: reason.Priority, Ahead: 3, Job: 4}, "3 jobs before it, first job 4"},
		{reason.Reason{Code: reason.Endless, Job: 4}, "waits for what job 4 holds, which serves and has no time limit"},
		{reason.Reason{Code: reason.Reserved, Job: 4}, "would delay job 4, which is before it"},
		{reason.Reason{Code: reason.NodeCount, Need: 5, Free: 4}, "needs 5 nodes, only 4 qualify"},
		{reason.Reason{Code: reason.TooLarge, Resource: "gpu", Need: 16, Most: 8}, "needs 16 GPUs on one node, the largest has 8 GPUs"},
		{reason.Reason{Code: reason.Constraint, Want: "ib", Nodes: 2}, "constraint ib: 2 nodes with these features"},
		{reason.Reason{Code: reason.NodeList, Want: "n9"}, "node n9 is not in the pool"},
		{reason.Reason{Code: reason.NodeDown, Want: "n9"}, "node n9 is down or drained"},
		{reason.Reason{Code: reason.OtherPool, Holder: "q", Want: "a1 belongs to pool p"}, "pool q lacks machines that it has nodes on: a1 belongs to pool p"},
		{reason.Reason{Code: reason.Partition, Want: "fast"}, "no partition fast"},
		{reason.Reason{Code: reason.HeldUser}, "held by its owner (release it to let it run)"},
		{reason.Reason{Code: reason.HeldAdmin}, "held by an administrator"},
		{reason.Reason{Code: reason.BeginTime, Until: 1800000000}, "not to begin before 2027-01-15T08:00:00Z"},
		{reason.Reason{Code: reason.Dependency, Want: "afterok:7"}, "waits for dependency afterok:7"},
		{reason.Reason{Code: reason.ArrayLimit, Need: 2}, "the array runs at most 2 tasks at a time"},
		{reason.Reason{Code: reason.Cleaning}, "its earlier attempt is not proved ended"},
		{reason.Reason{Code: reason.Uncertain, Want: "n1"}, "nobody can prove what runs on n1"},
		{reason.Reason{Code: reason.LaunchFailed, Want: "no such file"}, "could not be started: no such file"},
		{reason.Reason{Code: reason.NodeFailed, Want: "n1"}, "node n1 failed"},
		{reason.Reason{Code: reason.TimeLimit, Need: 60}, "reached its time limit of 60 s"},
		{reason.Reason{Code: reason.NoGang}, "the engine of this pool cannot start coupled tasks whole"},
		{reason.Reason{Code: reason.EngineDown, Want: "connection refused"}, "the engine does not answer: connection refused"},
	} {
		if got := c.reason.String(); got != c.want {
			t.Errorf("%+v reads %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestEveryCodeHasAText: a code without a sentence of its own would show as itself.
func TestEveryCodeHasAText(t *testing.T) {
	seen := map[reason.Code]bool{}
	for _, c := range reason.Codes() {
		if seen[c] {
			t.Errorf("%s is listed twice", c)
		}
		seen[c] = true
		text := reason.Reason{Code: c, Want: "x"}.String()
		if text == string(c) || text == "" || strings.HasSuffix(text, ".") {
			t.Errorf("%s reads %q", c, text)
		}
		if c.Slurm() == "None" {
			t.Errorf("%s is nothing to squeue", c)
		}
	}
	if reason.None.Slurm() != "None" || reason.Code("new").Slurm() != "None" || (reason.Reason{Code: "new"}).String() != "new" {
		t.Error("an unknown code is not shown as it is")
	}
}

// TestSlurmKnowsTheWords: every word that we print in the reason column is one that
// squeue prints, so that scripts which look for it find it.
func TestSlurmKnowsTheWords(t *testing.T) {
	b, err := os.ReadFile("testdata/squeue-reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, w := range strings.Fields(string(b)) {
		known[w] = true
	}
	for _, c := range reason.Codes() {
		if !known[c.Slurm()] {
			t.Errorf("%s is %s, which squeue never prints", c, c.Slurm())
		}
	}
}

// TestReasonsAreStable: codes stand in journals, so a reason must be read as it was
// written.
func TestReasonsAreStable(t *testing.T) {
	in := reason.Reason{
		Code: reason.Resources, Resource: "gpu:h100", Need: 1, Free: 2, Most: 3, Nodes: 4, Ahead: 5, Job: 6,
		Want: "w", Until: 7, Since: 8,
	}
	const want = `{"code":"resources","resource":"gpu:h100","need":1,"free":2,"most":3,"nodes":4,"ahead":5,"job":6,"want":"w","until":7,"since":8}`
	b, err := json.Marshal(in)
	if err != nil || string(b) != want {
		t.Errorf("written as %s (%v), want %s", b, err, want)
	}
	var out reason.Reason
	if err := json.Unmarshal(b, &out); err != nil || out != in {
		t.Errorf("read as %+v (%v)", out, err)
	}
}
