package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
	"github.com/coxswain-sched/coxswain/store/storetest"
)

func TestConformance(t *testing.T) { storetest.Run(t, harness(t, sqlite.Open)) }

func TestConformanceOfPacks(t *testing.T) { storetest.RunBlobs(t, harness(t, sqlite.OpenPacked)) }

func harness(t *testing.T, open func(string) (*sqlite.Store, error)) storetest.Harness {
	root := t.TempDir()
	return storetest.Harness{Open: func(t *testing.T, key string) store.Store {
		s, err := open(filepath.Join(root, strings.ReplaceAll(key, "/", "_")))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}}
}

func TestTwoProcessesOneLeader(t *testing.T) {
	dir := t.TempDir()
	first, err := sqlite.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := sqlite.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	old, err := first.Lead(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Lead(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	_, err = first.Append(t.Context(), old, []store.Record{{Kind: "x", Data: []byte("{}")}})
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "second") {
		t.Fatalf("the old leader's append: %v", err)
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "plain")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(file); err == nil {
		t.Error("a plain file was taken for a state directory")
	}
	if err := os.MkdirAll(filepath.Join(dir, "bad"), 0o700); err != nil {
		t.Fatal(err)
	}
	junk := []byte(strings.Repeat("not a database ", 100))
	if err := os.WriteFile(filepath.Join(dir, "bad", "journal.db"), junk, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(filepath.Join(dir, "bad"))
	if err == nil || fault.Remedy(err) == "" {
		t.Errorf("a damaged journal: %v", err)
	}
	if kept, _ := os.ReadFile(filepath.Join(dir, "bad", "journal.db")); string(kept) != string(junk) {
		t.Error("a damaged journal was written over")
	}
}

func TestOnlyTheServerMayReadTheState(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "journal.db"), nil, 0o644); err != nil { //nolint:gosec // as an older version left it
		t.Fatal(err)
	}
	s, err := sqlite.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	epoch, err := s.Lead(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutBlob(t.Context(), []byte(strings.Repeat("secret", 10000))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), epoch, []store.Record{{Kind: "x", Data: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestJournalIsGone: beside the blobs of a journal that is gone no new one begins.
func TestJournalIsGone(t *testing.T) {
	for name, lose := range map[string]func(string) error{
		"removed": os.Remove, "empty": func(file string) error { return os.Truncate(file, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			submit(t, s, lead(t, s), 1, 100)
			must(t, s.Close())
			must(t, lose(filepath.Join(dir, "journal.db")))
			_, err := sqlite.Open(dir)
			if err == nil || !strings.Contains(err.Error(), "no journal") || fault.Remedy(err) == "" {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestDamagedBlob: the one that is damaged is found when it is read, the others are
// as they were.
func TestDamagedBlob(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	submit(t, s, lead(t, s), 1, 100)
	must(t, s.Close())
	file := filepath.Join(dir, "packs", "000001.pack")
	b, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, bytes.Replace(b, []byte("script 50\n"), []byte("script 05\n"), 1), 0o600))
	s = open(t, dir)
	for i := 1; i <= 100; i++ {
		_, err := s.Blob(t.Context(), store.Hash(script(i)))
		if i != 50 && err != nil || i == 50 && (err == nil || !strings.Contains(err.Error(), file) || fault.Remedy(err) == "") {
			t.Errorf("blob %d: %v", i, err)
		}
	}
}
