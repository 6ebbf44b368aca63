package linear

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestTheRulesRefuse has histories of one job that nobody may see, each beside one
// that is right: a checker that finds every order good would find nothing.
func TestTheRulesRefuse(t *testing.T) {
	made, ok := input{Verb: submit}, output{Answer: done}
	look := func(p phase, attempt int) output { return output{Answer: done, Phase: p, Attempt: attempt} }
	type entry struct {
		in  input
		out output
	}
	for name, tt := range map[string]struct{ good, bad []entry }{
		"a cancel is forgotten": {
			good: []entry{{made, ok}, {input{Verb: cancel}, ok}, {input{Verb: show}, look(cancelled, 0)}},
			bad:  []entry{{made, ok}, {input{Verb: cancel}, ok}, {input{Verb: show}, look(pending, 0)}},
		},
		"a running job's cancel is forgotten": {
			good: []entry{{made, ok}, {input{Verb: show}, look(running, 1)}, {input{Verb: cancel}, ok}, {input{Verb: show}, output{Answer: done, Phase: running, Attempt: 1, Stopping: true}}},
			bad:  []entry{{made, ok}, {input{Verb: show}, look(running, 1)}, {input{Verb: cancel}, ok}, {input{Verb: show}, look(running, 1)}},
		},
		"a held job starts": {
			good: []entry{{input{Verb: submit, Held: true}, ok}, {input{Verb: release}, ok}, {input{Verb: show}, look(running, 1)}},
			bad:  []entry{{input{Verb: submit, Held: true}, ok}, {input{Verb: show}, output{Answer: done, Phase: running, Attempt: 1, Held: true}}},
		},
		"a requeue counts twice": {
			good: []entry{{made, ok}, {input{Verb: show}, look(ended, 1)}, {input{Verb: requeue}, ok}, {input{Verb: show}, look(ended, 2)}},
			bad:  []entry{{made, ok}, {input{Verb: show}, look(ended, 1)}, {input{Verb: requeue}, ok}, {input{Verb: show}, look(ended, 3)}},
		},
		"a job runs again by itself": {
			good: []entry{{input{Verb: submit, Again: true}, ok}, {input{Verb: show}, look(running, 2)}},
			bad:  []entry{{made, ok}, {input{Verb: show}, look(running, 2)}},
		},
		"a question is answered with what was": {
			good: []entry{{made, ok}, {input{Verb: update, Comment: "x"}, ok}, {input{Verb: show}, output{Answer: done, Phase: pending, Comment: "x"}}},
			bad:  []entry{{made, ok}, {input{Verb: update, Comment: "x"}, ok}, {input{Verb: show}, look(pending, 0)}},
		},
		"an accepted job is lost": {
			good: []entry{{made, output{Answer: unknown}}, {input{Verb: show}, output{Answer: notFound}}},
			bad:  []entry{{made, ok}, {input{Verb: show}, output{Answer: notFound}}},
		},
		"what was refused was done": {
			good: []entry{{made, ok}, {input{Verb: cancel}, output{Answer: unknown}}, {input{Verb: show}, look(cancelled, 0)}},
			bad:  []entry{{made, ok}, {input{Verb: cancel}, output{Answer: refused}}, {input{Verb: show}, look(cancelled, 0)}},
		},
		"an owner releases what an administrator holds": {
			good: []entry{{made, ok}, {input{Verb: hold, Admin: true}, ok}, {input{Verb: release}, output{Answer: denied}}},
			bad:  []entry{{made, ok}, {input{Verb: hold, Admin: true}, ok}, {input{Verb: release}, ok}},
		},
	} {
		for want, list := range map[bool][]entry{true: tt.good, false: tt.bad} {
			var ops []porcupine.Operation
			for i, e := range list {
				e.in.Most = 4
				ops = append(ops, porcupine.Operation{Input: e.in, Output: e.out, Call: int64(2 * i), Return: int64(2*i + 1)})
			}
			if got := porcupine.CheckOperations(model.ToModel(), ops); got != want {
				t.Errorf("%s: the history has an order: %t, want %t\n%s", name, got, want, story(ops))
			}
		}
	}
}
