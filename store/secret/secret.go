// Package secret keeps secrets of users: files of mode 0600 in a folder of its own, outside of journal,
// blobs and backups. A value is read when a job is launched, and nowhere else. Beside those that users
// name are those that came with a submission (the Secrets of a manifest), which go with the last that
// needs them.
package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Bounds of what a user may keep.
const (
	MostBytes   = 64 << 10 // of one value
	MostSecrets = 200      // of one user
)

// Store keeps secrets below a folder, those of each user in a folder of his number. It is safe for
// concurrent use, also by several processes; Keep and Sweep are one process's.
type Store struct {
	dir string
	mu  sync.Mutex // held by Keep and Sweep: no set goes that was just found
}

// NewStore returns the store of a folder, which is made when the first secret is put.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Info is what is told of a secret.
type Info struct {
	Name    string
	Size    int64 // bytes
	Changed time.Time
}

func (s *Store) folderOf(uid uint32) string {
	return filepath.Join(s.dir, strconv.FormatUint(uint64(uid), 10))
}

func (s *Store) fileOf(uid uint32, name string) (string, error) {
	if err := job.CheckSecretName(name); err != nil {
		return "", fault.New(fault.Invalid, "%w", err).Advise("for example hf-token")
	}
	return filepath.Join(s.folderOf(uid), name), nil
}

// Put keeps a value; one of the same name is replaced. It is durable when Put returns.
func (s *Store) Put(uid uint32, name string, value []byte) error {
	file, err := s.fileOf(uid, name)
	if err != nil {
		return err
	}
	if len(value) == 0 || len(value) > MostBytes {
		return fault.New(fault.Invalid, "secret %s: %d bytes are not between 1 and %d", name, len(value), MostBytes).Advise("keep large files elsewhere, and a key to them here")
	}
	folder := s.folderOf(uid)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("keep secret %s: %w", name, err)
	}
	if list, err := s.List(uid); err != nil {
		return err
	} else if len(list) >= MostSecrets && !slices.ContainsFunc(list, func(i Info) bool { return i.Name == name }) {
		return fault.New(fault.Exhausted, "you have %d secrets already", len(list)).Advise("remove some: cox secret list, cox secret remove NAME")
	}
	if err := writeWhole(folder, file, value); err != nil {
		return fmt.Errorf("keep secret %s: %w", name, err)
	}
	return nil
}

// partial begins the name of a file that is being written; no secret has such a name.
const partial = ".new-"

// writeWhole puts a file in its place, whole or not at all.
func writeWhole(folder, file string, value []byte) (err error) {
	f, err := os.CreateTemp(folder, partial) // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // it is in nobody's way
		}
	}()
	if _, err = f.Write(value); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), file); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the names in a folder durable.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Get reads a value; fault.NotFound if the user has none of that name.
func (s *Store) Get(uid uint32, name string) ([]byte, error) {
	file, err := s.fileOf(uid, name)
	if err != nil {
		return nil, err
	}
	value, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknownSecret(name)
	}
	return value, err
}

// List lists the user's secrets by name.
func (s *Store) List(uid uint32) ([]Info, error) {
	found, err := os.ReadDir(s.folderOf(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Info
	for _, f := range found {
		st, err := f.Info()
		if err != nil || strings.HasPrefix(f.Name(), partial) {
			continue // it has just gone, or is not whole
		}
		out = append(out, Info{Name: f.Name(), Size: st.Size(), Changed: st.ModTime()})
	}
	return out, nil
}

// Remove forgets a secret; fault.NotFound if there is none.
func (s *Store) Remove(uid uint32, name string) error {
	file, err := s.fileOf(uid, name)
	if err != nil {
		return err
	}
	if err := os.Remove(file); errors.Is(err, fs.ErrNotExist) {
		return unknownSecret(name)
	} else if err != nil {
		return err
	}
	return nil
}

func unknownSecret(name string) error {
	return fault.New(fault.NotFound, "you have no secret %s", name).Advise("cox secret set %s keeps one; cox secret list shows what there is", name)
}

// CopyTo copies all secrets of all users into a new folder, for a backup that is to have them.
func (s *Store) CopyTo(dir string) error {
	users, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	to := NewStore(dir)
	for _, user := range users {
		uid, err := strconv.ParseUint(user.Name(), 10, 32)
		if err != nil {
			continue
		}
		list, err := s.List(uint32(uid))
		if err != nil {
			return err
		}
		for _, one := range list {
			value, err := s.Get(uint32(uid), one.Name)
			if fault.KindOf(err) == fault.NotFound {
				continue // it was removed just now
			}
			if err != nil {
				return err
			}
			if err := to.Put(uint32(uid), one.Name, value); err != nil {
				return err
			}
		}
	}
	return s.copyKept(to)
}
