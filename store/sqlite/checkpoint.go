package sqlite

import (
	"database/sql/driver"
	"net/url"
	"path/filepath"
	"sync"
)

const (
	walSoft = 4 << 20  // guessed bytes of the log after which a checkpoint begins
	walHard = 32 << 20 // bytes of the log after which writers wait for one
)

// checkpointer moves the write-ahead log into the database, off the path of a
// commit: its goroutine begins with the first wake and ends with stop.
type checkpointer struct {
	store *Store
	wake  chan struct{}
	stop  chan struct{}
	start sync.Once
	done  sync.WaitGroup
	grown int // guessed bytes since the last wake; guarded by store.mu

	soft, hard int
}

func newCheckpointer(s *Store) *checkpointer {
	return &checkpointer{store: s, wake: make(chan struct{}, 1), stop: make(chan struct{}), soft: walSoft, hard: walHard}
}

// noteCommitted says that about so many bytes were committed; the caller holds store.mu.
func (p *checkpointer) noteCommitted(bytes int) {
	if p.grown += bytes; p.grown < p.soft {
		return
	}
	p.grown = 0
	p.start.Do(func() { p.done.Go(p.run) })
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *checkpointer) run() {
	var c *conn
	for {
		select {
		case <-p.stop:
			if c != nil {
				_ = c.close() // it has written nothing of its own
			}
			return
		case <-p.wake:
		}
		if c == nil {
			c, _ = openConn(filepath.Join(p.store.dir, "journal.db"), url.Values{"_pragma": pragmas})
		}
		if c == nil {
			continue // out of files, say: the next wake tries again
		}
		if size, err := checkpointWAL(c); err == nil && size > p.hard {
			p.store.mu.Lock()
			_, _ = checkpointWAL(c)
			p.store.mu.Unlock()
		}
	}
}

// checkpointWAL copies what no reader stands in the way of and returns how many bytes
// the log had when it began. Its failure loses nothing: the log has it all, and the
// next one tries again. A writer begins the log anew when all of it was copied; with
// writers at work there is always more, until p.hard stops them for a moment.
func checkpointWAL(c *conn) (size int, err error) {
	err = c.queryRows(func(row []driver.Value) error {
		size = int(row[1].(int64)) * pageSize
		return nil
	}, "PRAGMA wal_checkpoint(PASSIVE)")
	return size, err
}

// stopAndWait stops the goroutine.
func (p *checkpointer) stopAndWait() {
	close(p.stop)
	p.done.Wait()
}
