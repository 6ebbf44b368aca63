package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

func opened(t *testing.T) (*Store, uint64) {
	t.Helper()
	s, err := OpenPacked(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	epoch, err := s.Lead(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return s, epoch
}

var one = []store.Record{{Kind: "x", Data: []byte("{}")}}

// TestFailedSync: what was put is not lost when its pack cannot be made durable; the
// append fails whole, and the next one takes another pack.
func TestFailedSync(t *testing.T) {
	s, epoch := opened(t)
	put := func(text string) {
		t.Helper()
		if _, err := s.PutBlob(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put("good")
	if _, err := s.Append(t.Context(), epoch, one); err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // takes everything, syncs nothing
	if err != nil {
		t.Fatal(err)
	}
	if err := s.blobs.pack.f.Close(); err != nil {
		t.Fatal(err)
	}
	s.blobs.pack.f = null
	put("bad")
	if _, err := s.Append(t.Context(), epoch, one); err == nil {
		t.Fatal("the append did not notice")
	}
	put("later")
	last, err := s.Append(t.Context(), epoch, one)
	if err != nil || last != 2 {
		t.Fatalf("the next append: record %d, %v", last, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := Verify(t.Context(), s.dir); err != nil || got.Blobs != 3 || got.Last != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSpill: much that is put without an append does not stay in memory, and is
// durable with the append.
func TestSpill(t *testing.T) {
	s, epoch := opened(t)
	blob := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d ", i), 200_000) }
	const n = 24
	for i := range n {
		if _, err := s.PutBlob(t.Context(), blob(i)); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for _, f := range s.blobs.waiting {
		held += len(f.bytes)
	}
	if held > 2*spillSize {
		t.Errorf("%d bytes wait in memory", held)
	}
	for range 2 {
		for i := range n {
			b, err := s.Blob(t.Context(), store.Hash(blob(i)))
			if err != nil || !bytes.Equal(b, blob(i)) {
				t.Errorf("blob %d: %d bytes, %v", i, len(b), err)
			}
		}
		if _, err := s.Append(t.Context(), epoch, one); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := Verify(t.Context(), s.dir); err != nil || got.Blobs != n {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPacksAreLeftWhenLarge: a full pack is not appended to, by this process or the
// next; a pack with room is.
func TestPacksAreLeftWhenLarge(t *testing.T) {
	s, epoch := opened(t)
	add := func(text string) int64 {
		t.Helper()
		if _, err := s.PutBlob(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), epoch, one); err != nil {
			t.Fatal(err)
		}
		return s.blobs.pack.id
	}
	reopen := func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		next, err := OpenPacked(s.dir)
		if err != nil {
			t.Fatal(err)
		}
		if epoch, err = next.Lead(t.Context(), "next"); err != nil {
			t.Fatal(err)
		}
		s = next
	}
	if a, b := add("a"), add("b"); a != 1 || b != 1 {
		t.Errorf("packs %d and %d", a, b)
	}
	reopen()
	if c := add("c"); c != 1 {
		t.Errorf("after a restart: pack %d", c)
	}
	s.blobs.pack.end = packSize // a hole; what lies behind it is not valid before it is committed
	if d, e := add("d"), add("e"); d != 2 || e != 2 {
		t.Errorf("after a full one: packs %d and %d", d, e)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	second, err := Open(s.dir) // another process: the pack is locked
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.blobs.pack != nil {
		t.Error("two processes append to one pack")
	}
}

// TestLogStaysBounded: writers that never rest do not let the log grow for ever.
func TestLogStaysBounded(t *testing.T) {
	s, epoch := opened(t)
	s.log.soft, s.log.hard = 128<<10, 512<<10
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			rec := []store.Record{{Kind: "x", Data: bytes.Repeat([]byte("1"), 40_000)}}
			for range 100 {
				if _, err := s.Append(t.Context(), epoch, rec); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	info, err := os.Stat(filepath.Join(s.dir, "journal.db-wal"))
	if err != nil || info.Size() > 6<<20 {
		t.Errorf("after 16 MB the log has %d bytes, %v", info.Size(), err)
	}
	t.Log(info.Size())
}

// TestPackIsKept: a pack that would be purged stays as long as a backup is made, or
// one of its blobs was put again and is not committed yet.
func TestPackIsKept(t *testing.T) {
	s, epoch := opened(t)
	add := func(text string) {
		t.Helper()
		if _, err := s.PutBlob(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Unix(1, 0)
	record := func() {
		t.Helper()
		if _, err := s.Append(t.Context(), epoch, []store.Record{{At: at, Kind: "x", Data: []byte("{}")}}); err != nil {
			t.Fatal(err)
		}
	}
	purge := func() (n int) {
		t.Helper()
		for {
			res, err := s.Purge(t.Context(), epoch, store.PurgeRequest{BlobsBefore: at.Add(time.Minute)})
			if n += res.Blobs; err != nil || !res.More {
				return n
			}
		}
	}
	add("a")
	record()
	s.blobs.pack.end = packSize // so that the next one goes elsewhere
	add("b")
	record()
	if err := s.holdPurges(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := purge(); n != 0 {
		t.Errorf("%d blobs were purged during a backup", n)
	}
	s.releasePurges()
	add("a")
	if n := purge(); n != 0 {
		t.Errorf("%d blobs were purged that were put again", n)
	}
	record()
	if n := purge(); n != 1 {
		t.Errorf("%d blobs were purged", n)
	}
	add("a")
	record()
	if b, err := s.Blob(t.Context(), store.Hash([]byte("a"))); err != nil || string(b) != "a" {
		t.Errorf("put after it was purged: %q, %v", b, err)
	}
	if _, err := os.Stat(packName(s.dir, 1)); !os.IsNotExist(err) {
		t.Errorf("the file of the pack: %v", err)
	}
}

// TestAppendSyncs: Project does not wait for the disk, and whatever becomes of it,
// the next Append does.
func TestAppendSyncs(t *testing.T) {
	s, epoch := opened(t)
	for _, e := range []uint64{epoch, epoch + 1} {
		_ = s.Project(t.Context(), e, 0, nil, nil)
		if full, _, err := s.write.queryNumber("PRAGMA synchronous"); full != 2 || err != nil {
			t.Errorf("after Project with epoch %d synchronous is %d, %v", e, full, err)
		}
	}
}

func TestNoLocks(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for errno, want := range map[syscall.Errno]fault.Kind{
		syscall.EWOULDBLOCK: fault.Conflict, syscall.ENOLCK: fault.Unsupported, syscall.ENOSYS: fault.Unsupported, syscall.EIO: fault.Unavailable,
	} {
		err := lockRefused("/state", f, errno)
		if fault.KindOf(err) != want || want == fault.Unsupported && fault.Remedy(err) == "" {
			t.Errorf("%v gives %v (%s)", errno, err, fault.KindOf(err))
		}
	}
}

// TestCloseEndsGoroutines: whoever writes when the store is closed.
func TestCloseEndsGoroutines(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s, epoch := opened(t)
	s.log.soft = 1
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				if _, err := s.PutBlob(t.Context(), []byte("blob")); err != nil {
					return
				}
				if _, err := s.Append(t.Context(), epoch, one); err != nil {
					if fault.KindOf(err) != fault.Unavailable {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	for n := uint64(0); n < 50; {
		if err := s.Read(t.Context(), n, func(r store.Record) error { n = r.Seq; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	goleak.VerifyNone(t, before)
}

// TestPurgeGoesPastDamagedBlobs: blobs that cannot be read keep their rows, are named, and do not keep
// the others that are old from being purged, even if they fill whole batches.
//
// Seen to fail with: a batch that is looked for among the oldest rows alone.
func TestPurgeGoesPastDamagedBlobs(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	epoch, err := s.Lead(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1, 0)
	for i := range 9 {
		if _, err := s.PutBlob(t.Context(), fmt.Appendf(nil, "blob %d", i)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), epoch, []store.Record{{At: at.Add(time.Duration(i) * time.Second), Kind: "x", Data: []byte("{}")}}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.write.execRows("UPDATE small SET sum = sum + 1 WHERE id <= 6"); n != 6 || err != nil {
		t.Fatalf("%d rows are damaged, %v", n, err)
	}
	purged := 0
	for {
		res, err := s.Purge(t.Context(), epoch, store.PurgeRequest{BlobsBefore: at.Add(time.Minute), Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		if purged += res.Blobs; !res.More {
			break
		}
	}
	left, _, err := s.write.queryNumber("SELECT COUNT(*) FROM small")
	if purged != 3 || left != 6 || err != nil {
		t.Errorf("%d blobs were purged and %d rows are left, %v", purged, left, err)
	}
}
