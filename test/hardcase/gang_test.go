package hardcase

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// The ranks of a gang end one after the other: the job is whole all the while, and ends
// well with the last. (That a subgroup below its minimum is noticed waits for minima of
// subgroups, which do not exist yet.)
func TestHardCase_24_endOneByOne(t *testing.T) {
	p := plane.New(t, nodes(3, 0)).Start()
	diary := p.Diary("diary")
	gates := []*plane.Gate{p.Gate("gate0"), p.Gate("gate1"), p.Gate("gate2")}
	job := p.Submit("srun sh -c '"+diary.Note("begin")+"; read line < gate$SLURM_PROCID; "+diary.Note("rank $SLURM_PROCID ends")+"'", "--nodes=3")
	diary.Await(3)
	for i, gate := range gates {
		p.Settle()
		if j := p.Get(job); j.State != "RUNNING" || len(j.Claims) != 3 || len(j.Flags) > 0 || j.Message != "" {
			t.Errorf("with %d ranks ended it is %s %v %q on %+v", i, j.State, j.Flags, j.Message, j.Claims)
		}
		gate.Open()
		diary.Await(4 + i)
	}
	p.Ends(job, "COMPLETED")
	diary.Expect("begin", "begin", "begin", "rank 0 ends", "rank 1 ends", "rank 2 ends")
}

// Groups A and B belong together, and C and D; each pair needs two of the three nodes.
// Where groups come one by one, in the order A, C, B, D, it ends with A beside C, each
// waiting for its partner. Here a pair is one job of two components, so that it cannot
// come in parts: one pair runs whole, then the other.
func TestHardCase_22_groupOfGroups(t *testing.T) {
	p := plane.New(t, nodes(3, 0)).Start()
	diary, gate := p.Diary("diary"), p.Gate("gate")
	pair := func(first, second string) string {
		run := func(group int, name string) string {
			return fmt.Sprintf("srun --het-group=%d sh -c '%s; %s' &\n", group, diary.Note(name), gate.Wait)
		}
		return p.Submit("#SBATCH --nodes=1 --exclusive\n#SBATCH hetjob\n#SBATCH --nodes=1 --exclusive\n" + run(0, first) + run(1, second) + "wait")
	}
	ab, cd := pair("A", "B"), pair("C", "D")
	lines := diary.Await(2)
	p.Settle("--exclusive") // the third node is free, and no half of a pair is on it
	slices.Sort(lines)
	if !slices.Equal(lines, []string{"A", "B"}) {
		t.Errorf("%q are together", lines)
	}
	if j := p.Get(cd); j.State != "PENDING" || len(j.Claims) > 0 {
		t.Errorf("the second pair is %s and holds %+v", j.State, j.Claims)
	}
	gate.Open()
	p.Ends(ab, "COMPLETED")
	p.Ends(cd, "COMPLETED")
	if n := len(diary.Lines()); n != 4 {
		t.Errorf("%d groups ran: %q", n, diary.Lines())
	}
}

// sameMoment submits jobs at once from goroutines of their own.
func sameMoment(p *plane.Plane, n int, script string, args ...string) []string {
	type answer struct {
		job string
		err error
	}
	answers := make(chan answer, n)
	start := make(chan struct{})
	for range n {
		go func() {
			<-start
			got, err := p.TrySubmit(script, args...)
			if err != nil {
				answers <- answer{err: err}
				return
			}
			answers <- answer{job: got.ID.String()}
		}()
	}
	close(start)
	var jobs []string
	for range n {
		a := <-answers
		if a.err != nil {
			p.T.Fatal(a.err)
		}
		jobs = append(jobs, a.job)
	}
	return jobs
}

// Gangs that each need every node are submitted at the same moment: one after the other
// runs whole; no two have a part each. (Here with 12 nodes and real processes; with 100
// nodes on the fake engine below.)
func TestHardCase_20_twoGangs(t *testing.T) {
	const n = 12
	p := plane.New(t, nodes(n, 0)).Start()
	diary := p.Diary("diary")
	barrier := p.Dir + "/barrier.$SLURM_JOB_ID"
	script := fmt.Sprintf("mkdir %s\nsrun sh -c 'echo > %s/$SLURM_PROCID; while [ $(ls %s | wc -l) -lt %d ]; do sleep 0.02; done; %s'", barrier, barrier, barrier, n, diary.Note("$SLURM_JOB_ID"))
	gangs := sameMoment(p, 2, script, fmt.Sprintf("--nodes=%d", n), alone)
	for _, g := range gangs {
		j := p.Ends(g, "COMPLETED")
		if len(j.Claims) != n {
			t.Errorf("gang %s had %d nodes", g, len(j.Claims))
		}
	}
	lines := diary.Lines()
	if len(lines) != 2*n || len(slices.Compact(lines)) != 2 { // all of one, then all of the other
		t.Errorf("%q", diary.Lines())
	}
}
