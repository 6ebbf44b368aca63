// Package sqlite keeps the journal in one SQLite file (write-ahead log, full
// synchronisation) and blobs as files beside it.
//
// One connection writes, in immediate transactions, so that SQLITE_BUSY cannot
// come from ourselves; a second pool reads. Two processes may open one file: the
// epoch decides which of them may write.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// schema is applied in order; user_version counts the applied ones.
var schema = []string{`
CREATE TABLE leader (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, who TEXT NOT NULL) STRICT;
INSERT INTO leader VALUES (1, 0, '');
CREATE TABLE journal (
	seq INTEGER PRIMARY KEY,
	leader_epoch INTEGER NOT NULL,
	at INTEGER NOT NULL, -- microseconds since the Unix epoch
	kind TEXT NOT NULL,
	job INTEGER NOT NULL,
	data TEXT NOT NULL
) STRICT;
CREATE TABLE job (
	id INTEGER PRIMARY KEY, name TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL,
	submitted INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL,
	exit INTEGER NOT NULL, detail TEXT NOT NULL
) STRICT;
CREATE TABLE projection (name TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
INSERT INTO projection VALUES ('job', 0);
`}

// Store is a store.Store in a directory.
type Store struct {
	dir   string
	write *sql.DB
	read  *sql.DB
}

var _ store.Store = (*Store)(nil)

// Open opens or makes the store in a directory, which it creates with mode 0700.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "blobs"), 0o700); err != nil {
		return nil, classify(fmt.Errorf("state directory: %w", err))
	}
	file := filepath.Join(dir, "journal.db")
	s := &Store{dir: dir}
	var err error
	if s.write, err = connect(file, 1, "immediate"); err != nil {
		return nil, err
	}
	if err = s.migrate(); err == nil {
		s.read, err = connect(file, 4, "deferred")
	}
	if err != nil {
		return nil, errors.Join(err, s.write.Close())
	}
	return s, nil
}

func connect(file string, conns int, lock string) (*sql.DB, error) {
	q := url.Values{"_txlock": {lock}, "_pragma": {
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)",
	}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, classify(fmt.Errorf("open %s: %w", file, err))
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func (s *Store) migrate() error {
	var have int
	if err := s.write.QueryRow("PRAGMA user_version").Scan(&have); err != nil {
		return classify(fmt.Errorf("read the schema version of %s: %w", s.dir, err))
	}
	if have > len(schema) {
		return fault.New(fault.Unsupported, "%s was written by a newer cox (schema %d, this one knows %d)", s.dir, have, len(schema)).
			Advise("use the newer cox, or another --state-dir")
	}
	for v := have; v < len(schema); v++ {
		err := s.tx(context.Background(), func(tx *sql.Tx) error {
			if _, err := tx.Exec(schema[v]); err != nil {
				return err
			}
			_, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", v+1))
			return err
		})
		if err != nil {
			return fmt.Errorf("schema %d of %s: %w", v+1, s.dir, err)
		}
	}
	return nil
}

// tx runs f in one immediate transaction and commits it; errors are classified.
func (s *Store) tx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return classify(err)
	}
	if err := f(tx); err != nil {
		return classify(errors.Join(err, ignoreDone(tx.Rollback())))
	}
	return classify(tx.Commit())
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// Lead implements store.Store.
func (s *Store) Lead(ctx context.Context, who string) (epoch uint64, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "UPDATE leader SET epoch = epoch + 1, who = ? RETURNING epoch", who).Scan(&epoch)
	})
	return epoch, err
}

func leads(ctx context.Context, tx *sql.Tx, epoch uint64) error {
	var now uint64
	var who string
	if err := tx.QueryRowContext(ctx, "SELECT epoch, who FROM leader").Scan(&now, &who); err != nil {
		return err
	}
	if now != epoch {
		return fault.New(fault.Conflict, "epoch %d no longer leads, epoch %d (%s) does", epoch, now, who)
	}
	return nil
}

// Append implements store.Store.
func (s *Store) Append(ctx context.Context, epoch uint64, recs []store.Record) (last uint64, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		if err := leads(ctx, tx, epoch); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(seq), 0) FROM journal").Scan(&last); err != nil {
			return err
		}
		stmt, err := tx.PrepareContext(ctx, "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?)")
		if err != nil {
			return err
		}
		defer stmt.Close()
		for _, r := range recs {
			last++
			if _, err := stmt.ExecContext(ctx, last, epoch, micros(r.At), r.Kind, r.Job, string(r.Data)); err != nil {
				return err
			}
		}
		return nil
	})
	return last, err
}

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, after uint64, f func(store.Record) error) error {
	rows, err := s.read.QueryContext(ctx, "SELECT seq, leader_epoch, at, kind, job, data FROM journal WHERE seq > ? ORDER BY seq", after)
	if err != nil {
		return classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r store.Record
		var at int64
		var data string
		if err := rows.Scan(&r.Seq, &r.Epoch, &at, &r.Kind, &r.Job, &data); err != nil {
			return classify(err)
		}
		r.At, r.Data = fromMicros(at), []byte(data)
		if err := f(r); err != nil {
			return err
		}
	}
	return classify(rows.Err())
}

// Project implements store.Store.
func (s *Store) Project(ctx context.Context, epoch, upTo uint64, rows []store.JobRow) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if err := leads(ctx, tx, epoch); err != nil {
			return err
		}
		for _, r := range rows {
			detail := string(r.Detail)
			if detail == "" {
				detail = "null"
			}
			_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
				r.ID, r.Name, r.User, r.State, micros(r.Submitted), micros(r.Started), micros(r.Ended), r.Exit, detail)
			if err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "UPDATE projection SET seq = ? WHERE name = 'job'", upTo)
		return err
	})
}

// Projected implements store.Store.
func (s *Store) Projected(ctx context.Context) (seq uint64, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT seq FROM projection WHERE name = 'job'").Scan(&seq)
	return seq, classify(err)
}

// Jobs implements store.Store.
func (s *Store) Jobs(ctx context.Context, below uint64, limit int, f func(store.JobRow) error) error {
	rows, err := s.read.QueryContext(ctx, `SELECT id, name, user, state, submitted, started, ended, exit, detail FROM job
		WHERE ?1 = 0 OR id < ?1 ORDER BY id DESC LIMIT ?2`, below, limit)
	if err != nil {
		return classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r store.JobRow
		var submitted, started, ended int64
		var detail string
		if err := rows.Scan(&r.ID, &r.Name, &r.User, &r.State, &submitted, &started, &ended, &r.Exit, &detail); err != nil {
			return classify(err)
		}
		r.Submitted, r.Started, r.Ended, r.Detail = fromMicros(submitted), fromMicros(started), fromMicros(ended), []byte(detail)
		if err := f(r); err != nil {
			return err
		}
	}
	return classify(rows.Err())
}

// Close implements store.Store.
func (s *Store) Close() error { return errors.Join(s.read.Close(), s.write.Close()) }

// micros maps the zero time to 0, which no record carries.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// classify gives an error of SQLite or of the file system its fault.Kind.
func classify(err error) error {
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
			return fault.New(fault.Internal, "the journal is damaged: %w", err).Advise("keep the file, and start with another --state-dir")
		}
	}
	return classifyFile(err)
}
