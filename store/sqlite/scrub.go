package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

var _ store.Checker = (*Store)(nil)

// Scrub implements store.Checker: the pages of the database, then every row, then every blob.
// Indexes that do not agree with their tables are made again.
func (s *Store) Scrub(ctx context.Context, pace func(bytes int) error) error {
	if err := s.checkUsable(ctx); err != nil {
		return err
	}
	if err := s.scrubPages(ctx); err != nil {
		return err
	}
	for _, t := range tables {
		if err := s.scrubRows(ctx, t, pace); err != nil {
			return err
		}
	}
	return s.scrubPacks(ctx, pace)
}

// findingsAtMost bounds how many faults of pages one scrub reports.
const findingsAtMost = 100

// ofIndex matches the lines of an integrity check about an index that disagrees with its table.
var ofIndex = regexp.MustCompile(`^(?:row \d+ missing from index|wrong # of entries in index|row \d+ values differ from index|rowid not at end-of-record for row \d+ of index) (\w+)$`)

// scrubPages has SQLite check its pages. That is one statement, which cannot be slowed down, so it
// runs on a thread of its own with the lowest priority.
func (s *Store) scrubPages(ctx context.Context) error {
	var found []string
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		lowerPriority()
		c, err := openConn(filepath.Join(s.dir, "journal.db"), url.Values{"_pragma": pragmas})
		if err == nil {
			err = errors.Join(c.queryRows(func(row []driver.Value) error {
				if text := fmt.Sprint(row[0]); text != "ok" {
					found = append(found, text)
				}
				return nil
			}, fmt.Sprintf("PRAGMA integrity_check(%d)", findingsAtMost)), c.close())
		}
		done <- err
	}()
	err := <-done
	if isCorrupt(err) {
		found, err = append(found, err.Error()), nil
	}
	if err != nil {
		return classifyError(err)
	}
	var again []string
	for _, text := range found {
		if m := ofIndex.FindStringSubmatch(text); m != nil {
			if !slices.Contains(again, m[1]) {
				again = append(again, m[1])
			}
			continue
		}
		s.damages.noteDamage(store.Damage{Why: "journal.db: " + text})
	}
	for _, index := range again {
		why := "the index " + index + " of journal.db did not agree with its table, and was made again"
		if err := s.remakeIndex(ctx, index); err != nil {
			why = fmt.Sprintf("the index %s of journal.db does not agree with its table, and cannot be made again: %v", index, err)
		}
		s.damages.noteDamage(store.Damage{Why: why})
	}
	return nil
}

func (s *Store) remakeIndex(ctx context.Context, index string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.noteCommitted(walSoft)
	return s.withTransaction(ctx, func(c *conn) error { return c.runScript("REINDEX " + index) })
}

// scrubRows checks the checksums of a table's rows, page by page.
func (s *Store) scrubRows(ctx context.Context, t *table, pace func(int) error) error {
	query, args := t.selectRows()+" NOT INDEXED ORDER BY "+t.key+" LIMIT ?", []driver.Value{int64(page)}
	after := driver.Value(int64(0))
	next := int64(0) // of the journal, the record that has to follow; 0: any
	for {
		n, bytes, last := 0, 0, driver.Value(nil)
		gap := uint64(0)
		err := s.withReader(ctx, func(c *conn) error {
			return c.queryRows(func(row []driver.Value) error {
				n++
				last = row[0]
				bytes += sizeOf(row)
				if !t.isIntact(row) {
					s.damages.noteDamage(t.damageOf(row))
				}
				if seq, ok := row[0].(int64); ok && t == journalTable {
					if next != 0 && seq != next {
						gap = uint64(next)
					}
					next = seq + 1
				}
				return nil
			}, query, args...)
		})
		if isCorrupt(err) {
			s.damages.noteDamage(store.Damage{Why: fmt.Sprintf("pages of the table %s are damaged: %v", t.name, err)})
			return nil
		}
		if err == nil && gap != 0 {
			if err = s.missingRecord(ctx, gap-1); errors.Is(err, store.ErrDamaged) || fault.KindOf(err) == fault.NotFound {
				err = nil
			}
		}
		if err == nil && t == smallTable && n > 0 {
			var more int
			more, err = s.scrubSmall(ctx, after, last)
			bytes += more
		}
		if err == nil {
			err = pace(bytes)
		}
		if err != nil || n < page {
			return err
		}
		if len(args) == 2 && !isBehind(last, after) {
			s.damages.noteDamage(store.Damage{Why: "pages of the table " + t.name + " are damaged: rows are not in order"})
			return nil
		}
		query = t.selectRows() + " NOT INDEXED WHERE " + t.key + " > ? ORDER BY " + t.key + " LIMIT ?"
		after, args = last, []driver.Value{last, int64(page)}
	}
}

func sizeOf(row []driver.Value) (n int) {
	for _, v := range row {
		switch v := v.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		}
		n += 8
	}
	return n
}

// scrubSmall checks the blobs in the table small behind one row, up to another.
func (s *Store) scrubSmall(ctx context.Context, after, last driver.Value) (bytes int, err error) {
	err = s.withReader(ctx, func(c *conn) error {
		return c.queryRows(func(row []driver.Value) error {
			data, _ := row[2].([]byte)
			bytes += len(data)
			sum := sha256.Sum256(data)
			if hash, _ := row[1].([]byte); string(hash) != string(sum[:]) {
				s.damages.noteDamage(store.Damage{Table: smallTable.name, Row: fmt.Sprint(row[0]), Why: fmt.Sprintf("the blob %x is damaged", row[1])})
			}
			return nil
		}, "SELECT id, hash, data FROM small NOT INDEXED WHERE id > ? AND id <= ? ORDER BY id", after, last)
	})
	if isCorrupt(err) {
		s.damages.noteDamage(store.Damage{Why: fmt.Sprintf("pages of the table small are damaged: %v", err)})
		err = nil
	}
	return bytes, err
}

// scrubPacks checks every blob of every pack by its hash.
func (s *Store) scrubPacks(ctx context.Context, pace func(int) error) error {
	sizes := map[int64]int64{}
	read := func() error {
		clear(sizes)
		return s.withReader(ctx, func(c *conn) error {
			return c.queryRows(func(row []driver.Value) error {
				if packTable.isIntact(row) {
					sizes[row[0].(int64)] = row[1].(int64)
				}
				return nil
			}, packTable.selectRows()+" NOT INDEXED ORDER BY id")
		})
	}
	if err := read(); err != nil {
		if isCorrupt(err) {
			return nil // scrubRows has told
		}
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(sizes)) {
		size, has := sizes[id]
		if !has {
			continue // purged in the meantime
		}
		var paced error
		_, err := walkPack(s.dir, id, 0, size, func(*key) bool { return true }, func(k *key, at place, b []byte) error {
			if sha256.Sum256(b) != *k {
				s.damages.noteDamage(store.Damage{Table: packTable.name, Row: fmt.Sprint(id), Why: fmt.Sprintf("the blob %x at byte %d is damaged", *k, at.at)})
			}
			paced = pace(len(b))
			return paced
		})
		switch {
		case err == nil:
		case paced != nil:
			return paced
		case errors.Is(err, fs.ErrNotExist):
			if err := read(); err != nil {
				return err
			}
			if _, still := sizes[id]; still {
				s.damages.noteDamage(store.Damage{Table: packTable.name, Row: fmt.Sprint(id), Why: "its file is gone"})
			}
		default:
			s.damages.noteDamage(store.Damage{Table: packTable.name, Row: fmt.Sprint(id), Why: err.Error()})
		}
	}
	return nil
}
