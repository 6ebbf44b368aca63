package storetest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

func testBlobs(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	epoch := mustLead(t, s)
	all := [][]byte{{}, []byte("x"), bytes.Repeat([]byte{0, 255}, 1<<16), bytes.Repeat([]byte("large"), 1<<20)}
	check := func() {
		t.Helper()
		for _, b := range all {
			got, err := s.Blob(t.Context(), store.Hash(b))
			mustSucceed(t, err)
			if !bytes.Equal(got, b) {
				t.Errorf("%d bytes came back as %d", len(b), len(got))
			}
		}
	}
	for _, b := range all {
		for range 2 {
			hash, err := s.PutBlob(t.Context(), b)
			mustSucceed(t, err)
			if hash != store.Hash(b) {
				t.Errorf("%d bytes have the hash %s", len(b), hash)
			}
		}
	}
	check() // at once
	_, err := s.Append(t.Context(), epoch, []store.Record{recordAt(1)})
	mustSucceed(t, err)
	check()
	mustSucceed(t, s.Close())
	s = h.Open(t, t.Name())
	defer s.Close()
	check()
	for _, b := range all { // again, in another process
		_, err := s.PutBlob(t.Context(), b)
		mustSucceed(t, err)
	}
	check()
	for _, hash := range []string{store.Hash([]byte("never put")), "", "../journal.db", "ABCDEF"} {
		if _, err := s.Blob(t.Context(), hash); fault.KindOf(err) != fault.NotFound {
			t.Errorf("blob %q: %v", hash, err)
		}
	}
	got, err := s.Blob(t.Context(), store.Hash(all[1]))
	mustSucceed(t, err)
	got[0] = '!' // the caller's own
	check()
}

// blobsConcurrent: what a writer has put is durable when its own Append returns,
// whoever else puts and appends.
func blobsConcurrent(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	epoch := mustLead(t, s)
	const writers, each = 8, 12
	blob := func(w, i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d/%d ", w, i), 400) }
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				for _, b := range [][]byte{blob(w, i), []byte("shared by all")} {
					if _, err := s.PutBlob(t.Context(), b); err != nil {
						t.Error(err)
					}
				}
				if _, err := s.Append(t.Context(), epoch, []store.Record{recordAt(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	mustSucceed(t, s.Close())
	s = h.Open(t, t.Name())
	defer s.Close()
	for w := range writers {
		for i := range each {
			got, err := s.Blob(t.Context(), store.Hash(blob(w, i)))
			if err != nil || !bytes.Equal(got, blob(w, i)) {
				t.Fatalf("blob %d of writer %d: %d bytes, %v", i, w, len(got), err)
			}
		}
	}
}

// failedAppend: what was put before an append that fails is durable with the next.
func failedAppend(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	old := mustLead(t, s)
	epoch := mustLead(t, s)
	put := func(text string) {
		t.Helper()
		_, err := s.PutBlob(t.Context(), []byte(text))
		mustSucceed(t, err)
	}
	put("a")
	for range 2 {
		if _, err := s.Append(t.Context(), old, []store.Record{recordAt(1)}); fault.KindOf(err) != fault.Conflict {
			t.Fatalf("append by the old leader: %v", err)
		}
		put("b")
	}
	_, err := s.Append(t.Context(), epoch, []store.Record{recordAt(1)})
	mustSucceed(t, err)
	mustSucceed(t, s.Close())
	s = h.Open(t, t.Name())
	defer s.Close()
	for _, text := range []string{"a", "b"} {
		if b, err := s.Blob(t.Context(), store.Hash([]byte(text))); string(b) != text {
			t.Errorf("blob %s: %q, %v", text, b, err)
		}
	}
}
