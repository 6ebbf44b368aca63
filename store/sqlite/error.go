package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// classifyError gives an error of SQLite or of the file system its fault.Kind.
func classifyError(err error) error {
	var f *fault.Error
	if err == nil || errors.As(err, &f) {
		return err
	}
	var se *sqlite.Error
	if errors.As(err, &se) {
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM:
			return fault.New(fault.Exhausted, "the journal cannot be written: %w", err).Advise("make room on the disk of the state directory")
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR:
			return fault.New(fault.Unavailable, "the journal: %w", err)
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH:
			return fault.New(fault.Permission, "the journal: %w", err).Advise("give a --state-dir that you may write to")
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return fault.New(fault.Internal, "the journal is damaged: %w", err).Advise("keep the file, and start with another --state-dir or with a backup")
		}
	}
	return classifyFile(err)
}

// classifyFile gives an error of the file system its fault.Kind.
func classifyFile(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fault.New(fault.Exhausted, "%w", err).Advise("make room on the disk of the state directory")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault.New(fault.Permission, "%w", err).Advise("give a --state-dir that you may write to")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Unavailable, "%w", err).Advise("ask again: the question was given up before the answer was there")
	}
	return err
}
