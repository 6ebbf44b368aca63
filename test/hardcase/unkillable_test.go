package hardcase

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// unkillable is a room of n nodes in which a process counts as stuck soon after SIGKILL.
func unkillable(n int) func(*config.Config) {
	const soon = config.Duration(100 * time.Millisecond)
	return func(c *config.Config) { c.Room.Nodes, c.Jobs.Grace, c.Jobs.Unkillable = n, soon, soon }
}

// A rank of a gang is in uninterruptible sleep, and the job is requeued. SIGKILL does
// not end the rank: what the job holds stays held, and is uncertain; the node is drained
// with process, host and job in the reason; the job does not walk through the partition
// and leave such a node behind each time. When the rank is gone it runs again, elsewhere.
func TestHardCase_16_walks(t *testing.T) {
	plane.CanFreeze(t)
	p := plane.New(t, unkillable(4)).Start()
	diary, gate := p.Diary("diary"), p.Gate("gate")
	script := "[ \"$SLURM_RESTART_COUNT\" ] && exit 0; srun sh -c '" + diary.Note("$$ $SLURMD_NODENAME") + "; " + gate.Wait + "'"
	job := p.Submit(script, "--nodes=2", alone, "--requeue")
	rank, node, _ := strings.Cut(diary.Await(2)[0], " ")
	before := p.Until(job, "runs", func(j *api.Job) bool { return !j.Started.IsZero() })
	thaw := p.Freeze(pid(t, rank))
	p.Change(api.VerbRequeue, job, nil)

	j := p.Until(job, "is uncertain", func(j *api.Job) bool { return slices.Contains(j.Flags, "UNCERTAIN") })
	if j.State != "RUNNING" || j.Attempt != 1 || !strings.Contains(j.Message, rank) || !strings.Contains(j.Message, node) {
		t.Errorf("the job is %s in attempt %d: %q", j.State, j.Attempt, j.Message)
	}
	p.Await("the node is drained", func() bool { return p.Node(node).State == "draining" })
	if n := p.Node(node); !strings.Contains(n.Why, rank+" (sh, state D)") || !strings.Contains(n.Why, "job "+job+" on "+node) {
		t.Errorf("drained because: %q", n.Why)
	}
	p.Ends(p.Submit("srun true", "--nodes=2", alone), "COMPLETED") // on the two others
	if j := p.Get(job); j.Attempt != 1 || len(j.Claims) != 2 || len(p.Node(node).Jobs) != 1 {
		t.Errorf("while its rank lives the job is in attempt %d and holds %+v", j.Attempt, j.Claims)
	}
	thaw()
	j = p.Ends(job, "COMPLETED")
	for _, c := range j.Claims {
		if j.Attempt != 2 || c.Node == node {
			t.Errorf("attempt %d ran on %s; attempt 1 on %+v", j.Attempt, c.Node, before.Claims)
		}
	}
}

// A node's supervisor dies and leaves a process that nothing ends: nobody is there any
// more to prove anything. The claim becomes uncertain, with an event that says so; it is
// neither freed by the cancel nor lost, also over a restart of the server, and no other
// job gets the node.
func TestHardCase_15_noAgent(t *testing.T) {
	plane.CanFreeze(t)
	p := plane.New(t, unkillable(1)).Start()
	diary := p.Diary("diary")
	job := p.Submit(diary.Note("$$ $PPID")+"; exec sleep 600", alone)
	process, supervisor, _ := strings.Cut(diary.Await(1)[0], " ")
	p.Until(job, "runs", func(j *api.Job) bool { return !j.Started.IsZero() })
	thaw := p.Freeze(pid(t, process))
	if err := unix.Kill(pid(t, supervisor), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Change(api.VerbCancel, job, nil)
	next := p.Submit("exit 0", alone)

	uncertain := func(j *api.Job) bool { return slices.Contains(j.Flags, "UNCERTAIN") }
	p.Until(job, "is uncertain", uncertain)
	if !slices.ContainsFunc(p.Events(0), func(e api.Event) bool {
		return e.Kind == "uncertain" && e.Name == job && strings.Contains(e.Message, process)
	}) {
		t.Error("no event says so")
	}
	node := p.Names()[0]
	for range 2 {
		p.Until(job, "is uncertain", uncertain)
		if n := p.Node(node); !slices.Equal(n.Jobs, []string{job}) || n.State != "draining" || p.Get(next).State != "PENDING" {
			t.Errorf("the node is %s and held by %v", n.State, n.Jobs)
		}
		p.Stop()
		p.Start()
	}
	thaw()
	p.Ends(job, "CANCELLED")
	if len(p.Node(node).Jobs) > 0 {
		t.Errorf("the node is held by %v", p.Node(node).Jobs)
	}
	if _, err := p.ChangeNodes(t.Context(), &api.NodeChange{Nodes: []string{node}, Verb: "resume"}); err != nil {
		t.Fatal(err)
	}
	p.Ends(next, "COMPLETED")
}
