package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// Verify reads a backup, or a state directory that no server uses, from beginning
// to end.
func Verify(ctx context.Context, dir string) (sqlite.Contents, error) { return sqlite.Verify(ctx, dir) }

// Restore makes a state directory of a backup, which is verified first. The
// directory must not hold a state already, and no server may use it.
func Restore(ctx context.Context, backup string, state config.State) (sqlite.Contents, error) {
	dir := state.Dir
	got, err := sqlite.Verify(ctx, backup)
	if err != nil {
		return got, err
	}
	if err := MakeState(state); err != nil {
		return got, err
	}
	unlock, err := sqlite.Lock(dir, "cox restore")
	if err != nil {
		return got, err
	}
	defer unlock()
	if _, err := os.Lstat(filepath.Join(dir, "journal.db")); !errors.Is(err, fs.ErrNotExist) {
		return got, fault.New(fault.Conflict, "%s holds a state already", dir).
			Advise("move it away, or give another --state-dir")
	}
	// The journal comes last: a directory without it is no state.
	err = filepath.WalkDir(backup, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(backup, path)
		switch {
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case d.IsDir():
			return makeDurable(filepath.Join(dir, rel))
		case !d.Type().IsRegular() || rel == "journal.db" || rel == "lock":
			return nil
		}
		return copyDurable(path, filepath.Join(dir, rel))
	})
	if err != nil {
		return got, fmt.Errorf("restore: %w", err)
	}
	if err := copyDurable(filepath.Join(backup, "journal.db"), filepath.Join(dir, "journal.db")); err != nil {
		return got, fmt.Errorf("restore: %w", err)
	}
	return got, nil
}

// copyDurable copies a file; it has its name only when it is whole and on disk.
func copyDurable(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if err := os.Rename(to+".new", to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

// makeDurable makes a directory whose parent is there.
func makeDurable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(dir)); !errors.Is(err, fs.ErrPermission) { // the folder above all may be another's, to pass through
		return err
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
