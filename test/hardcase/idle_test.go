package hardcase

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// A job holds 8 GPUs on each of two nodes. On one it computes at first and then sleeps,
// on the other it never has a process. Both are shown, each as what it is, and the idle
// line goes away when the job computes again. (The devices' own use is not read.)
func TestHardCase_54_idle(t *testing.T) {
	p := plane.New(t, func(c *config.Config) { nodes(2, 8)(c); c.Jobs.Idle = config.Duration(300 * time.Millisecond) }).Start()
	diary, gate := p.Diary("diary"), p.Gate("gate")
	job := p.Submit(diary.Note("computes")+"; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; "+gate.Wait+"; while :; do :; done", "--nodes=2", "--gpus-per-node=8")
	diary.Await(1)
	j := p.Until(job, "is idle on both nodes", func(j *api.Job) bool { return len(j.Idle) == 2 })
	head, other := j.Idle[0], j.Idle[1]
	if head.Node != j.Claims[0].Node || head.Devices != 8 || head.Processes != 1 || other.Devices != 8 || other.Processes != 0 {
		t.Errorf("%+v", j.Idle)
	}
	card := printer.Job(printer.Page{Now: time.Now(), Zone: time.UTC}, j, "")
	for _, want := range []string{head.Node + ": holds 8 GPUs, 1 process without CPU time since ", other.Node + ": holds 8 GPUs, no process since "} {
		if !strings.Contains(card, want) {
			t.Errorf("cox show does not say %q:\n%s", want, card)
		}
	}
	gate.Open()
	p.Until(job, "computes again on its first node", func(j *api.Job) bool { return len(j.Idle) == 1 && j.Idle[0].Node == other.Node })
}
