package sched_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// spending is a fleet of three nodes on which jobs of account v run: a whole, half of b.
// Job 3 of account u waits for two nodes and may have what the limits of u leave it; job 4
// of u is small and short, and so many jobs of v stand between them, each for all nodes.
// Job 5 of v would be in the way of job 3 on c.
func spending(limits account.Limits, more int) (*sched.Core, []sched.Decision) {
	of := func(account string, s *job.Spec) *job.Spec {
		s.Account = account
		return s
	}
	c := sched.New(sched.Config{})
	c.Step(atMinute(60), sched.PolicySet{Policy: &account.Policy{
		Backfill: account.Backfill{Reservations: more}, Accounts: []account.Account{{Name: "u", Limits: limits}, {Name: "v"}},
	}}, sched.NodeSet{Node: node("a", 8)}, sched.NodeSet{Node: node("b", 8)}, sched.NodeSet{Node: node("c", 8)},
		sched.Submitted{Job: 1, Spec: of("v", gang(1, 8, 1, 100*time.Minute))}, sched.Submitted{Job: 2, Spec: of("v", gang(1, 4, 1, 100*time.Minute))})
	events := []sched.Event{sched.Submitted{Job: 3, Spec: of("u", gang(2, 8, 1, 100*time.Minute)), Priority: 9}}
	for id := range job.ID(more) {
		events = append(events, sched.Submitted{Job: 10 + id, Spec: of("v", gang(3, 8, 1, time.Hour)), Priority: 8})
	}
	return c, c.Step(atMinute(61), append(events, sched.Submitted{Job: 4, Spec: of("u", gang(1, 1, 1, 5*time.Minute))},
		sched.Submitted{Job: 5, Spec: of("v", gang(1, 8, 1, 1000*time.Minute))})...)
}

// TestWhatIsSpentLeavesNoPromise: a start is planned for a large job once nodes are free;
// a small one of the same account starts behind it, in the same pass, and takes what the
// limit of their account leaves the large one. Nothing is planned for that any longer, it
// is told of the limit, and what was kept for it is there for others in the same step.
//
// Seen to fail (job 3 was promised a start) where the plan was left, for the head alone and
// by name.
func TestWhatIsSpentLeavesNoPromise(t *testing.T) {
	for what, limits := range map[string]account.Limits{
		"AssocGrpCpuLimit":        {Group: account.TRES{"cpu": resource.CPUs(16)}},
		"AssocGrpCPUMinutesLimit": {GroupMinutes: account.TRES{"cpu": resource.CPUs(16*100 + 2)}},
	} {
		for _, more := range []int{0, 1, 2} {
			c, out := spending(limits, more)
			for _, d := range out {
				if d, ok := d.(sched.Promise); ok && d.Job == 3 {
					t.Errorf("%s, %d more: job 3 is promised a start: %+v", what, more, d)
				}
			}
			if why := c.Reasons(atMinute(61), 3); !startsNow(out, 4) || why[0].Code.Slurm() != what {
				t.Errorf("%s, %d more: job 4 starts: %v; job 3 waits for %v", what, more, startsNow(out, 4), why)
			}
			if p := c.Planned(); len(p) > 0 && p[0].Job == 3 || startsNow(out, 5) != (more == 0) {
				t.Errorf("%s, %d more: job 5 starts: %v; planned is %+v", what, more, startsNow(out, 5), p)
			}
			if err := c.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}
