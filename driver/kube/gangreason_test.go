package kube

import (
	"maps"
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
)

// TestHush: what a gang's object said is forgotten with the object, also if its deletion was not
// seen, as the watch had to begin anew.
// Seen to fail with: objects that are not in a list left as they are.
func TestHush(t *testing.T) {
	e := &Engine{log: &journal{server: "abc123"}, said: map[string]string{}, attempts: map[engine.Ref]*attempt{}}
	const there, gone = "cox-abc123-1-1", "cox-abc123-2-1"
	for _, name := range []string{there, gone, "cox-other1-1-1"} {
		e.noteGangReason("here", name, "waits")
	}
	e.noteGangReason("elsewhere", gone, "waits")
	e.clearMissingGangs("here", map[string]bool{there: true})
	if left := slices.Sorted(maps.Keys(e.said)); !slices.Equal(left, []string{"elsewhere/" + gone, "here/" + there}) {
		t.Errorf("%q still say something", left)
	}
}
