// Package sqlite keeps the journal, the projection and few blobs in one SQLite file
// (write-ahead log, full synchronisation), and many blobs in pack files beside it.
//
// One connection writes, in immediate transactions, so that SQLITE_BUSY cannot
// come from ourselves; a few others read. Answers are read in pages and handed out
// when no lock and no snapshot is held, so a slow reader stops neither writers nor
// the checkpoint of the log. Two processes may open one file: the epoch decides
// which of them may write. Lock keeps a second control plane out altogether.
//
// docs/explanation/state.md says what lies in the directory and what is durable when.
package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

const (
	readers  = 4    // connections that read
	pageSize = 4096 // of a new database
)

// Store is a store.Store in a directory.
type Store struct {
	dir   string
	read  chan *conn // idle connections, readers of them
	blobs *blobs

	damages damages
	closed  atomic.Bool

	mu    sync.Mutex // guards what follows
	write *conn
	log   *checkpointer
	mark  *marker
	// led is the epoch whose newest record is last; of any other epoch it is read
	// anew.
	led, last uint64
	sweep     sweep
	backups   int   // that are being made
	broken    error // why nothing may be written any more
	acked     acked // by the transaction that is being made, or was made last
	unmarked  bool  // that transaction is committed, and its mark is not written
}

var _ store.Store = (*Store)(nil)

// Open opens or makes the store in a directory, which it creates with mode 0700.
func Open(dir string) (*Store, error) {
	if err := makeDir(dir); err != nil {
		return nil, classifyError(fmt.Errorf("state directory: %w", err))
	}
	file := filepath.Join(dir, "journal.db")
	acknowledged, spoilt, err := checkMark(dir)
	if err != nil {
		return nil, classifyError(err)
	}
	if err := makePrivate(file); err != nil {
		return nil, classifyError(fmt.Errorf("state directory: %w", err))
	}
	s := &Store{dir: dir, read: make(chan *conn, readers), blobs: newBlobs(dir)}
	s.log = newCheckpointer(s)
	if spoilt {
		s.damages.noteDamage(store.Damage{Why: markName(dir) + ": one of its two places is damaged; the other one is used"})
	}
	if s.write, err = openConn(file, url.Values{"_pragma": pragmas}); err != nil {
		return nil, err
	}
	for _, step := range []func() error{s.migrateSchema, s.checkHead, func() error { return s.blobs.resumePack(s.write) }} {
		if err = classifyError(step()); err != nil {
			return nil, errors.Join(err, s.write.close())
		}
	}
	if s.mark, err = openMarker(dir, acknowledged); err != nil {
		return nil, errors.Join(classifyFile(err), s.write.close())
	}
	for range readers {
		s.read <- nil // dialled when it is first wanted
	}
	return s, nil
}

// checkHead checks the rows without which nothing can be read or written.
func (s *Store) checkHead() error {
	if err := checkSchema(s.write, s.dir); err != nil {
		return err
	}
	if _, _, err := readLeader(s.write); err != nil {
		return err
	}
	_, err := readProjected(s.write)
	return err
}

// makePrivate sees to it that only the server's user may read the journal; SQLite gives
// its log the same mode. Others may pass through the directory (see docs/explanation/state.md).
func makePrivate(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// makeDir makes a directory and its name durable, if it does not exist.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(filepath.Dir(filepath.Clean(dir)))
}

// withReader runs f with a connection that reads. f must not call back: there are few.
func (s *Store) withReader(ctx context.Context, f func(*conn) error) error {
	var c *conn
	var open bool
	select {
	case <-ctx.Done():
		return unavailableError(ctx)
	case c, open = <-s.read:
	}
	if !open {
		return errClosed()
	}
	defer func() { s.read <- c }()
	if ctx.Err() != nil {
		return unavailableError(ctx)
	}
	if c == nil {
		var err error
		if c, err = openConn(filepath.Join(s.dir, "journal.db"), url.Values{"_pragma": pragmas}); err != nil {
			return err
		}
	}
	return classifyError(f(c))
}

// withWriter runs f in one transaction of the writing connection if epoch leads.
// The caller holds s.mu.
func (s *Store) withWriter(ctx context.Context, epoch uint64, f func(*conn) error) error {
	return s.withTransaction(ctx, func(c *conn) error {
		if err := checkLeads(c, epoch); err != nil {
			return err
		}
		return f(c)
	})
}

// withTransaction runs f in one transaction of the writing connection, whoever leads.
// The caller holds s.mu.
func (s *Store) withTransaction(ctx context.Context, f func(*conn) error) error {
	if err := s.checkUsable(ctx); err != nil {
		return err
	}
	if s.broken != nil {
		return s.broken
	}
	if err := s.writeMark(); err != nil { // of the transaction before
		return err
	}
	s.acked = acked{}
	err := s.write.inTransaction(func() error { return f(s.write) })
	if err != nil {
		s.led = 0
		return classifyError(err)
	}
	s.unmarked = true
	if err := s.writeMark(); err != nil { // and yet it is committed, which Exhausted would deny
		s.led = 0
		return fault.New(fault.Unavailable, "%w", err).Advise("make room on the disk of the state directory, or look after it")
	}
	return nil
}

// writeMark writes the mark of the last transaction, unless that is done. Until it succeeds
// nothing more is committed: the next process could not tell what has to be there. The caller
// holds s.mu.
func (s *Store) writeMark() error {
	if !s.unmarked {
		return nil
	}
	if err := s.mark.noteCommit(s.acked); err != nil {
		return classifyFile(fmt.Errorf("%s cannot be written: %w", markName(s.dir), err))
	}
	s.unmarked = false
	return nil
}

func (s *Store) checkUsable(ctx context.Context) error {
	switch {
	case s.closed.Load():
		return errClosed()
	case ctx.Err() != nil:
		return unavailableError(ctx)
	}
	return nil
}

func errClosed() error { return fault.New(fault.Unavailable, "the store is closed") }

func unavailableError(ctx context.Context) error {
	return fault.New(fault.Unavailable, "store: %w", context.Cause(ctx))
}

func checkLeads(c *conn, epoch uint64) error {
	now, who, err := readLeader(c)
	if err == nil && now != epoch {
		err = fault.New(fault.Conflict, "epoch %d no longer leads, epoch %d (%s) does", epoch, now, who)
	}
	return err
}

// readLeader returns the newest epoch and who has it.
func readLeader(c *conn) (epoch uint64, who string, err error) {
	found := false
	err = c.queryRows(func(row []driver.Value) error {
		if found = leaderTable.isIntact(row); found {
			epoch, who = uint64(row[1].(int64)), row[2].(string)
		}
		return nil
	}, leaderTable.selectRows())
	if err == nil && !found {
		err = damagedTable(leaderTable)
	}
	return epoch, who, err
}

// damagedTable is the error for a row that everything needs.
func damagedTable(t *table) error {
	return fault.New(fault.Internal, "the table %s of journal.db is %w", t.name, store.ErrDamaged).
		Advise("keep the directory, and put a backup in its place; docs/explanation/state.md says how")
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock() // who writes now is the last one
	before := s.closed.Swap(true)
	s.mu.Unlock()
	if before {
		return nil
	}
	s.log.stopAndWait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for range readers {
		if c := <-s.read; c != nil {
			errs = append(errs, c.close())
		}
	}
	close(s.read)
	return errors.Join(append(errs, s.blobs.close(), s.write.close(), s.mark.close())...)
}

// toMicros maps the zero time to 0, which no record carries.
func toMicros(t time.Time) int64 {
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
