package local

import (
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestPodsAreRefused: what is asked of pods is not dropped where there are none.
func TestPodsAreRefused(t *testing.T) {
	e := new(Engine)
	if err := e.Admit(t.Context(), &engine.JobDraft{Spec: &job.Spec{Pod: &job.Pod{HostNetwork: true}}}); fault.KindOf(err) != fault.Unsupported || fault.Remedy(err) == "" {
		t.Error(err)
	}
	if err := e.Admit(t.Context(), &engine.JobDraft{Spec: &job.Spec{}}); err != nil {
		t.Error(err)
	}
}
