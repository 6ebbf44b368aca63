package route

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

func TestCoupledWorkNeverGoesWhereGangsAreNotWhole(t *testing.T) {
	loose := Pool{"k8s-a", "kube", engine.Abilities{Gang: engine.GangNone}}
	strict := Pool{"here", "local", engine.Abilities{Gang: engine.GangStrict}}
	single := &job.Spec{Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}}}
	coupled := &job.Spec{Groups: []job.TaskGroup{{Tasks: job.Count{Want: 2}}}}

	if c, err := Choose(single, []Pool{loose, strict}); err != nil || c.Pool.Name != "k8s-a" {
		t.Errorf("a single task: %+v %v", c, err)
	}
	if c, err := Choose(coupled, []Pool{loose, strict}); err != nil || c.Pool.Name != "here" || len(c.Rules) != 3 {
		t.Errorf("coupled tasks: %+v %v", c, err)
	}
	_, err := Choose(coupled, []Pool{loose})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "k8s-a") {
		t.Errorf("nowhere to go: %v", err)
	}
}
