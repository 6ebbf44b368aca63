package storetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

func seqsOf(t *testing.T, s store.Store, q store.RecordQuery) (seqs []uint64) {
	t.Helper()
	mustSucceed(t, s.Records(t.Context(), q, func(r store.Record) error { seqs = append(seqs, r.Seq); return nil }))
	return seqs
}

func testRecords(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	epoch := mustLead(t, s)
	var recs []store.Record
	for i := 1; i <= 1200; i++ {
		r := store.Record{At: timeAt(i), Kind: fmt.Sprint("k", i%3), Job: uint64(i % 7), Data: []byte("{}")}
		if i%2 == 0 {
			r.By = store.Actor{Name: "ada", UID: 1000, From: "tcp 127.0.0.1:5123"}
		}
		if i == 1001 {
			r.By.UID = 1 // a name is not what makes an actor
		}
		recs = append(recs, r)
	}
	_, err := s.Append(t.Context(), epoch, recs)
	mustSucceed(t, err)
	for _, q := range []store.RecordQuery{
		{},
		{Limit: 700},
		{After: 1100},
		{Kinds: []string{"k1"}},
		{Kinds: []string{"k1", "k2"}, Job: 3},
		{OnlyActors: true},
		{OnlyActors: true, Job: 5, After: 100, Limit: 3},
		{From: timeAt(10), To: timeAt(20)},
		{Kinds: []string{"none"}},
	} {
		var want []uint64
		for i, r := range recs {
			if r.Seq = uint64(i + 1); q.Match(&r) && (q.Limit == 0 || len(want) < q.Limit) {
				want = append(want, r.Seq)
			}
		}
		if d := cmp.Diff(want, seqsOf(t, s, q)); d != "" {
			t.Errorf("%+v: %s", q, d)
		}
	}
}

// purgeAll calls Purge until nothing is left to do and sums the results up.
func purgeAll(t *testing.T, s store.Store, epoch uint64, req store.PurgeRequest) (sum store.PurgeResult) {
	t.Helper()
	for calls := 0; ; calls++ {
		res, err := s.Purge(t.Context(), epoch, req)
		mustSucceed(t, err)
		if req.Limit > 0 && max(res.Records, res.Audit, res.Jobs, res.Blobs) > req.Limit {
			t.Fatalf("one call removed %+v, the limit is %d", res, req.Limit)
		}
		sum.Records += res.Records
		sum.Audit += res.Audit
		sum.Jobs += res.Jobs
		sum.Blobs += res.Blobs
		sum.Bytes += res.Bytes
		if !res.More {
			return sum
		}
		if calls > 1000 {
			t.Fatalf("purge does not come to an end: %+v", res)
		}
	}
}

func purgeRecords(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	epoch := mustLead(t, s)
	if first, err := s.First(t.Context()); err != nil || first != 1 {
		t.Errorf("an empty journal begins with %d, %v", first, err)
	}
	var recs []store.Record
	for i := 1; i <= 100; i++ {
		r := recordAt(i)
		if i%10 != 0 {
			r.By = store.Actor{}
		}
		recs = append(recs, r)
	}
	recs[4].At = timeAt(1000) // the clock went back after it
	_, err := s.Append(t.Context(), epoch, recs)
	mustSucceed(t, err)
	mustSucceed(t, s.Project(t.Context(), epoch, 60, nil, nil))

	expect := func(req store.PurgeRequest, removed, audit int, first uint64) {
		t.Helper()
		req.Limit = 7
		res := purgeAll(t, s, epoch, req)
		got, err := s.First(t.Context())
		mustSucceed(t, err)
		if res.Records != removed || res.Audit != audit || got != first {
			t.Errorf("%+v removed %+v and leaves the journal from %d on; want %d, %d, %d", req, res, got, removed, audit, first)
		}
	}
	expect(store.PurgeRequest{}, 0, 0, 1)
	expect(store.PurgeRequest{RecordsBefore: timeAt(50)}, 4, 0, 5) // up to the one that is not older
	expect(store.PurgeRequest{RecordsBefore: timeAt(2000)}, 56, 0, 61)
	mustSucceed(t, s.Project(t.Context(), epoch, 100, nil, nil))
	expect(store.PurgeRequest{RecordsBefore: timeAt(71)}, 10, 0, 71)
	if err := s.Read(t.Context(), 60, func(store.Record) error { return nil }); fault.KindOf(err) != fault.NotFound {
		t.Errorf("reading what is purged: %v", err)
	}
	if got := readRecords(t, s, 70); len(got) != 30 || got[0].Seq != 71 {
		t.Errorf("%d records are left", len(got))
	}
	if d := cmp.Diff([]uint64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, seqsOf(t, s, store.RecordQuery{OnlyActors: true})); d != "" {
		t.Error("the audit:", d)
	}
	expect(store.PurgeRequest{AuditBefore: timeAt(35)}, 0, 3, 71)
	expect(store.PurgeRequest{RecordsBefore: timeAt(2000), AuditBefore: timeAt(35)}, 29, 0, 100) // the newest stays: its number is not given again
	if d := cmp.Diff([]uint64{40, 50}, seqsOf(t, s, store.RecordQuery{OnlyActors: true, Limit: 2})); d != "" {
		t.Error("the audit:", d)
	}
	mustSucceed(t, s.Close())
	s = h.Open(t, t.Name())
	defer s.Close()
	last, err := s.Append(t.Context(), mustLead(t, s), []store.Record{recordAt(1)})
	if err != nil || last != 101 {
		t.Errorf("the next record is %d, %v", last, err)
	}
}

func purgeJobs(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	epoch := mustLead(t, s)
	var all []store.JobRow
	for id := 1; id <= 40; id++ {
		r := store.JobRow{ID: uint64(id), Task: -1, Submitted: timeAt(1)}
		if id%4 != 0 {
			r.Ended, r.Final = timeAt(id), id%4 != 1 // one in four has ended and may run again
		}
		all = append(all, r)
	}
	mustSucceed(t, s.Project(t.Context(), epoch, 1, all, nil))
	if res := purgeAll(t, s, epoch, store.PurgeRequest{JobsEndedBefore: timeAt(20), Limit: 3}); res.Jobs != 10 {
		t.Errorf("%d jobs were removed", res.Jobs)
	}
	for _, r := range jobRows(t, s, store.Query{}) {
		if r.Final && r.Ended.Before(timeAt(20)) {
			t.Errorf("job %d is still there", r.ID)
		}
	}
	if n := len(jobRows(t, s, store.Query{})); n != 30 {
		t.Errorf("%d jobs are left", n)
	}
}

// purgeBlobs: an old blob goes, but not if it is put again or a live job names it.
func purgeBlobs(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	epoch := mustLead(t, s)
	begin := timeAt(0)
	blob := func(name string) []byte { return bytes.Repeat([]byte(name+" "), 1000) }
	record := func(day int) {
		t.Helper()
		r := recordAt(1)
		r.At = begin.Add(time.Duration(day) * 24 * time.Hour)
		_, err := s.Append(t.Context(), epoch, []store.Record{r})
		mustSucceed(t, err)
	}
	put := func(day int, names ...string) {
		t.Helper()
		record(day) // a store knows the time from the records
		for _, name := range names {
			_, err := s.PutBlob(t.Context(), blob(name))
			mustSucceed(t, err)
		}
		record(day)
	}
	check := func(present string, gone string) {
		t.Helper()
		for _, c := range present {
			got, err := s.Blob(t.Context(), store.Hash(blob(string(c))))
			if err != nil || !bytes.Equal(got, blob(string(c))) {
				t.Errorf("blob %c: %d bytes, %v", c, len(got), err)
			}
		}
		for _, c := range gone {
			if _, err := s.Blob(t.Context(), store.Hash(blob(string(c)))); fault.KindOf(err) != fault.NotFound {
				t.Errorf("blob %c: %v", c, err)
			}
		}
	}
	put(0, "a", "b", "c", "d", "e")
	put(10, "b", "f") // b is renewed
	put(20, "g")
	_, err := s.PutBlob(t.Context(), blob("d")) // and d, but not durable yet
	mustSucceed(t, err)
	keep := func(hash string) bool { return hash == store.Hash(blob("c")) }
	req := store.PurgeRequest{BlobsBefore: begin.Add(5 * 24 * time.Hour), Keep: keep, Limit: 2}
	res := purgeAll(t, s, epoch, req)
	check("bcdfg", "ae")
	if res.Blobs < 2 || res.Bytes < int64(len(blob("a"))) {
		t.Errorf("%+v", res)
	}
	put(21, "a") // again, after it went
	check("abcdfg", "e")
	mustSucceed(t, s.Close())
	s = h.Open(t, t.Name())
	defer s.Close()
	epoch = mustLead(t, s)
	check("abcdfg", "e")
	req.Keep, req.BlobsBefore = nil, begin.Add(19*24*time.Hour)
	purgeAll(t, s, epoch, req)
	check("adg", "ef") // b and c may have moved to a younger pack
	put(60, "h")
	put(70, "i")
	req.BlobsBefore = begin.Add(50 * 24 * time.Hour)
	purgeAll(t, s, epoch, req)
	check("hi", "abcdefg")
}

func purgeOldEpoch(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	old := mustLead(t, s)
	_, err := s.Append(t.Context(), old, []store.Record{recordAt(1), recordAt(2)})
	mustSucceed(t, err)
	mustSucceed(t, s.Project(t.Context(), old, 2, []store.JobRow{{ID: 1, Task: -1, Ended: timeAt(1), Final: true}}, nil))
	mustLead(t, s)
	req := store.PurgeRequest{RecordsBefore: timeAt(100), JobsEndedBefore: timeAt(100), BlobsBefore: timeAt(100)}
	if _, err := s.Purge(t.Context(), old, req); fault.KindOf(err) != fault.Conflict {
		t.Errorf("purge by the old leader: %v", err)
	}
	if n, m := len(readRecords(t, s, 0)), len(jobRows(t, s, store.Query{})); n != 2 || m != 1 {
		t.Errorf("it leaves %d records and %d rows", n, m)
	}
}

// purgeRenewed: a blob that is put again is as young as that, from then on, whether
// an append has made it durable, has failed, or is still to come; and one that was
// purged can be put anew.
func purgeRenewed(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	old := mustLead(t, s)
	epoch := mustLead(t, s)
	hour := func(n int) time.Time { return timeAt(0).Add(time.Duration(n) * time.Hour) }
	put := func(text string) {
		t.Helper()
		_, err := s.PutBlob(t.Context(), []byte(text))
		mustSucceed(t, err)
	}
	record := func(epoch uint64, n int) error {
		_, err := s.Append(t.Context(), epoch, []store.Record{{At: hour(n), Kind: "x", Data: []byte("{}")}})
		return err
	}
	there := func(text string) {
		t.Helper()
		if b, err := s.Blob(t.Context(), store.Hash([]byte(text))); string(b) != text {
			t.Errorf("blob %s: %q, %v", text, b, err)
		}
	}
	put("a")
	put("b")
	put("c")
	mustSucceed(t, record(epoch, 0))
	mustSucceed(t, record(epoch, 5))
	put("a")
	if err := record(old, 6); fault.KindOf(err) != fault.Conflict {
		t.Fatal(err)
	}
	mustSucceed(t, record(epoch, 6))
	put("b")
	purgeAll(t, s, epoch, store.PurgeRequest{BlobsBefore: hour(5)})
	there("a")
	there("b")
	mustSucceed(t, record(epoch, 7))
	put("c") // gone or not: it is there now
	there("c")
	mustSucceed(t, record(epoch, 8))
	purgeAll(t, s, epoch, store.PurgeRequest{BlobsBefore: hour(6)})
	there("a")
	there("b")
	there("c")
	mustSucceed(t, record(epoch, 50))
	put("d")
	purgeAll(t, s, epoch, store.PurgeRequest{BlobsBefore: hour(49)}) // which may make it durable
	_, err := s.Append(t.Context(), epoch, nil)                      // which says nothing of its age
	mustSucceed(t, err)
	mustSucceed(t, record(epoch, 99))
	purgeAll(t, s, epoch, store.PurgeRequest{BlobsBefore: hour(98)})
	there("d")
}

// purgeWhileReading: a reader whose next records are purged hears of it.
func purgeWhileReading(t *testing.T, h Harness) {
	s := h.Open(t, t.Name())
	defer s.Close()
	epoch := mustLead(t, s)
	var recs []store.Record
	for i := 1; i <= 3000; i++ {
		recs = append(recs, store.Record{At: timeAt(i), Kind: "x", Data: []byte("{}")})
	}
	last, err := s.Append(t.Context(), epoch, recs)
	mustSucceed(t, err)
	mustSucceed(t, s.Project(t.Context(), epoch, last, nil, nil))
	n := uint64(0)
	err = s.Read(t.Context(), 0, func(r store.Record) error {
		if n++; r.Seq != n {
			t.Fatalf("record %d comes after record %d", r.Seq, n-1)
		}
		if n == 1 {
			purgeAll(t, s, epoch, store.PurgeRequest{RecordsBefore: timeAt(5000)})
		}
		return nil
	})
	if n < last && fault.KindOf(err) != fault.NotFound {
		t.Errorf("it ends with record %d of %d: %v", n, last, err)
	}
}
