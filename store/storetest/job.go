package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

func jobRows(t *testing.T, s store.Store, q store.Query) (out []store.JobRow) {
	t.Helper()
	mustSucceed(t, s.History(t.Context(), q, func(r store.JobRow) error { out = append(out, r); return nil }))
	return out
}

func testProjection(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	epoch := mustLead(t, s)
	row := store.JobRow{
		ID: 7, Array: 5, Task: 2, Name: "a", User: "u", Account: "lab", Partition: "gpu", QOS: "high", State: "RUNNING", Nodes: "n[1-2]",
		CPUs: 64, GPUs: 8, Priority: -3, Submitted: timeAt(1), Started: timeAt(2), Detail: json.RawMessage(`{"why":"ü"}`),
	}
	other := store.JobRow{ID: 9, Task: -1, Name: "b", State: "PENDING", Submitted: timeAt(3)}
	mustSucceed(t, s.Project(t.Context(), epoch, 5, []store.JobRow{row, other}, nil))
	row.State, row.Ended, row.Exit, row.Final = "FAILED", timeAt(4), 137, true
	mustSucceed(t, s.Project(t.Context(), epoch, 6, []store.JobRow{row}, nil))
	mustSucceed(t, s.Close())
	s = h.Open(t, t.Name())
	defer s.Close()
	seq, err := s.Projected(t.Context())
	mustSucceed(t, err)
	if d := cmp.Diff([]store.JobRow{other, row}, jobRows(t, s, store.Query{})); d != "" || seq != 6 {
		t.Errorf("seq %d %s", seq, d)
	}
	if d := cmp.Diff([]store.JobRow{row}, jobRows(t, s, store.Query{Below: 9, Limit: 1})); d != "" {
		t.Error(d)
	}
}

func testDocuments(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	epoch := mustLead(t, s)
	mustSucceed(t, s.Project(t.Context(), epoch, 1, nil, map[string][]byte{"a": []byte("one"), "b": {}, "c": {0, 1}}))
	mustSucceed(t, s.Project(t.Context(), epoch, 2, nil, map[string][]byte{"a": []byte("two"), "c": nil, "d": nil}))
	mustSucceed(t, s.Close())
	s = h.Open(t, t.Name())
	defer s.Close()
	for name, want := range map[string]string{"a": "two", "b": ""} {
		got, err := s.Doc(t.Context(), name)
		if err != nil || string(got) != want {
			t.Errorf("document %s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"c", "d", ""} {
		if _, err := s.Doc(t.Context(), name); fault.KindOf(err) != fault.NotFound {
			t.Errorf("document %q: %v", name, err)
		}
	}
}

func testLive(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	epoch := mustLead(t, s)
	var all []store.JobRow
	var want []uint64
	for id := uint64(1); id <= 1300; id++ {
		r := store.JobRow{ID: id, Task: -1, Submitted: timeAt(1), Final: id%3 == 0, State: "RUNNING", Detail: json.RawMessage(fmt.Sprint(id))}
		if all = append(all, r); !r.Final {
			want = append(want, id)
		}
	}
	mustSucceed(t, s.Project(t.Context(), epoch, 1, all, nil))
	var got []uint64
	mustSucceed(t, s.Live(t.Context(), func(r store.JobRow) error { got = append(got, r.ID); return nil }))
	if d := cmp.Diff(want, got); d != "" {
		t.Error("live:", d)
	}
	r, err := s.Job(t.Context(), 42)
	mustSucceed(t, err)
	if d := cmp.Diff(all[41], r); d != "" {
		t.Error(d)
	}
	if _, err := s.Job(t.Context(), 99999); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an unknown job: %v", err)
	}
}

// testHistory compares random queries with what Query.Match says of every row.
func testHistory(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	epoch := mustLead(t, s)
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	name := func(kind string, n int) string { return fmt.Sprint(kind, rnd.IntN(n)) }
	var all []store.JobRow
	for id := uint64(1); id <= 1400; id++ {
		r := store.JobRow{
			ID: id, Task: -1, Name: name("n", 4), User: name("u", 5), Account: name("A", 3), Partition: name("p", 3), QOS: name("q", 2),
			State: name("s", 3), Submitted: timeAt(rnd.IntN(1000)),
		}
		if rnd.IntN(4) == 0 {
			r.Array, r.Task = id/20*20+1, int64(id%20)
		}
		if rnd.IntN(3) > 0 {
			r.Ended, r.Final = r.Submitted.Add(time.Duration(rnd.IntN(500))*time.Second), rnd.IntN(10) > 0
		}
		all = append(all, r)
	}
	mustSucceed(t, s.Project(t.Context(), epoch, 1, all, nil))
	slices.Reverse(all)
	maybe := func(kind string, n int) (out []string) {
		if rnd.IntN(3) == 0 {
			for range 1 + rnd.IntN(2) {
				out = append(out, name(kind, n+1))
			}
		}
		return out
	}
	queries := 300
	if testing.Short() {
		queries = 60
	}
	for range queries {
		q := store.Query{
			Users: maybe("u", 5), Accounts: maybe("A", 3), Partitions: maybe("p", 3), QOS: maybe("q", 2), States: maybe("s", 3), Names: maybe("n", 4),
			Text:  []string{"", "", "", "N1", "u", "zz", "a2"}[rnd.IntN(7)],
			Final: rnd.IntN(2) == 0, Limit: rnd.IntN(2) * rnd.IntN(900),
		}
		if rnd.IntN(3) == 0 {
			q.From = timeAt(rnd.IntN(1200))
		}
		if rnd.IntN(3) == 0 {
			q.To = timeAt(rnd.IntN(1200))
		}
		switch rnd.IntN(8) {
		case 0:
			q.Array = uint64(rnd.IntN(70)*20 + 1)
		case 1:
			q.Below = uint64(rnd.IntN(1500))
		case 2:
			q.IDs = []uint64{uint64(rnd.IntN(1500)), uint64(rnd.IntN(1500)), 7}
		}
		var want []store.JobRow
		for i := range all {
			if r := &all[i]; q.Match(r) && (q.Below == 0 || r.ID < q.Below) && (q.Limit == 0 || len(want) < q.Limit) {
				want = append(want, *r)
			}
		}
		if got := jobRows(t, s, q); !reflect.DeepEqual(want, got) {
			t.Fatalf("seed %d, %+v: %s", seed, q, cmp.Diff(want, got))
		}
	}
}
