package upload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Store keeps archives below a directory, UID/DIGEST: each user has those that he sent, and
// sees no others', whatever he knows of their content.
type Store struct {
	dir   string
	most  int64 // bytes of an archive
	room  int64 // bytes of all of a user
	now   func() time.Time
	disk  func(dir string) (free, all int64, err error) // bytes of a directory's file system
	sync  func(dir string) error                        // has the names in a directory be on the disk
	due   atomic.Int64                                  // bytes of archives that are under way, but for those that are written
	mu    sync.Mutex
	comes map[uint32]int64 // what archives that are under way count, by user
	parts map[string]bool  // their files
}

// Name names an archive.
type Name struct {
	UID    uint32 // of its user
	Digest string
}

// Needed says which archives jobs need, at the time of the call. One that a job needs since then
// was touched for it, and is fresh.
type Needed func() map[Name]bool

// countedSize is what an archive of so many bytes takes of a user's room: small ones take a place
// on the disk too.
func countedSize(size int64) int64 { return max(size, 64<<10) }

// sparedBytes is how many bytes of a file system with so many archives leave free: the journal
// lies on it too. That is 5 %, but at least 1 and at most 8 GiB.
func sparedBytes(all int64) int64 { return min(max(1<<30, all/20), 8<<30) }

// fresh is for how long an archive that no job needs is kept at least: its job may be on its
// way. Stale is after which time it goes.
const (
	fresh = 15 * time.Minute
	Stale = 24 * time.Hour
)

// NewStore keeps archives of up to most bytes, and of each user room bytes of them, in a
// directory, which is made when it is needed.
func NewStore(dir string, most, room int64) *Store {
	return &Store{dir: dir, most: most, room: room, now: time.Now, disk: diskSpace, sync: syncDir, comes: map[uint32]int64{}, parts: map[string]bool{}}
}

// On has the store go by what a function says of the file system of a directory: its free bytes, and
// all. Tests know their disk by it. It is called before the store is used.
func (s *Store) On(disk func(dir string) (free, all int64, err error)) *Store {
	s.disk = disk
	return s
}

// Bounds are the most bytes that an archive may have, and all of a user.
func (s *Store) Bounds() (most, room int64) { return s.most, s.room }

// CheckDigest reports whether a text can be the digest of an archive: SHA-256, as 64 lower-case
// hexadecimal digits.
func CheckDigest(digest string) error {
	if raw, err := hex.DecodeString(digest); err != nil || len(raw) != sha256.Size || strings.ToLower(digest) != digest {
		return fault.New(fault.Invalid, "%.80q is no digest of an archive", digest).Advise("write its SHA-256 as 64 hexadecimal digits, a to f lower case")
	}
	return nil
}

func (s *Store) userFolder(uid uint32) string {
	return filepath.Join(s.dir, strconv.FormatUint(uint64(uid), 10))
}

func (s *Store) archiveFile(uid uint32, digest string) string {
	return filepath.Join(s.userFolder(uid), digest)
}

// Touch reports the size of an archive that is there, and keeps it for a while.
// fault.NotFound: it is not.
func (s *Store) Touch(uid uint32, digest string) (int64, error) {
	if err := CheckDigest(digest); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if err := os.Chtimes(s.archiveFile(uid, digest), now, now); err != nil {
		return 0, missingError(err, digest)
	}
	info, err := os.Stat(s.archiveFile(uid, digest))
	if err != nil {
		return 0, missingError(err, digest)
	}
	return info.Size(), nil
}

func missingError(err error, digest string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "the server has no working directory %.12s… of this user", digest).Advise("send it again: cox submit --upload")
	}
	return err
}

// Open opens an archive. The caller closes it.
func (s *Store) Open(uid uint32, digest string) (io.ReadCloser, error) {
	if err := CheckDigest(digest); err != nil {
		return nil, err
	}
	f, err := os.Open(s.archiveFile(uid, digest))
	if err != nil {
		return nil, missingError(err, digest)
	}
	return f, nil
}

// Put keeps what is read, whose digest and size are told beforehand, if they are true; it is
// all there when it returns, or nothing. What is there already is not read. Where there
// is no room the oldest go that are not needed. Too large is fault.Exhausted.
func (s *Store) Put(uid uint32, digest string, size int64, from io.Reader, needed Needed) error {
	if err := CheckDigest(digest); err != nil {
		return err
	}
	if size <= 0 || size > s.most {
		return fault.New(fault.Exhausted, "an archive of %d bytes: it may have 1 to %d", size, s.most).Advise("name what the job does not need in " + IgnoreFile)
	}
	if _, err := s.Touch(uid, digest); err == nil || fault.KindOf(err) != fault.NotFound {
		return err
	}
	err := s.reserveRoom(uid, size, nil)
	if fault.KindOf(err) == fault.Exhausted {
		known := needed() // outside of the lock: jobs are many
		err = s.reserveRoom(uid, size, func(digest string) bool { return known[Name{uid, digest}] })
	}
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		if s.comes[uid] -= countedSize(size); s.comes[uid] == 0 {
			delete(s.comes, uid)
		}
		s.mu.Unlock()
	}()
	rest := &due{size, &s.due}
	defer rest.endUpload()
	return s.writeArchive(uid, digest, size, from, rest)
}

// due counts what is still to be written of an archive.
type due struct {
	left int64
	all  *atomic.Int64
}

func (d *due) Write(b []byte) (int, error) {
	n := min(int64(len(b)), d.left)
	d.left -= n
	d.all.Add(-n)
	return len(b), nil
}

func (d *due) endUpload() { d.all.Add(-d.left) }

// partial begins the name of an archive that is under way.
const partial = "part-"

func (s *Store) writeArchive(uid uint32, digest string, size int64, from io.Reader, rest io.Writer) error {
	f, err := s.createTemporary(uid)
	if err != nil {
		return err
	}
	defer s.removeTemporary(f.Name())
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum, rest), io.LimitReader(from, size+1))
	err = errors.Join(err, f.Sync(), f.Close())
	switch {
	case err != nil:
		return fmt.Errorf("the archive broke off after %d bytes of %d: %w", n, size, err)
	case n != size:
		return fault.New(fault.Invalid, "the archive has %d bytes or more, and should have %d", n, size).Advise("send it again")
	case hex.EncodeToString(sum.Sum(nil)) != digest:
		return fault.New(fault.Invalid, "what came is not the archive %.12s…", digest).Advise("send it again")
	}
	s.mu.Lock() // until its name is durable: who finds it meanwhile counts on it
	defer s.mu.Unlock()
	now := s.now()
	if err := os.Chtimes(s.archiveFile(uid, digest), now, now); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err // it came twice at once: jobs may count on the first, which is on the disk
	}
	if err = os.Rename(f.Name(), s.archiveFile(uid, digest)); err != nil {
		return err
	}
	for _, dir := range []string{s.userFolder(uid), s.dir, filepath.Dir(s.dir)} { // each may be new
		if err := s.sync(dir); err != nil {
			// Who sends it again would find it, and nobody would ask the disk again.
			return errors.Join(err, os.Remove(s.archiveFile(uid, digest)))
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// createTemporary makes the file of an archive that is under way.
func (s *Store) createTemporary(uid uint32) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := os.CreateTemp(s.userFolder(uid), partial)
	if err == nil {
		s.parts[f.Name()] = true
	}
	return f, err
}

// removeTemporary removes it, unless it has got its name.
func (s *Store) removeTemporary(file string) {
	_ = os.Remove(file)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.parts, file)
}

// kept is an archive that is there.
type kept struct {
	name string
	size int64
	used time.Time
}

// listArchives are the archives of a user, the one that was used first first. The caller holds the lock.
func (s *Store) listArchives(folder string) ([]kept, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var out []kept
	for _, d := range entries {
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			out = append(out, kept{d.Name(), info.Size(), info.ModTime()})
		}
	}
	slices.SortFunc(out, func(a, b kept) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	return out, nil
}

// reserveRoom makes room for an archive. It removes none where it is not told which are needed.
func (s *Store) reserveRoom(uid uint32, n int64, needed func(digest string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.userFolder(uid), 0o700); err != nil {
		return err
	}
	all, err := s.listArchives(s.userFolder(uid))
	if err != nil {
		return err
	}
	used := s.comes[uid]
	for _, k := range all {
		if !strings.HasPrefix(k.name, partial) { // these are counted in comes
			used += countedSize(k.size)
		}
	}
	free, whole, err := s.disk(s.userFolder(uid))
	if err != nil {
		return err
	}
	free -= s.due.Load()
	least := sparedBytes(whole)
	for _, k := range all {
		if needed == nil || used+countedSize(n) <= s.room && free-n >= least {
			break
		}
		if strings.HasPrefix(k.name, partial) || s.now().Sub(k.used) < fresh || needed(k.name) {
			continue
		}
		if err := os.Remove(filepath.Join(s.userFolder(uid), k.name)); err != nil {
			return err
		}
		used -= countedSize(k.size)
		free += k.size
	}
	if used+countedSize(n) > s.room {
		return fault.New(fault.Exhausted, "there is room for %d bytes of working directories of a user: %d are taken by jobs that have not ended, and by what came within %s", s.room, used, fresh).
			Advise("wait for jobs to end, or cancel some; or send less: name what is not needed in %s", IgnoreFile)
	}
	if free-n < least {
		return fault.New(fault.Exhausted, "the file system of %s has %s free, and %s of them stay free for the server's journal: there is no room for an archive of %s", s.dir, formatSize(max(free, 0)), formatSize(least), formatSize(n)).
			Advise("ask an administrator to make room there; or send less: name what is not needed in %s", IgnoreFile)
	}
	s.comes[uid] += countedSize(n)
	s.due.Add(n)
	return nil
}

// Used is how many bytes of his room the archives of a user take.
func (s *Store) Used(uid uint32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, _ := s.listArchives(s.userFolder(uid)) // none: nothing
	var n int64
	for _, k := range all {
		n += countedSize(k.size)
	}
	return n
}

// Sweep removes archives that no job needs and that nobody has asked for since Stale, and what
// came in part and is not under way any more.
func (s *Store) Sweep(needed Needed) error {
	users, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	known := needed()
	for _, d := range users {
		uid, bad := strconv.ParseUint(d.Name(), 10, 32)
		if bad != nil {
			continue
		}
		err = errors.Join(err, s.sweepUser(uint32(uid), known))
	}
	return err
}

func (s *Store) sweepUser(uid uint32, needed map[Name]bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	folder := s.userFolder(uid)
	all, err := s.listArchives(folder)
	for _, k := range all {
		gone := s.now().Sub(k.used) >= Stale && !needed[Name{uid, k.name}]
		if strings.HasPrefix(k.name, partial) {
			gone = !s.parts[filepath.Join(folder, k.name)] // of a server that has ended
		}
		if gone {
			err = errors.Join(err, os.Remove(filepath.Join(folder, k.name)))
		}
	}
	return err
}
