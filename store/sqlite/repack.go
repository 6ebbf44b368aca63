package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/store"
)

// sweep is how far a purge has come with an old pack.
type sweep struct {
	pack  int64
	at    int64 // the next entry
	moved int64 // bytes that went to a younger pack
}

// purgePacks goes on with the oldest pack that nobody has put to since
// req.BlobsBefore: what a live job names is written again, to the newest pack; the
// rest leaves the index; at its end the file goes. The caller holds s.mu.
func (s *Store) purgePacks(ctx context.Context, epoch uint64, req *store.PurgeRequest, res *store.PurgeResult) error {
	size, err := s.nextSweep(req)
	if err != nil || size == 0 {
		return err
	}
	sw, left := s.sweep, req.Limit-res.Blobs
	var gone []key
	next, err := walkPack(s.dir, sw.pack, sw.at, size,
		func(k *key) bool { return req.Keep != nil && req.Keep(hex.EncodeToString(k[:])) },
		func(k *key, p place, b []byte) error {
			if left--; left < 0 {
				return errStop
			}
			if b == nil {
				gone = append(gone, *k)
				return nil
			}
			if sha256.Sum256(b) != *k {
				return fmt.Errorf("%w, which a live job names", damagedError(hex.EncodeToString(k[:]), packName(s.dir, p.pack)))
			}
			moved, err := s.moveBlob(k, p, b)
			sw.moved += moved
			return err
		})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	whole := next == size || err != nil
	n, err := s.removeIndexed(ctx, epoch, toMicros(req.BlobsBefore), gone, whole)
	if err != nil {
		return err
	}
	res.Blobs += n
	sw.at = next
	s.sweep = sw
	res.More = true
	if !whole {
		return nil
	}
	if err := os.Remove(packName(s.dir, sw.pack)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	res.Bytes += size - sw.moved
	s.sweep = sweep{}
	return nil
}

// nextSweep chooses the pack to go on with and returns its size; 0: there is none.
func (s *Store) nextSweep(req *store.PurgeRequest) (size int64, err error) {
	current, touched := s.blobs.inUse()
	err = s.write.queryRows(func(row []driver.Value) error {
		if !packTable.isIntact(row) {
			s.damages.noteDamage(packTable.damageOf(row))
			return nil
		}
		id := row[0].(int64)
		if _, has := touched[touch{id, 0}]; has || id == current || size != 0 {
			return nil
		}
		if size = row[1].(int64); s.sweep.pack != id {
			s.sweep = sweep{pack: id}
		}
		return nil
	}, packTable.selectRows()+" WHERE put < ? ORDER BY id", toMicros(req.BlobsBefore))
	return size, err
}

// moveBlob puts a blob of an old pack anew, unless the index names another copy.
func (s *Store) moveBlob(k *key, p place, b []byte) (int64, error) {
	here := false
	err := s.write.queryRows(func(row []driver.Value) error {
		here = blobTable.isIntact(row) && scanPlace(row[1:]) == p
		return nil
	}, blobTable.selectRows()+" WHERE hash = ?", k[:])
	if err != nil || !here {
		return 0, err
	}
	return p.size, s.blobs.renewBlob(k, b)
}

// removeIndexed commits what was moved, takes blobs of a pack out of the index, and, if
// the pack was walked to its end, the pack as well.
func (s *Store) removeIndexed(ctx context.Context, epoch uint64, at int64, gone []key, whole bool) (n int, err error) {
	id := s.sweep.pack
	b, err := s.blobs.beginBatch(at)
	if err != nil {
		return 0, err
	}
	err = s.withWriter(ctx, epoch, func(c *conn) error {
		for _, k := range gone {
			d, err := c.execRows("DELETE FROM blob WHERE hash = ? AND pack = ?", k[:], id)
			if err != nil {
				return err
			}
			n += d
		}
		if whole {
			if _, err := c.execRows("DELETE FROM pack WHERE id = ?", id); err != nil {
				return err
			}
		}
		if err := b.commitRows(c); err != nil {
			return err
		}
		return b.waitSynced()
	})
	s.blobs.finishPurge(b, err == nil)
	if err != nil {
		return 0, err
	}
	s.log.noteCommitted((n + len(b.blobs)) * pageSize)
	s.blobs.forgetPurged(id, gone)
	return n, nil
}

// purgeFiles removes blobs of schema 1 by the time of their files, and packs that
// the index does not know, which a crash has left.
func (s *Store) purgeFiles(req *store.PurgeRequest, res *store.PurgeResult) error {
	if err := s.purgeStrays(); err != nil {
		return classifyFile(err)
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, "blobs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return classifyFile(err)
	}
	kept := false
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // gone in the meantime
		}
		if !info.ModTime().Before(req.BlobsBefore) || req.Keep != nil && req.Keep(e.Name()) {
			kept = true
			continue
		}
		if res.Blobs >= req.Limit {
			res.More = true
			return nil
		}
		if err := os.Remove(filepath.Join(s.dir, "blobs", e.Name())); err != nil {
			return classifyFile(err)
		}
		res.Blobs++
		res.Bytes += info.Size()
	}
	if !kept {
		return classifyFile(os.Remove(filepath.Join(s.dir, "blobs")))
	}
	return nil
}

// purgeStrays removes the pack files that are older than every pack of the index
// and not in it.
func (s *Store) purgeStrays() error {
	ids, err := packIDs(s.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	known, oldest := map[int64]bool{}, int64(0)
	err = s.write.queryRows(func(row []driver.Value) error {
		if known[row[0].(int64)] = true; oldest == 0 {
			oldest = row[0].(int64)
		}
		return nil
	}, "SELECT id FROM pack ORDER BY id")
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !known[id] && id < oldest {
			if err := os.Remove(packName(s.dir, id)); err != nil {
				return err
			}
		}
	}
	return nil
}
