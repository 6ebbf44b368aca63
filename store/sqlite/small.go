package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/store"
)

// commitSmall writes the bytes of the batch and the rows that name them.
func (b *batch) commitSmall(c *conn) error {
	for _, f := range b.blobs {
		last, _, err := c.queryNumber("SELECT MAX(id) FROM small")
		if err != nil {
			return err
		}
		id := last + 1
		row := smallTable.withSum(id, b.at, f.key[:])
		if _, err := c.execRows("INSERT INTO small VALUES (?,?,?,?,?)", id, b.at, f.key[:], f.bytes, row[3]); err != nil {
			return err
		}
		b.ids = append(b.ids, id)
		if _, err := c.execRows(putIndex, blobTable.withSum(f.key[:], int64(0), id, f.place.size)...); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) smallBlob(ctx context.Context, k *key, id int64) (b []byte, err error) {
	err = s.withReader(ctx, func(c *conn) error {
		return c.queryRows(func(row []driver.Value) error {
			b, _ = row[0].([]byte)
			b = withoutNil(b)
			return nil
		}, "SELECT data FROM small WHERE id = ?", id)
	})
	if err == nil && (b == nil || sha256.Sum256(b) != *k) {
		err = damagedError(hex.EncodeToString(k[:]), filepath.Join(s.dir, "journal.db"))
	}
	return b, err
}

// old is a row of the table small that a purge looks at.
type old struct {
	id   int64
	key  key
	data []byte // nil: not needed any more
}

// purgeSmall removes blobs from the table small, and writes those again that a live
// job names. The caller holds s.mu.
func (s *Store) purgeSmall(ctx context.Context, epoch uint64, req *store.PurgeRequest, res *store.PurgeResult) error {
	limit := req.Limit - res.Blobs
	rows, err := s.oldSmall(toMicros(req.BlobsBefore), limit)
	if err != nil || len(rows) == 0 {
		return err
	}
	res.More = res.More || len(rows) == limit
	for i := range rows {
		o := &rows[i]
		if req.Keep == nil || !req.Keep(hex.EncodeToString(o.key[:])) {
			continue
		}
		err := s.write.queryRows(func(row []driver.Value) error {
			o.data, _ = row[0].([]byte)
			o.data = withoutNil(o.data)
			return nil
		}, "SELECT data FROM small JOIN blob ON pack = 0 AND at = id WHERE id = ? AND blob.hash = small.hash", o.id)
		if err != nil {
			return err
		}
		if o.data != nil {
			if err := s.blobs.renewBlob(&o.key, o.data); err != nil {
				return err
			}
		}
	}
	return s.dropSmall(ctx, epoch, toMicros(req.BlobsBefore), rows, res)
}

// oldSmall lists the oldest rows of the table small that were put before a moment, limit of them at
// most. Rows that are damaged or in use stay where they are, however many come first, and others
// after them are listed.
func (s *Store) oldSmall(before int64, limit int) (rows []old, err error) {
	_, touched := s.blobs.inUse()
	for skip, last := 0, limit; len(rows) < limit && last == limit && err == nil; skip += last {
		last = 0
		err = s.write.queryRows(func(row []driver.Value) error {
			last++
			if !smallTable.isIntact(row) {
				s.damages.noteDamage(smallTable.damageOf(row))
				return nil
			}
			o := old{id: row[0].(int64), key: key(row[2].([]byte))}
			if _, has := touched[touch{0, o.id}]; !has && len(rows) < limit {
				rows = append(rows, o)
			}
			return nil
		}, smallTable.selectRows()+" WHERE put < ? ORDER BY put LIMIT ? OFFSET ?", before, int64(limit), int64(skip))
	}
	return rows, err
}

// dropSmall commits what is written again and removes the rows. It is at least as
// late as at: what is written again is not old.
func (s *Store) dropSmall(ctx context.Context, epoch uint64, at int64, rows []old, res *store.PurgeResult) error {
	b, err := s.blobs.beginBatch(at)
	if err != nil {
		return err
	}
	blobs, bytes := 0, int64(0)
	var gone []key
	err = s.withWriter(ctx, epoch, func(c *conn) error {
		for _, o := range rows {
			size, _, err := c.queryNumber("SELECT length(data) FROM small WHERE id = ?", o.id)
			if err != nil {
				return err
			}
			if _, err := c.execRows("DELETE FROM small WHERE id = ?", o.id); err != nil {
				return err
			}
			n, err := c.execRows("DELETE FROM blob WHERE hash = ? AND pack = 0 AND at = ?", o.key[:], o.id)
			if err != nil {
				return err
			}
			if o.data == nil {
				blobs, bytes, gone = blobs+n, bytes+size, append(gone, o.key)
			}
		}
		if err := b.commitRows(c); err != nil {
			return err
		}
		return b.waitSynced()
	})
	s.blobs.finishPurge(b, err == nil)
	if err != nil {
		return err
	}
	s.blobs.forgetPurged(0, gone)
	s.log.noteCommitted((len(rows) + len(b.blobs)) * 2 * pageSize)
	res.Blobs += blobs
	res.Bytes += bytes
	return nil
}

func verifySmall(ctx context.Context, c *conn, dir string, got *Contents) error {
	return c.queryRows(func(row []driver.Value) error {
		data, _ := row[2].([]byte)
		if sum := sha256.Sum256(data); string(sum[:]) != string(row[1].([]byte)) {
			return brokenError(dir, "blob %x in row %d of the table small", row[1], row[0])
		}
		if row[3] != nil {
			got.Blobs++
			got.Bytes += int64(len(data))
		}
		return ctx.Err()
	}, "SELECT id, small.hash, data, at FROM small LEFT JOIN blob ON blob.hash = small.hash AND pack = 0 AND at = id ORDER BY id")
}
