// Package storetest is the conformance suite that every store.Store passes.
package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// Harness makes stores. Open on the same key after Close finds what was durable.
type Harness struct {
	Open func(t *testing.T, key string) store.Store
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	for name, f := range map[string]func(*testing.T, Harness){
		"AppendReadReopen": appendReadReopen, "OldEpochChangesNothing": oldEpoch,
		"ConcurrentAppendsKeepOrder": concurrent, "Projection": projection, "Blobs": blobs,
		"CancelledContext": cancelled,
	} {
		t.Run(name, func(t *testing.T) { f(t, h) })
	}
}

func at(i int) time.Time { return time.Date(2026, 1, 1, 0, 0, i, 123000, time.UTC) }

func rec(i int) store.Record {
	return store.Record{At: at(i), Kind: "test", Job: uint64(i), Data: json.RawMessage(fmt.Sprintf(`{"i":%d,"text":"ü\u0000"}`, i))}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lead(t *testing.T, s store.Store) uint64 {
	t.Helper()
	e, err := s.Lead(t.Context(), t.Name())
	must(t, err)
	return e
}

func read(t *testing.T, s store.Store, after uint64) (out []store.Record) {
	t.Helper()
	must(t, s.Read(t.Context(), after, func(r store.Record) error { out = append(out, r); return nil }))
	return out
}

func appendReadReopen(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	epoch := lead(t, s)
	last, err := s.Append(t.Context(), epoch, []store.Record{rec(1), rec(2)})
	must(t, err)
	if last != 2 {
		t.Fatalf("last seq %d, want 2", last)
	}
	_, err = s.Append(t.Context(), epoch, []store.Record{rec(3)})
	must(t, err)
	must(t, s.Close())
	s = h.Open(t, t.Name())
	var want []store.Record
	for i := 1; i <= 3; i++ {
		r := rec(i)
		r.Seq, r.Epoch = uint64(i), epoch
		want = append(want, r)
	}
	if d := cmp.Diff(want, read(t, s, 0)); d != "" {
		t.Error("after reopening:", d)
	}
	if d := cmp.Diff(want[2:], read(t, s, 2)); d != "" {
		t.Error("after seq 2:", d)
	}
	if got := read(t, s, 99); len(got) != 0 {
		t.Errorf("after the end: %v", got)
	}
	if next := lead(t, s); next <= epoch {
		t.Errorf("epoch %d after epoch %d", next, epoch)
	}
	must(t, s.Close())
}

func oldEpoch(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	old := lead(t, s)
	now := lead(t, s)
	if _, err := s.Append(t.Context(), old, []store.Record{rec(1)}); fault.KindOf(err) != fault.Conflict {
		t.Fatalf("append by the old leader: %v", err)
	}
	if err := s.Project(t.Context(), old, 1, []store.JobRow{{ID: 1}}, nil); fault.KindOf(err) != fault.Conflict {
		t.Fatalf("projection by the old leader: %v", err)
	}
	if got := read(t, s, 0); len(got) != 0 {
		t.Fatalf("the old leader wrote %v", got)
	}
	_, err := s.Append(t.Context(), now, []store.Record{rec(2)})
	must(t, err)
}

func concurrent(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	epoch := lead(t, s)
	const writers, each = 4, 10
	var wg sync.WaitGroup
	errs := make(chan error, writers*each)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				pair := []store.Record{rec(w*100 + i), rec(w*100 + i)}
				_, err := s.Append(t.Context(), epoch, pair)
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		must(t, err)
	}
	got := read(t, s, 0)
	if len(got) != 2*writers*each {
		t.Fatalf("%d records", len(got))
	}
	for i := 0; i < len(got); i += 2 {
		if got[i].Seq != uint64(i+1) || got[i].Job != got[i+1].Job {
			t.Fatalf("a batch was torn at %d: %+v %+v", i, got[i], got[i+1])
		}
	}
}

func projection(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	epoch := lead(t, s)
	row := store.JobRow{ID: 7, Name: "a", User: "u", State: "RUNNING", Submitted: at(1), Started: at(2), Detail: json.RawMessage(`{}`)}
	other := store.JobRow{ID: 9, Name: "b", State: "PENDING", Submitted: at(3), Detail: json.RawMessage(`{}`)}
	must(t, s.Project(t.Context(), epoch, 5, []store.JobRow{row, other}, nil))
	row.State, row.Ended, row.Exit = "FAILED", at(4), 137
	must(t, s.Project(t.Context(), epoch, 6, []store.JobRow{row}, nil))
	must(t, s.Close())
	s = h.Open(t, t.Name())
	defer s.Close()
	seq, err := s.Projected(t.Context())
	must(t, err)
	var got []store.JobRow
	must(t, s.History(t.Context(), store.Query{}, func(r store.JobRow) error { got = append(got, r); return nil }))
	if d := cmp.Diff([]store.JobRow{other, row}, got); d != "" || seq != 6 {
		t.Errorf("seq %d %s", seq, d)
	}
	got = nil
	must(t, s.History(t.Context(), store.Query{Below: 9, Limit: 1}, func(r store.JobRow) error { got = append(got, r); return nil }))
	if d := cmp.Diff([]store.JobRow{row}, got); d != "" {
		t.Error(d)
	}
}

func blobs(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	for _, b := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte{0, 255}, 1<<16)} {
		for range 2 {
			hash, err := s.PutBlob(t.Context(), b)
			must(t, err)
			got, err := s.Blob(t.Context(), hash)
			must(t, err)
			if !bytes.Equal(got, b) || hash != store.Hash(b) {
				t.Errorf("%d bytes came back as %d, hash %s", len(b), len(got), hash)
			}
		}
	}
	for _, hash := range []string{store.Hash([]byte("never put")), "", "../journal.db"} {
		if _, err := s.Blob(t.Context(), hash); fault.KindOf(err) != fault.NotFound {
			t.Errorf("blob %q: %v", hash, err)
		}
	}
}

func cancelled(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	epoch := lead(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Append(ctx, epoch, []store.Record{rec(1)}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("append with a cancelled context: %v", err)
	}
	if got := read(t, s, 0); len(got) != 0 {
		t.Errorf("it wrote %v", got)
	}
}
