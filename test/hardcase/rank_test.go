package hardcase

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// The ranks of a gang run where the core decided, in the order in which it did: the claims
// of the job, the list of its nodes and what each process says of its rank and node agree.
// The topology has two leaves, and one node is kept busy, so that the gang has to have both and its nodes are no run of
// names.
func TestRanksRunWhereTheyWereDecided(t *testing.T) {
	p := plane.New(t, func(c *config.Config) { c.Room.Nodes, c.Room.NodesPerLeaf = 6, 3 }).Start()
	diary, gate := p.Diary("diary"), p.Gate("gate")
	busy := p.Submit(gate.Wait, "--exclusive", "--nodelist="+p.Names()[1])
	p.Until(busy, "run", plane.Is("RUNNING"))
	said := p.Diary("list")
	job := p.Submit(said.Note("$SLURM_JOB_NODELIST")+"\nsrun sh -c '"+diary.Note("$SLURM_PROCID $SLURM_NODEID $SLURMD_NODENAME")+"'", "--nodes=4", "--ntasks=4", "--exclusive")
	j := p.Ends(job, "COMPLETED")
	gate.Open()
	p.Ends(busy, "COMPLETED")

	var want []string
	for i, c := range j.Claims {
		want = append(want, fmt.Sprintf("%d %d %s", i, i, c.Node))
	}
	got := diary.Await(4)
	slices.Sort(got)
	if len(want) != 4 || !slices.Equal(got, want) {
		t.Errorf("the ranks ran as %q, decided was %q", got, want)
	}
	var leaves []string
	for _, c := range j.Claims {
		leaves = append(leaves, strings.Join(p.Node(c.Node).Path, "/"))
	}
	if runs := len(slices.Compact(slices.Clone(leaves))); runs != 2 {
		t.Errorf("the ranks go over the leaves %q", leaves)
	}
	var nodes []string
	for _, c := range j.Claims {
		nodes = append(nodes, c.Node)
	}
	if list, err := hostlist.Expand(said.Await(1)[0]); err != nil || !slices.Equal(list, nodes) {
		t.Errorf("SLURM_JOB_NODELIST is %q (%v), decided was %q", list, err, nodes)
	}
}
