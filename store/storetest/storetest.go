// Package storetest is the conformance suite that every store.Store passes.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// Harness makes stores. Open on the same key after Close finds what was durable.
type Harness struct {
	Open func(t *testing.T, key string) store.Store
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	runTests(t, h, map[string]func(*testing.T, Harness){
		"AppendReadReopen": appendReadReopen, "OldEpochChangesNothing": oldEpoch,
		"ConcurrentAppendsKeepOrder": testConcurrent, "CancelledContext": testCancelled, "Closed": testClosed, "Scrub": testScrub,
		"CallbackMayCallAndStop": testCallbacks, "Records": testRecords,
		"Projection": testProjection, "Documents": testDocuments, "LiveAndJob": testLive, "HistoryIsMatch": testHistory,
		"PurgeRecords": purgeRecords, "PurgeJobs": purgeJobs, "PurgeByOldEpoch": purgeOldEpoch, "PurgeWhileReading": purgeWhileReading,
	})
	RunBlobs(t, h)
}

// RunBlobs runs the part that is about blobs, for a store that keeps them in several
// ways.
func RunBlobs(t *testing.T, h Harness) {
	runTests(t, h, map[string]func(*testing.T, Harness){
		"Blobs": testBlobs, "BlobsOfManyWriters": blobsConcurrent, "FailedAppendKeepsBlobs": failedAppend,
		"PurgeBlobs": purgeBlobs, "PurgeOfWhatIsPutAgain": purgeRenewed,
	})
}

func runTests(t *testing.T, h Harness, tests map[string]func(*testing.T, Harness)) {
	for name, f := range tests {
		t.Run(name, func(t *testing.T) { f(t, h) })
	}
}

func timeAt(i int) time.Time { return time.Date(2026, 1, 1, 0, 0, i, 123000, time.UTC) }

func recordAt(i int) store.Record {
	return store.Record{At: timeAt(i), Kind: "test", By: store.Actor{Name: "ada", UID: uint32(i), From: "socket"}, Job: uint64(i), Data: json.RawMessage(fmt.Sprintf(`{"i":%d,"text":"ü\u0000"}`, i))}
}

func mustSucceed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustLead(t *testing.T, s store.Store) uint64 {
	t.Helper()
	e, err := s.Lead(t.Context(), t.Name())
	mustSucceed(t, err)
	return e
}

func readRecords(t *testing.T, s store.Store, after uint64) (out []store.Record) {
	t.Helper()
	mustSucceed(t, s.Read(t.Context(), after, func(r store.Record) error { out = append(out, r); return nil }))
	return out
}

func appendReadReopen(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	epoch := mustLead(t, s)
	last, err := s.Append(t.Context(), epoch, []store.Record{recordAt(1), recordAt(2)})
	mustSucceed(t, err)
	if last != 2 {
		t.Fatalf("last seq %d, want 2", last)
	}
	_, err = s.Append(t.Context(), epoch, []store.Record{recordAt(3)})
	mustSucceed(t, err)
	mustSucceed(t, s.Close())
	s = h.Open(t, t.Name())
	var want []store.Record
	for i := 1; i <= 3; i++ {
		r := recordAt(i)
		r.Seq, r.Epoch = uint64(i), epoch
		want = append(want, r)
	}
	if d := cmp.Diff(want, readRecords(t, s, 0)); d != "" {
		t.Error("after reopening:", d)
	}
	if d := cmp.Diff(want[2:], readRecords(t, s, 2)); d != "" {
		t.Error("after seq 2:", d)
	}
	if got := readRecords(t, s, 99); len(got) != 0 {
		t.Errorf("after the end: %v", got)
	}
	if next := mustLead(t, s); next <= epoch {
		t.Errorf("epoch %d after epoch %d", next, epoch)
	}
	mustSucceed(t, s.Close())
}

func oldEpoch(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	old := mustLead(t, s)
	now := mustLead(t, s)
	for _, epoch := range []uint64{old, 0, now + 1} {
		if _, err := s.Append(t.Context(), epoch, []store.Record{recordAt(1)}); fault.KindOf(err) != fault.Conflict {
			t.Fatalf("append with epoch %d, %d leads: %v", epoch, now, err)
		}
		if _, err := s.Append(t.Context(), epoch, nil); fault.KindOf(err) != fault.Conflict || err == nil {
			t.Fatalf("append of nothing with epoch %d, %d leads: %v", epoch, now, err)
		}
	}
	if err := s.Project(t.Context(), old, 1, []store.JobRow{{ID: 1}}, nil); fault.KindOf(err) != fault.Conflict {
		t.Fatalf("projection by the old leader: %v", err)
	}
	if got := readRecords(t, s, 0); len(got) != 0 {
		t.Fatalf("the old leader wrote %v", got)
	}
	_, err := s.Append(t.Context(), now, []store.Record{recordAt(2)})
	mustSucceed(t, err)
	if last, err := s.Append(t.Context(), now, nil); last != 1 || err != nil {
		t.Fatalf("append of nothing: last is %d, %v", last, err)
	}
}

func testConcurrent(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	epoch := mustLead(t, s)
	const writers, each = 4, 10
	var wg sync.WaitGroup
	errs := make(chan error, writers*each)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				pair := []store.Record{recordAt(w*100 + i), recordAt(w*100 + i)}
				_, err := s.Append(t.Context(), epoch, pair)
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		mustSucceed(t, err)
	}
	got := readRecords(t, s, 0)
	if len(got) != 2*writers*each {
		t.Fatalf("%d records", len(got))
	}
	for i := 0; i < len(got); i += 2 {
		if got[i].Seq != uint64(i+1) || got[i].Job != got[i+1].Job {
			t.Fatalf("a batch was torn at %d: %+v %+v", i, got[i], got[i+1])
		}
	}
}

func testCancelled(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	epoch := mustLead(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Append(ctx, epoch, []store.Record{recordAt(1)}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("append with a cancelled context: %v", err)
	}
	if got := readRecords(t, s, 0); len(got) != 0 {
		t.Errorf("it wrote %v", got)
	}
}

// testScrub: a sound store scrubs clean, and a scrub ends when whoever paces it says so.
func testScrub(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	c, ok := s.(store.Checker)
	if !ok {
		t.Skip("it keeps nothing that could rot")
	}
	epoch := mustLead(t, s)
	var recs []store.Record
	for i := 1; i <= 1200; i++ {
		recs = append(recs, recordAt(i))
	}
	_, err := s.PutBlob(t.Context(), make([]byte, 100_000))
	mustSucceed(t, err)
	_, err = s.PutBlob(t.Context(), []byte("small"))
	mustSucceed(t, err)
	_, err = s.Append(t.Context(), epoch, recs)
	mustSucceed(t, err)
	mustSucceed(t, s.Project(t.Context(), epoch, 2, []store.JobRow{{ID: 1, Task: -1, Final: true, Ended: timeAt(9)}, {ID: 2, Task: -1}}, map[string][]byte{"a": {}, "b": []byte("x")}))
	read := 0
	mustSucceed(t, c.Scrub(t.Context(), func(n int) error { read += n; return nil }))
	if found := c.Damages(); len(found) > 0 || read < 100_000 {
		t.Errorf("%d bytes were read, and found damaged: %v", read, found)
	}
	enough, calls := errors.New("enough"), 0
	if err := c.Scrub(t.Context(), func(int) error { calls++; return enough }); !errors.Is(err, enough) || calls != 1 {
		t.Errorf("after %d calls: %v", calls, err)
	}
}

func testClosed(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	epoch := mustLead(t, s)
	mustSucceed(t, s.Close())
	mustSucceed(t, s.Close())
	_, appendErr := s.Append(t.Context(), epoch, []store.Record{recordAt(1)})
	_, putErr := s.PutBlob(t.Context(), []byte("x"))
	_, firstErr := s.First(t.Context())
	_, jobErr := s.Job(t.Context(), 1)
	for name, err := range map[string]error{"append": appendErr, "put": putErr, "first": firstErr, "job": jobErr} {
		if fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s on a closed store: %v", name, err)
		}
	}
}

// testCallbacks: while a callback runs, the store can be used, by as many as like.
func testCallbacks(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	epoch := mustLead(t, s)
	var recs []store.Record
	var rows []store.JobRow
	for i := 1; i <= 1500; i++ {
		recs = append(recs, recordAt(i))
		rows = append(rows, store.JobRow{ID: uint64(i), Task: -1, Submitted: timeAt(i)})
	}
	_, err := s.Append(t.Context(), epoch, recs)
	mustSucceed(t, err)
	mustSucceed(t, s.Project(t.Context(), epoch, 1500, rows, nil))
	inside := make(chan struct{})
	var wg sync.WaitGroup
	var started sync.WaitGroup
	for range 20 {
		started.Add(1)
		wg.Go(func() {
			n := 0
			if err := s.History(t.Context(), store.Query{}, func(store.JobRow) error {
				if n++; n == 1 {
					started.Done()
					<-inside
				}
				return nil
			}); err != nil || n < 1500 {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
	started.Wait()
	_, err = s.Append(t.Context(), epoch, []store.Record{recordAt(1)})
	mustSucceed(t, err)
	mustSucceed(t, s.Project(t.Context(), epoch, 1501, []store.JobRow{{ID: 1, Task: -1, State: "CHANGED"}}, nil))
	close(inside)
	wg.Wait()

	q, changed := store.Query{States: []string{""}}, false
	mustSucceed(t, s.History(t.Context(), q, func(r store.JobRow) error {
		if !q.Match(&r) {
			t.Errorf("job %d came with state %q", r.ID, r.State)
		}
		if changed {
			return nil
		}
		changed = true
		return s.Project(t.Context(), epoch, 1501, []store.JobRow{{ID: 2, Task: -1, State: "CHANGED"}}, nil)
	}))

	n, enough := 0, errors.New("enough")
	err = s.Read(t.Context(), 0, func(r store.Record) error {
		if n++; r.Seq == 700 {
			return enough
		}
		_, err := s.Job(t.Context(), r.Seq)
		return err
	})
	if !errors.Is(err, enough) || n != 700 {
		t.Errorf("%d records, %v", n, err)
	}
}
