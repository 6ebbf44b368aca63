package local

import (
	"errors"
	"strings"
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

// TestImageIsRefused: there are no containers here. Of an option of a plugin of Slurm's the
// submission has warned.
func TestImageIsRefused(t *testing.T) {
	e := &Engine{}
	for _, c := range []struct {
		spec job.Spec
		want string
	}{
		{job.Spec{}, ""},
		{job.Spec{Image: "nosuch/image:1"}, "image: \"nosuch/image:1\": jobs of this pool run on the machine itself"},
		{job.Spec{Image: "x", Source: job.Source{Given: map[string]string{"container-image": "x"}}}, ""},
	} {
		err := e.Admit(t.Context(), &engine.JobDraft{Spec: &c.spec})
		var at *engine.FieldError
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !errors.As(err, &at) || at.Fields[0] != "image") {
			t.Errorf("%+v: %v, want %q", c.spec, err, c.want)
		}
	}
}
