package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// backupPages are copied between two looks at the context.
const backupPages = 4096

var _ store.Backuper = (*Store)(nil)

// Backup implements store.Backuper: the database as of one moment, the packs as far as it
// names them, and the archives that came with jobs. Writers go on meanwhile; the log is not shortened and
// no pack is purged until it is done. Until it is complete the copy has another
// name, beside dir; one that fails is removed.
func (s *Store) Backup(ctx context.Context, dir string) (err error) {
	if err := checkVacant(dir); err != nil {
		return err
	}
	if err := s.holdPurges(ctx); err != nil {
		return err
	}
	defer s.releasePurges()
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return classifyFile(err)
	}
	part, err := os.MkdirTemp(parent, filepath.Base(dir)+".partial-*")
	if err != nil {
		return classifyFile(fmt.Errorf("backup: %w", err))
	}
	defer func() {
		if err != nil {
			err = classifyError(errors.Join(err, os.RemoveAll(part)))
		}
	}()
	if err := makePrivate(filepath.Join(part, "journal.db")); err != nil { // SQLite would give it another mode
		return classifyFile(err)
	}
	if err := s.copyTo(ctx, part); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(part, dir); err != nil {
		return err
	}
	return syncDir(parent)
}

// checkVacant says whether a backup may go to dir: it does not exist or is empty.
func checkVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.New(fault.Invalid, "backup: %w", err).Advise("name a directory that does not exist yet")
	case len(entries) > 0:
		return fault.New(fault.Conflict, "backup: %s is not empty", dir).Advise("name a directory that does not exist yet")
	}
	return nil
}

// holdPurges keeps packs from being purged until unback.
func (s *Store) holdPurges(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkUsable(ctx); err != nil {
		return err
	}
	s.backups++
	return nil
}

func (s *Store) releasePurges() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backups--
}

// copyTo fills an empty directory and makes it durable.
func (s *Store) copyTo(ctx context.Context, dir string) error {
	if err := s.copyUploads(ctx, dir); err != nil {
		return err
	}
	if err := s.copyDatabase(ctx, filepath.Join(dir, "journal.db")); err != nil {
		return err
	}
	c, err := dialStill(dir)
	if err != nil {
		return err
	}
	defer c.close()
	if err := writeMark(c, dir); err != nil {
		return err
	}
	sizes := map[int64]int64{}
	if err := c.queryRows(func(row []driver.Value) error {
		sizes[row[0].(int64)] = row[1].(int64)
		return nil
	}, "SELECT id, size FROM pack"); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "packs"), 0o700); err != nil {
		return err
	}
	for id, size := range sizes {
		if err := copyFile(ctx, packName(dir, id), packName(s.dir, id), size); err != nil {
			return err
		}
	}
	if err := syncDir(filepath.Join(dir, "packs")); err != nil {
		return err
	}
	if err := s.copyOld(ctx, dir); err != nil {
		return err
	}
	if err := s.copyUploads(ctx, dir); err != nil {
		return err
	}
	return syncDir(dir)
}

// uploads is where a state directory has the archives that came with jobs (package upload), as
// UID/SHA-256.
const uploads = "uploads"

// copyUploads copies those archives that came with jobs and are not in the copy yet. It is done before
// the database is copied, since a job that waits in that copy may end, and its archive go, while the rest
// is; and after it, for those that came meanwhile.
func (s *Store) copyUploads(ctx context.Context, dir string) error {
	made := map[string]bool{} // directories
	err := eachUpload(s.dir, func(user, name string) error {
		to := filepath.Join(dir, uploads, user)
		if !made[to] {
			if err := os.MkdirAll(to, 0o700); err != nil {
				return err
			}
			made[to], made[filepath.Dir(to)] = true, true
		}
		if _, err := os.Lstat(filepath.Join(to, name)); err == nil {
			return nil
		}
		err := copyFile(ctx, filepath.Join(to, name), filepath.Join(s.dir, uploads, user, name), -1)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	for d := range made {
		err = errors.Join(err, syncDir(d))
	}
	return err
}

// eachUpload calls f for each archive in a state directory, by the folder of its user and its name.
// What came in part is none.
func eachUpload(dir string, f func(user, name string) error) error {
	root := filepath.Join(dir, uploads)
	if real, err := filepath.EvalSymlinks(root); err == nil { // it may be on a larger disk
		root = real
	}
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !d.Type().IsRegular():
			return err
		}
		if raw, bad := hex.DecodeString(d.Name()); bad != nil || len(raw) != sha256.Size {
			return nil
		}
		return f(filepath.Base(filepath.Dir(file)), d.Name())
	})
}

// copyDatabase copies the pages of the database as of the begin of a transaction.
// The copy is durable when SQLite has finished it.
func (s *Store) copyDatabase(ctx context.Context, to string) (err error) {
	c, err := openConn(filepath.Join(s.dir, "journal.db"), url.Values{"_pragma": pragmas})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if _, err := c.execRows("BEGIN"); err != nil {
		return err
	}
	if _, _, err := c.queryNumber("SELECT epoch FROM leader"); err != nil { // now it has a snapshot
		return err
	}
	target := url.URL{Scheme: "file", OmitHost: true, Path: to, RawQuery: url.Values{"_pragma": {"synchronous(FULL)"}}.Encode()}
	b, err := c.c.(interface {
		NewBackup(uri string) (*sqlite.Backup, error)
	}).NewBackup(target.String())
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if more, err = b.Step(backupPages); ctx.Err() != nil {
			err = unavailableError(ctx)
		}
	}
	if err := errors.Join(err, b.Finish()); err != nil {
		return err
	}
	_, err = c.execRows("ROLLBACK")
	return err
}

// copyOld copies the blobs of schema 1.
func (s *Store) copyOld(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, "blobs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "blobs"), 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyFile(ctx, filepath.Join(dir, "blobs", e.Name()), filepath.Join(s.dir, "blobs", e.Name()), -1); err != nil {
			return err
		}
	}
	return syncDir(filepath.Join(dir, "blobs"))
}

// copyFile copies the first size bytes of a file, all of it if size is negative,
// and makes the copy durable.
func copyFile(ctx context.Context, to, from string, size int64) (err error) {
	if ctx.Err() != nil {
		return unavailableError(ctx)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if size < 0 {
		_, err = io.Copy(out, in)
	} else if _, err = io.CopyN(out, in, size); errors.Is(err, io.EOF) {
		err = fault.New(fault.Internal, "%s is shorter than the %d bytes that the index names", from, size).Advise("put the file back from a backup")
	}
	if err != nil {
		return err
	}
	return out.Sync()
}
