package podagent_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// ask is what cox-pod ask prints in a member's pod.
func (p *pod) ask(question string) ([]byte, error) {
	cmd := p.command("ask", question)
	cmd.Env = append(cmd.Env, podagent.PlanEnv+"="+filepath.Join(p.crew.dir, "secret"))
	return cmd.Output()
}

// TestUsage: while an attempt runs, what all its members use can be asked of member 0, by step. It
// is asked again only after some seconds, so the step has to use CPU time first.
func TestUsage(t *testing.T) {
	c := planned(t, 2, `srun --quiet sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; touch '$PWD'/up.$SLURM_PROCID; sleep 300 & wait'
`)
	c.start()
	c.allUp()
	text, err := c.members[0].ask(`{"usage":true}`)
	var r rusage.Record
	if err != nil || json.Unmarshal(text, &r) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	step, batch := r.Step(0), r.Step(engine.BatchStep)
	if step == nil || batch == nil || step.Running != 2 || step.Tasks != 2 || batch.Running != 1 {
		t.Fatalf("steps %+v", r.Steps)
	}
	if step.Sum.CPUTime() < 20*time.Millisecond || step.Sum.Memory == 0 || r.Total.CPUTime() < step.Sum.CPUTime() || r.Total.Memory == 0 {
		t.Errorf("step 0 %+v, in all %+v", step, r.Total)
	}
	if r.Nodes != nil || r.LeftNodes != 2 || !strings.HasPrefix(step.MinCPU.Node, "cox-ab-7-1-") {
		t.Errorf("nodes %+v, %d left out; %+v", r.Nodes, r.LeftNodes, step.MinCPU)
	}
}

// TestUsageTooEarly: an attempt that has not started uses nothing.
func TestUsageTooEarly(t *testing.T) {
	c := planned(t, 2, "true").start(1)
	eventually(t, "member 0 answers", func() bool {
		_, err := c.members[0].ask(`{"usage":true}`)
		var exit *exec.ExitError
		return errors.As(err, &exit) && exit.ExitCode() == fault.Conflict.ExitCode() && strings.Contains(string(exit.Stderr), "has not started")
	})
}
