package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// MostKept is how many sets of values that came with submissions are kept for one user.
const MostKept = 1000

const (
	keptFolder = "kept"
	keptKey    = "key" // the key of the names of sets, beside the folders of users
)

// Kept names a set of values that came with a submission.
type Kept struct {
	UID  uint32
	Name string // as job.Secret.Kept
}

// Keep keeps values that came with a submission apart from the secrets to which the user gave names, and returns
// the name of their set. The same values of a user have the same name, which tells nothing of them. They are durable
// when Keep returns, and stay until Sweep is told that nobody needs them.
func (s *Store) Keep(uid uint32, values map[string][]byte) (name string, err error) {
	for _, n := range slices.Sorted(maps.Keys(values)) {
		if err := job.CheckSecretName(n); err != nil {
			return "", fault.New(fault.Invalid, "%w", err).Advise("rename the Secret or its key")
		}
		if len(values[n]) > MostBytes {
			return "", fault.New(fault.Invalid, "secret %s: %d bytes are more than %d", n, len(values[n]), MostBytes).Advise("keep large files elsewhere, and a key to them here")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	folder := filepath.Join(s.dir, keptFolder, strconv.FormatUint(uint64(uid), 10))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	key, err := s.nameKey()
	if err != nil {
		return "", err
	}
	name = nameOf(key, uid, values)
	final := filepath.Join(folder, name)
	now := time.Now()
	if err := os.Chtimes(final, now, now); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return name, err
	}
	there, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	if len(there) >= MostKept {
		return "", fault.New(fault.Exhausted, "%d of your jobs, services and schedules have Secrets of their own", len(there)).
			Advise("wait until some have ended, or keep the values under a name of yours (cox secret set) and leave the Secret out of the file")
	}
	return name, writeFolder(folder, final, values)
}

// writeFolder puts a folder of files in its place, whole or not at all.
func writeFolder(in, final string, values map[string][]byte) (err error) {
	made, err := os.MkdirTemp(in, partial) // mode 0700
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(made) // Sweep does otherwise
		}
	}()
	for name, value := range values {
		if err := writeWhole(made, filepath.Join(made, name), value); err != nil {
			return fmt.Errorf("keep secret %s: %w", name, err)
		}
	}
	if err := os.Rename(made, final); err != nil {
		return err
	}
	return syncFolder(in)
}

// nameKey is the key of the names of sets, which is made when it is first asked for.
func (s *Store) nameKey() ([]byte, error) {
	folder := filepath.Join(s.dir, keptFolder)
	file := filepath.Join(folder, keptKey)
	key, err := os.ReadFile(file)
	if err == nil && len(key) == sha256.Size || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	key = make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key, writeWhole(folder, file, key)
}

// nameOf is the name of a set.
func nameOf(key []byte, uid uint32, values map[string][]byte) string {
	h := hmac.New(sha256.New, key)
	write := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	write(binary.BigEndian.AppendUint32(nil, uid))
	for _, n := range slices.Sorted(maps.Keys(values)) {
		write([]byte(n))
		write(values[n])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Read reads the value of a job's secret; fault.NotFound: it is kept no more.
func (s *Store) Read(uid uint32, one *job.Secret) ([]byte, error) {
	if one.Kept == "" {
		return s.Get(uid, one.Name)
	}
	if err := one.Check(); err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	value, err := os.ReadFile(filepath.Join(s.dir, keptFolder, strconv.FormatUint(uint64(uid), 10), one.Kept, one.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "the value of %s, which came with the submission, is kept no more", one.Name).Advise("submit the file again")
	}
	return value, err
}

// Sweep removes the sets that nobody needs and that were kept before a time: those of a submission that is on its way
// are needed by nobody yet. needed is asked after the sets were listed, and only if there are any.
func (s *Store) Sweep(before time.Time, needed func() map[Kept]bool) error {
	root := filepath.Join(s.dir, keptFolder)
	found, err := filepath.Glob(filepath.Join(root, "[0-9]*", "*"))
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(folder string) bool { return !isOlder(folder, before) })
	if len(found) == 0 {
		return nil
	}
	needs := needed()
	var errs []error
	for _, folder := range found {
		uid, err := strconv.ParseUint(filepath.Base(filepath.Dir(folder)), 10, 32)
		if err != nil || needs[Kept{uint32(uid), filepath.Base(folder)}] {
			continue
		}
		errs = append(errs, s.removeOlder(folder, before))
	}
	return errors.Join(errs...)
}

func isOlder(folder string, before time.Time) bool {
	st, err := os.Stat(folder)
	return err == nil && st.ModTime().Before(before)
}

// removeOlder removes a set unless it was kept again meanwhile. One that is on its way out has no name of a set.
func (s *Store) removeOlder(folder string, before time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isOlder(folder, before) {
		return nil
	}
	if !strings.HasPrefix(filepath.Base(folder), partial) {
		leaving := filepath.Join(filepath.Dir(folder), partial+filepath.Base(folder))
		if err := os.Rename(folder, leaving); err != nil {
			return err
		}
		folder = leaving
	}
	return os.RemoveAll(folder)
}

// copyKept copies the sets of all users, and the key of their names.
func (s *Store) copyKept(to *Store) error {
	from := filepath.Join(s.dir, keptFolder)
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		into := filepath.Join(to.dir, strings.TrimPrefix(path, s.dir))
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), partial) {
				return fs.SkipDir
			}
			return os.MkdirAll(into, 0o700)
		}
		value, err := os.ReadFile(path)
		if err != nil || strings.HasPrefix(d.Name(), partial) {
			return err
		}
		return writeWhole(filepath.Dir(into), into, value)
	})
	if errors.Is(err, fs.ErrNotExist) { // there are none
		return nil
	}
	return err
}
