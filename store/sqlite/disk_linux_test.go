package sqlite_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/smalldisk"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// TestFullDisk fills a small file system: what does not fit is refused whole, with
// the remedy; what was acknowledged stays; and with room again it goes on.
func TestFullDisk(t *testing.T) {
	for name, open := range map[string]func(string) (*sqlite.Store, error){"AsItIs": sqlite.Open, "AllBlobsInPacks": sqlite.OpenPacked} {
		t.Run(name, func(t *testing.T) { fullDisk(t, open) })
	}
}

func fullDisk(t *testing.T, open func(string) (*sqlite.Store, error)) {
	dir := t.TempDir()
	smalldisk.At(t, dir, "size=4m")
	s, err := open(dir)
	must(t, err)
	defer s.Close()
	epoch, acked := lead(t, s), 0
	for round := range 6 {
		filler := filepath.Join(dir, "filler")
		fill, err := os.Create(filler)
		must(t, err)
		leave := 40_000 * round // sometimes the pack hits the wall, sometimes the journal
		for b := make([]byte, 4096); err == nil; {
			_, err = fill.Write(b)
		}
		info, err := fill.Stat()
		must(t, err)
		must(t, fill.Truncate(info.Size()-int64(min(leave, int(info.Size())))))
		must(t, fill.Close())
		for err = nil; err == nil; {
			if err = submitErr(s, epoch, acked+1, 5); err == nil {
				acked += 5
			}
		}
		if fault.KindOf(err) != fault.Exhausted || !strings.Contains(fault.Remedy(err), "room") {
			t.Fatalf("a full disk: %v (%s)", err, fault.KindOf(err))
		}
		if n := len(all(t, s)); n != acked {
			t.Fatalf("round %d: %d records are there, %d were acknowledged", round, n, acked)
		}
		must(t, os.Remove(filler))
		if err := submitErr(s, epoch, acked+1, 5); err != nil {
			t.Fatalf("with room again: %v", err)
		}
		acked += 5
	}
	for i := 1; i <= acked; i++ {
		if b, err := s.Blob(t.Context(), store.Hash(script(i))); err != nil || !bytes.Equal(b, script(i)) {
			t.Errorf("blob %d: %v", i, err)
		}
	}
	must(t, s.Close())
	if got, err := sqlite.Verify(t.Context(), dir); err != nil || int(got.Last) != acked {
		t.Errorf("%+v, %v", got, err)
	}
}

func submitErr(s store.Store, epoch uint64, first, n int) error {
	var recs []store.Record
	for i := first; i < first+n; i++ {
		if _, err := s.PutBlob(context.Background(), script(i)); err != nil {
			return err
		}
		recs = append(recs, submission(i))
	}
	_, err := s.Append(context.Background(), epoch, recs)
	return err
}
