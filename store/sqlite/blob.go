package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/store"
)

var isHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// PutBlob implements store.Store: the file is complete and durable before it has
// its name.
func (s *Store) PutBlob(_ context.Context, b []byte) (string, error) {
	h := store.Hash(b)
	path := s.blob(h)
	if _, err := os.Stat(path); err == nil {
		return h, nil
	}
	if err := writeDurable(path, b); err != nil {
		return "", classifyFile(fmt.Errorf("keep %d bytes: %w", len(b), err))
	}
	return h, nil
}

// Blob implements store.Store.
func (s *Store) Blob(_ context.Context, hash string) ([]byte, error) {
	if !isHash.MatchString(hash) {
		return nil, fault.New(fault.NotFound, "no blob has the hash %q", hash)
	}
	b, err := os.ReadFile(s.blob(hash))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "no blob has the hash %s", hash)
	case err != nil:
		return nil, classifyFile(err)
	case store.Hash(b) != hash:
		return nil, fault.New(fault.Internal, "blob %s is damaged", hash)
	}
	return b, nil
}

func (s *Store) blob(hash string) string {
	return filepath.Join(s.dir, "blobs", hash)
}

func writeDurable(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
