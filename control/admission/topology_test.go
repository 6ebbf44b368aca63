package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

func TestLevelsByName(t *testing.T) {
	named := func(within, wish string) *job.Spec {
		s := &job.Spec{Groups: []job.TaskGroup{{}, {}}}
		s.Groups[0].Within = s.NameLevel(within)
		s.Groups[1].Wishes.Within.N = s.NameLevel(wish)
		s.Within = job.InLeaf
		return s
	}
	r := &Rules{Levels: []string{"block", "rack"}}
	s := named("rack", "block")
	if err := r.Apply(s); err != nil || s.Groups[0].Within != 2 || s.Groups[1].Wishes.Within.N != 1 || s.Within != job.InLeaf || s.Levels != nil {
		t.Errorf("%v, %+v", err, s)
	}
	var f *fault.Error
	if err := r.Apply(named("block", "spine")); !errors.As(err, &f) || f.Kind != fault.Invalid ||
		!strings.Contains(err.Error(), "spine") || !strings.Contains(f.Remedy, "block") {
		t.Errorf("an unknown level: %v", err)
	}
	if err := (&Rules{}).Apply(named("block", "block")); !errors.As(err, &f) || f.Kind != fault.Invalid {
		t.Errorf("no levels: %v", err)
	}
}
