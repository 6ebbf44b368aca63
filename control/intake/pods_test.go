package intake

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestPodsOfASubmission: what is said beside the text outranks it, changes nothing else, and leaves
// nothing asked of pods where nothing is.
func TestPodsOfASubmission(t *testing.T) {
	for _, c := range []struct {
		of         string
		have, want *job.Pod
	}{
		{"", nil, nil},
		{"", &job.Pod{PerTask: true}, &job.Pod{PerTask: true}},
		{"task", nil, &job.Pod{PerTask: true}},
		{"task", &job.Pod{LockMemory: true}, &job.Pod{LockMemory: true, PerTask: true}},
		{"node", nil, nil},
		{"node", &job.Pod{PerTask: true}, nil},
		{"node", &job.Pod{PerTask: true, LockMemory: true}, &job.Pod{LockMemory: true}},
	} {
		s := &job.Spec{Pod: c.have}
		if err := setPods(s, c.of); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if diff := cmp.Diff(c.want, s.Pod); diff != "" {
			t.Errorf("%q: %s", c.of, diff)
		}
	}
	if err := setPods(&job.Spec{}, "rank"); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("%v", err)
	}
}
