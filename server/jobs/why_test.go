package jobs

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestAWordOfAnotherSchedulerIsExplained beside it, where its engine knows it.
func TestAWordOfAnotherSchedulerIsExplained(t *testing.T) {
	p := servertest.NewPlane()
	p.Engines = map[string]engine.Engine{"b": servertest.Delegate{}}
	r := start(t, p, nil)
	for word, want := range map[string]string{"JobHeldAdmin": "JobHeldAdmin: an administrator holds it. What would help: ask them", "Odd": "where it waits: Odd"} {
		x := reason.Reason{Code: reason.Elsewhere(word), Holder: "b", Want: word}
		if got := x.String() + r.jobs.explainDelegated(&x); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q", word, got)
		}
	}
	if got := r.jobs.explainDelegated(&reason.Reason{Code: reason.Priority}); got != "" {
		t.Errorf("of ours: %q", got)
	}
}
