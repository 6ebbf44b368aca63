package srun

import (
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/model/job"
)

func TestScontrolShowsTheJob(t *testing.T) {
	a := steptest.WithOptions(steptest.Anna(steptest.Uniform(2, 2, 4, 2)), "ntasks-per-node=2")
	a.Array = &job.ArrayTask{Job: 1, Index: 3}
	a.Output.Stdout = "%x-%A_%a.out"
	c := launch(t, a)
	got := c.run(`scontrol show job; scontrol -o show job=$SLURM_JOB_ID; scontrol -d show job 1_3 | grep IDX; scontrol show job 99`)
	for _, want := range []string{
		`JobId=1 ArrayJobId=1 ArrayTaskId=3 JobName=train\n`, `\n   UserId=anna\(1000\)`, `NodeList=v\[1-2\]`, `BatchHost=v1`,
		`NumNodes=2 NumCPUs=8 NumTasks=4 CPUs/Task=1`, `TRES=cpu=8,mem=0M,node=2,gres/gpu=4`, `StdOut=/.*/work/train-1_3.out\n`, `TimeLimit=00:05:00`,
		`\n\nJobId=1 .* BatchHost=v1 .*\n`, `Nodes=v2 CPUs=4 Mem=0 GRES=gpu:h100:2\(IDX:0,1\)`,
	} {
		if !regexp.MustCompile(want).MatchString(got.out) {
			t.Errorf("%q is not in\n%s", want, got.out)
		}
	}
	if got.code != 1 || !strings.Contains(got.err, "show job 99: only the own job 1") {
		t.Errorf("exit %d, said %s", got.code, got.err)
	}
}
