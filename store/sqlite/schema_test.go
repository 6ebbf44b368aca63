package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

func raw(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// schema1 makes the state directory that testdata has from a cox with schema 1, and
// returns what its journal says.
func schema1(t *testing.T) (dir string, want []store.Record) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	must(t, os.CopyFS(dir, os.DirFS("testdata/schema1")))
	text, err := os.ReadFile("testdata/schema1/journal.sql")
	must(t, err)
	db := raw(t, dir)
	if _, err := db.Exec("PRAGMA journal_mode = WAL;" + string(text)); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query("SELECT seq, leader_epoch, at, kind, job, data FROM journal ORDER BY seq")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var r store.Record
		var at int64
		var data string
		must(t, rows.Scan(&r.Seq, &r.Epoch, &at, &r.Kind, &r.Job, &data))
		r.At, r.Data = time.UnixMicro(at).UTC(), json.RawMessage(data)
		want = append(want, r)
	}
	must(t, rows.Err())
	if len(want) != 14 {
		t.Fatalf("testdata has %d records", len(want))
	}
	return dir, want
}

func all(t *testing.T, s store.Store) (out []store.Record) {
	t.Helper()
	must(t, s.Read(t.Context(), 0, func(r store.Record) error { out = append(out, r); return nil }))
	return out
}

func TestUpgradeFromSchema1(t *testing.T) {
	dir, want := schema1(t)
	for round := range 2 { // upgraded, and opened again
		s := open(t, dir)
		if d := cmp.Diff(want, all(t, s)); d != "" {
			t.Fatalf("round %d: %s", round, d)
		}
		if n, err := s.Projected(t.Context()); n != 0 || err != nil {
			t.Errorf("the projection is to be made again, and says %d, %v", n, err)
		}
		hashes := map[string]bool{}
		for _, r := range want {
			var v struct {
				Spec struct {
					Program struct {
						Hash string `json:"script_hash"`
					} `json:"program"`
					Env struct {
						Hash string `json:"hash"`
					} `json:"env"`
				} `json:"spec"`
			}
			if must(t, json.Unmarshal(r.Data, &v)); v.Spec.Env.Hash != "" {
				hashes[v.Spec.Program.Hash], hashes[v.Spec.Env.Hash] = true, true
			}
		}
		if len(hashes) != 3 {
			t.Fatalf("%d blobs in the journal", len(hashes))
		}
		for h := range hashes {
			b, err := s.Blob(t.Context(), h)
			if err != nil || store.Hash(b) != h {
				t.Errorf("blob %s: %d bytes, %v", h, len(b), err)
			}
		}
		to := filepath.Join(t.TempDir(), "backup")
		must(t, s.Backup(t.Context(), to))
		if got, err := sqlite.Verify(t.Context(), to); err != nil || got.Last != 14 || got.Blobs != 3 {
			t.Errorf("its backup has %+v, %v", got, err)
		}
		must(t, s.Close())
	}
	s := open(t, dir)
	if last, err := s.Append(t.Context(), lead(t, s), []store.Record{submission(5)}); last != 15 || err != nil {
		t.Errorf("the next record is %d, %v", last, err)
	}
}

// TestBlobFilesArePurged: the blobs of schema 1 go by the time of their files.
func TestBlobFilesArePurged(t *testing.T) {
	dir, _ := schema1(t)
	s := open(t, dir)
	epoch := lead(t, s)
	submit(t, s, epoch, 20, 1)
	files, _ := filepath.Glob(filepath.Join(dir, "blobs", "*"))
	old := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, f := range files {
		must(t, os.Chtimes(f, old, old))
	}
	keep := filepath.Base(files[1])
	req := store.PurgeRequest{BlobsBefore: old.AddDate(0, 0, 1), Keep: func(h string) bool { return h == keep }}
	res, err := s.Purge(t.Context(), epoch, req)
	if err != nil || res.Blobs != 2 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := s.Blob(t.Context(), keep); err != nil {
		t.Error(err)
	}
	if _, err := s.Blob(t.Context(), filepath.Base(files[0])); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	req.Keep = nil
	res, err = s.Purge(t.Context(), epoch, req)
	if _, stat := os.Stat(filepath.Join(dir, "blobs")); err != nil || res.Blobs != 1 || !os.IsNotExist(stat) {
		t.Errorf("%+v, %v, %v", res, err, stat)
	}
	if _, err = s.Purge(t.Context(), epoch, req); err != nil {
		t.Error(err)
	}
}

// TestUpgradeFailsWhole: an upgrade that cannot be finished changes nothing.
func TestUpgradeFailsWhole(t *testing.T) {
	dir, want := schema1(t)
	db := raw(t, dir)
	if _, err := db.Exec("CREATE TABLE doc (stands_in_the_way)"); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(dir); err == nil || !strings.Contains(err.Error(), "schema 2") {
		t.Fatalf("it was upgraded: %v", err)
	}
	var version, n int
	must(t, db.QueryRow("PRAGMA user_version").Scan(&version))
	must(t, db.QueryRow("SELECT COUNT(data) FROM journal WHERE typeof(data) = 'text'").Scan(&n))
	if version != 1 || n != len(want) {
		t.Errorf("schema %d, %d records", version, n)
	}
	if _, err := db.Exec("DROP TABLE doc"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, all(t, open(t, dir))); d != "" {
		t.Error(d)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	dir := t.TempDir()
	must(t, open(t, dir).Close())
	if _, err := raw(t, dir).Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "journal.db"))
	must(t, err)
	_, err = sqlite.Open(dir)
	_, verifyErr := sqlite.Verify(t.Context(), dir)
	for _, err := range []error{err, verifyErr} {
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(fmt.Sprint(err), "schema 99") || fault.Remedy(err) == "" {
			t.Errorf("%v", err)
		}
	}
	if after, err := os.ReadFile(filepath.Join(dir, "journal.db")); err != nil || string(after) != string(before) {
		t.Errorf("it was written to: %v", err)
	}
}

// TestUpgradeFromSchema2: every row gets its checksum, once, and reads as it did.
func TestUpgradeFromSchema2(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.CopyFS(dir, os.DirFS("testdata/schema2")))
	text, err := os.ReadFile("testdata/schema2/journal.sql")
	must(t, err)
	db := raw(t, dir)
	if _, err := db.Exec("PRAGMA journal_mode = WAL;" + string(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Verify(t.Context(), dir); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("before the upgrade: %v", err)
	}
	for round := range 2 { // upgraded, and opened again
		s := open(t, dir)
		first, err := s.First(t.Context())
		must(t, err)
		n := 0
		must(t, s.Read(t.Context(), first-1, func(r store.Record) error { n++; return nil }))
		if first != 4 || n != 9 {
			t.Errorf("round %d: %d records from %d on", round, n, first)
		}
		n = 0
		must(t, s.History(t.Context(), store.Query{}, func(r store.JobRow) error {
			want := row(int(r.ID))
			if n++; r.Name != want.Name || r.User != want.User || !r.Submitted.Equal(want.Submitted) || string(r.Detail) != fmt.Sprintf(`{"id":%d}`, r.ID) {
				t.Errorf("%+v", r)
			}
			return nil
		}))
		doc, err := s.Doc(t.Context(), "control")
		if n != 6 || err != nil || string(doc) != `{"next":7}` {
			t.Errorf("round %d: %d jobs, document %s, %v", round, n, doc, err)
		}
		for _, blob := range []string{"#!/bin/sh\necho 0\n", strings.Repeat("abcdefgh\n", 40<<10/9+1)[:40<<10]} {
			if b, err := s.Blob(t.Context(), store.Hash([]byte(blob))); err != nil || string(b) != blob {
				t.Errorf("round %d: blob %.10q: %v", round, blob, err)
			}
		}
		must(t, s.Scrub(t.Context(), func(int) error { return nil }))
		if found := s.Damages(); len(found) > 0 {
			t.Errorf("round %d: %s", round, found)
		}
		must(t, s.Close())
		if got, err := sqlite.Verify(t.Context(), dir); err != nil || got.Schema != 3 || got.Last != 12 || got.Blobs != 4 {
			t.Errorf("round %d: %+v, %v", round, got, err)
		}
	}
}
