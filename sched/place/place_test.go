package place_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

// TestFitsIffSomePlacementExists fills a small fleet job by job: each is placed if
// and only if the exhaustive search finds any placement, and as its specification
// says. Seen to fail with the Hall test cut to single wants, with mostFirst not
// sorting, and with exact switched off.
func TestFitsIffSomePlacementExists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, table := schedtest.NewBook(), index.NewTable()
		for _, n := range schedtest.Nodes(t) {
			book.Nodes[n.Name] = n
			table.Put(n)
		}
		state := table.Empty(false)
		for id := job.ID(1); id <= 4; id++ {
			spec := schedtest.Spec(t)
			shape := class.Compile(spec)
			claims := place.Gang(table, state, shape)
			want := book.Fits(spec)
			if (claims != nil) != want {
				t.Fatalf("job %d: placed %v, some placement exists: %v\n%s", id, claims, want, dump(book, spec))
			}
			if fits := place.Fits(table, state, shape); fits != want {
				t.Fatalf("job %d: Fits says %v, Gang %v", id, fits, want)
			}
			if claims == nil {
				if len(place.Now(table, state, shape)) == 0 {
					t.Fatalf("job %d does not fit and no reason is given", id)
				}
				continue
			}
			if err := book.Start(sched.Start{Job: id, Claims: claims}, spec); err != nil {
				t.Fatalf("%v\n%v\n%s", err, claims, dump(book, spec))
			}
			if !state.Fits(table, claims) {
				t.Fatalf("job %d: its own claims %v are not free", id, claims)
			}
			state.Take(table, claims)
		}
	})
}

func dump(book *schedtest.Book, spec *job.Spec) string {
	b, _ := json.Marshal([]any{book, spec})
	return string(b)
}
