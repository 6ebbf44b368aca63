package sqlite_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// model runs the same calls on a Store and on a Memory, and compares what can be
// read afterwards. The Store is closed and opened again in between.
type model struct {
	*rapid.T
	dir    string
	open   func(string) (*sqlite.Store, error)
	store  *sqlite.Store
	memory *store.Memory
	epoch  uint64
	hours  int
	jobs   int
	blobs  map[string]int // text → hour in which it was put last
	fresh  []string       // put since the last append
	purged int            // hour before which blobs may be gone
}

func (m *model) ok(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// same fails unless both errors are of one kind.
func (m *model) same(a, b error) {
	m.Helper()
	if (a == nil) != (b == nil) || a != nil && fault.KindOf(a) != fault.KindOf(b) {
		m.Fatalf("sqlite: %v, memory: %v", a, b)
	}
}

func (m *model) at() time.Time { return start.Add(time.Duration(m.hours) * time.Hour) }

func (m *model) lead(*rapid.T) {
	a, err := m.store.Lead(m.Context(), "model")
	m.ok(err)
	b, err := m.memory.Lead(m.Context(), "model")
	m.ok(err)
	if m.epoch = a; a != b {
		m.Fatalf("epoch %d, memory has %d", a, b)
	}
}

func (m *model) append(t *rapid.T) {
	epoch := m.epoch - uint64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "behind"))
	var recs []store.Record
	for range rapid.IntRange(0, 4).Draw(t, "records") {
		m.hours += rapid.IntRange(-2, 30).Draw(t, "hours")
		r := store.Record{At: m.at(), Kind: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "kind"), Job: uint64(rapid.IntRange(0, 3).Draw(t, "job")), Data: []byte(`{"x":1}`)}
		if rapid.Bool().Draw(t, "asked") {
			r.By = store.Actor{Name: "ada", UID: 7, From: "socket"}
		}
		recs = append(recs, r)
	}
	for range rapid.IntRange(0, 3).Draw(t, "blobs") {
		text := fmt.Sprint("blob ", rapid.IntRange(0, 9).Draw(t, "blob"))
		m.fresh = append(m.fresh, text)
		_, err := m.store.PutBlob(m.Context(), []byte(text))
		m.ok(err)
		_, err = m.memory.PutBlob(m.Context(), []byte(text))
		m.ok(err)
	}
	a, errA := m.store.Append(m.Context(), epoch, recs)
	b, errB := m.memory.Append(m.Context(), epoch, recs)
	if m.same(errA, errB); a != b {
		m.Fatalf("last is %d, memory has %d", a, b)
	}
	if errA == nil && len(recs) > 0 {
		for _, text := range m.fresh {
			m.blobs[text] = m.hours
		}
		m.fresh = nil
	}
}

func (m *model) project(t *rapid.T) {
	var rows []store.JobRow
	for range rapid.IntRange(0, 5).Draw(t, "rows") {
		m.jobs += rapid.IntRange(0, 1).Draw(t, "new")
		r := row(m.jobs - rapid.IntRange(0, min(m.jobs, 3)).Draw(t, "back"))
		r.Submitted = m.at()
		if rapid.Bool().Draw(t, "ended") {
			r.Ended, r.Final = m.at().Add(time.Hour), rapid.Bool().Draw(t, "final")
		}
		rows = append(rows, r)
	}
	docs := map[string][]byte{rapid.SampledFrom([]string{"x", "y"}).Draw(t, "document"): rapid.SampledFrom([][]byte{nil, {}, []byte("text")}).Draw(t, "text")}
	upTo := uint64(rapid.IntRange(0, 40).Draw(t, "up to"))
	m.same(m.store.Project(m.Context(), m.epoch, upTo, rows, docs), m.memory.Project(m.Context(), m.epoch, upTo, rows, docs))
}

func (m *model) purge(t *rapid.T) {
	before := func(name string) time.Time {
		back := rapid.IntRange(-10, 200).Draw(t, name)
		if back < 0 {
			return time.Time{}
		}
		return m.at().Add(-time.Duration(back) * time.Hour)
	}
	keep := store.Hash([]byte("blob 0"))
	req := store.PurgeRequest{
		RecordsBefore: before("records"), AuditBefore: before("audit"), JobsEndedBefore: before("jobs"), BlobsBefore: before("blobs"),
		Limit: rapid.IntRange(1, 5).Draw(t, "limit"), Keep: func(h string) bool { return h == keep },
	}
	m.purged = max(m.purged, int(req.BlobsBefore.Sub(start)/time.Hour))
	for _, s := range []store.Store{m.store, m.memory} {
		for more := true; more; {
			res, err := s.Purge(m.Context(), m.epoch, req)
			m.ok(err)
			more = res.More
		}
	}
}

func (m *model) reopen(*rapid.T) {
	m.ok(m.store.Close())
	m.fresh = nil
	var err error
	m.store, err = m.open(m.dir)
	m.ok(err)
}

// check compares everything that can be read.
func (m *model) check(t *rapid.T) {
	type view struct {
		First, Projected uint64
		Read, Audit      []store.Record
		Live, History    []store.JobRow
		X, Y             string
	}
	look := func(s store.Store) (v view) {
		var err error
		v.First, err = s.First(m.Context())
		m.ok(err)
		v.Projected, err = s.Projected(m.Context())
		m.ok(err)
		m.ok(s.Read(m.Context(), v.First-1, func(r store.Record) error { v.Read = append(v.Read, r); return nil }))
		m.ok(s.Records(m.Context(), store.RecordQuery{}, func(r store.Record) error { v.Audit = append(v.Audit, r); return nil }))
		m.ok(s.Live(m.Context(), func(r store.JobRow) error { v.Live = append(v.Live, r); return nil }))
		m.ok(s.History(m.Context(), store.Query{}, func(r store.JobRow) error { v.History = append(v.History, r); return nil }))
		for name, text := range map[string]*string{"x": &v.X, "y": &v.Y} {
			doc, err := s.Doc(m.Context(), name)
			*text = fmt.Sprintf("%q %v", doc, err)
		}
		return v
	}
	if d := cmp.Diff(look(m.memory), look(m.store)); d != "" {
		m.Fatal(d)
	}
	for text, put := range m.blobs {
		b, err := m.store.Blob(m.Context(), store.Hash([]byte(text)))
		switch {
		case err == nil && bytes.Equal(b, []byte(text)):
		case text != "blob 0" && put <= m.purged && fault.KindOf(err) == fault.NotFound:
		default:
			m.Fatalf("%s, put in hour %d, purged before %d: %q, %v", text, put, m.purged, b, err)
		}
	}
}

// TestLikeMemory is the comparison, for a store as it is and for one with every blob
// in a pack.
func TestLikeMemory(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		checks := "8" // each is hundreds of syncs
		if testing.Short() {
			checks = "2"
		}
		must(t, f.Value.Set(checks))
		defer func() { must(t, f.Value.Set(f.DefValue)) }()
	}
	for name, open := range map[string]func(string) (*sqlite.Store, error){"AsItIs": sqlite.Open, "AllBlobsInPacks": sqlite.OpenPacked} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				dir, err := os.MkdirTemp("", "store-")
				if err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(dir)
				m := &model{T: t, dir: dir, open: open, memory: new(store.Memory), blobs: map[string]int{}}
				m.store, err = open(dir)
				m.ok(err)
				defer func() { _ = m.store.Close() }()
				m.lead(t)
				t.Repeat(map[string]func(*rapid.T){
					"": m.check, "append": m.append, "append again": m.append, "project": m.project, "purge": m.purge, "reopen": m.reopen, "lead": m.lead,
				})
			})
		})
	}
}
