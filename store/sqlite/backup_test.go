package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// script is the blob that comes with record i.
func script(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "script %d\n", i), 300) }

// submit appends records with one blob each; the first has the number first.
func submit(tb testing.TB, s store.Store, epoch uint64, first, n int) {
	tb.Helper()
	var recs []store.Record
	for i := first; i < first+n; i++ {
		if _, err := s.PutBlob(tb.Context(), script(i)); err != nil {
			tb.Fatal(err)
		}
		recs = append(recs, submission(i))
	}
	if _, err := s.Append(tb.Context(), epoch, recs); err != nil {
		tb.Fatal(err)
	}
}

// TestBackupOfABusyStore: what was acknowledged before it began is in the backup,
// which is consistent although writers and the purge go on.
func TestBackupOfABusyStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	epoch := lead(t, s)
	submit(t, s, epoch, 1, 500)
	must(t, s.Project(t.Context(), epoch, 400, []store.JobRow{row(1), row(2)}, map[string][]byte{"global": []byte("x")}))

	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 501; ctx.Err() == nil; i += 10 {
			submit(t, s, epoch, i, 10)
			if _, err := s.Purge(t.Context(), epoch, store.PurgeRequest{RecordsBefore: start, BlobsBefore: start}); err != nil {
				t.Error(err)
			}
		}
	})
	defer wg.Wait()
	defer stop()
	for i := range 3 {
		to := filepath.Join(t.TempDir(), "backup")
		if i == 1 { // an empty directory will do
			must(t, os.Mkdir(to, 0o700))
		}
		var least uint64
		must(t, s.Read(t.Context(), 0, func(r store.Record) error { least = r.Seq; return nil }))
		must(t, s.Backup(t.Context(), to))
		got, err := sqlite.Verify(t.Context(), to)
		if err != nil || got.Last < least || got.Blobs != int(got.Last) || got.Projected != 400 || got.Live != 2 {
			t.Fatalf("the journal had %d records, the backup has %+v, %v", least, got, err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(to), "*")); len(left) != 1 {
			t.Errorf("beside the backup lie %v", left)
		}
		b := open(t, to)
		submit(t, b, lead(t, b), int(got.Last)+1, 1)
		for i := 1; i <= int(got.Last)+1; i += 97 {
			if blob, err := b.Blob(t.Context(), store.Hash(script(i))); err != nil || !bytes.Equal(blob, script(i)) {
				t.Errorf("blob %d: %v", i, err)
			}
		}
		if doc, err := b.Doc(t.Context(), "global"); err != nil || string(doc) != "x" {
			t.Errorf("%q, %v", doc, err)
		}
	}
}

func TestBackupIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	submit(t, s, lead(t, s), 1, 100)
	if err := s.Backup(t.Context(), dir); fault.KindOf(err) != fault.Conflict || fault.Remedy(err) == "" {
		t.Errorf("onto itself: %v", err)
	}
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if err := s.Backup(t.Context(), file); fault.KindOf(err) != fault.Invalid {
		t.Errorf("onto a file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to := t.TempDir()
	if err := s.Backup(ctx, filepath.Join(to, "b")); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("cancelled: %v", err)
	}
	must(t, os.Remove(filepath.Join(dir, "packs", "000001.pack")))
	if err := s.Backup(t.Context(), filepath.Join(to, "b")); err == nil {
		t.Error("a backup without a pack")
	}
	if left, _ := filepath.Glob(filepath.Join(to, "*")); len(left) != 0 {
		t.Errorf("failed backups leave %v", left)
	}
}

// TestVerifyFindsDamage flips a byte or removes something in a copy of a sound
// backup.
func TestVerifyFindsDamage(t *testing.T) {
	s := open(t, t.TempDir())
	epoch := lead(t, s)
	submit(t, s, epoch, 1, 200) // in a pack
	submit(t, s, epoch, 201, 1) // in the database
	sound := filepath.Join(t.TempDir(), "sound")
	must(t, s.Backup(t.Context(), sound))
	edit := func(name string, f func([]byte) []byte) func(string) error {
		return func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name), f(b), 0o600)
		}
	}
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[(at+len(b))%len(b)] ^= 1; return b }
	}
	for name, damage := range map[string]func(dir string) error{
		"a bit of a blob": edit("packs/000001.pack", flip(1000)),
		"the last blob":   edit("packs/000001.pack", flip(-1)),
		"a pack is short": edit("packs/000001.pack", func(b []byte) []byte { return b[:len(b)-1] }),
		"a pack is gone":  func(dir string) error { return os.Remove(filepath.Join(dir, "packs/000001.pack")) },
		"a small blob": edit("journal.db", func(b []byte) []byte {
			return bytes.Replace(b, []byte("script 201"), []byte("script 210"), 1)
		}),
		"a page":               edit("journal.db", func(b []byte) []byte { clear(b[8*4096 : 9*4096]); return b }),
		"the header":           edit("journal.db", flip(3)),
		"the database is gone": func(dir string) error { return os.Remove(filepath.Join(dir, "journal.db")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			must(t, os.CopyFS(dir, os.DirFS(sound)))
			if _, err := sqlite.Verify(t.Context(), dir); err != nil {
				t.Fatal("before: ", err)
			}
			must(t, damage(dir))
			_, err := sqlite.Verify(t.Context(), dir)
			if err == nil {
				t.Error("not found")
			}
			t.Log(err)
		})
	}
}
