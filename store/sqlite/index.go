package sqlite

import (
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
	"maps"
)

const putIndex = "INSERT OR REPLACE INTO blob VALUES (?,?,?,?,?)"

// batch are the fresh blobs that one commit puts into the index. Its life is
// begin, commit and wait inside of the transaction, done.
type batch struct {
	at      int64 // the age that the blobs get, in microseconds
	blobs   []*freshBlob
	touched map[touch]struct{}
	pack    *pack      // nil: the blobs go to the table small
	ids     []int64    // there
	synced  chan error // nil: waited for
	err     error      // of the sync
}

// resumePack opens the newest pack to append to, if it has room and no other process
// has it.
func (bl *blobs) resumePack(c *conn) error {
	err := c.queryRows(func(row []driver.Value) error {
		if journalTable.isIntact(row) {
			bl.newest = row[2].(int64)
		}
		return nil
	}, journalTable.selectRows()+" ORDER BY seq DESC LIMIT 1")
	if err != nil {
		return err
	}
	id, has, err := c.queryNumber("SELECT MAX(id) FROM pack")
	if err != nil || !has {
		return err
	}
	p := openPack(bl.dir, id)
	if p == nil {
		return nil
	}
	// Only now: until it had the lock another process could append.
	err = c.queryRows(func(row []driver.Value) error {
		if packTable.isIntact(row) { // else its end is 0, and a new pack takes its place
			p.end, p.born = row[1].(int64), row[3].(int64)
		}
		return nil
	}, packTable.selectRows()+" WHERE id = ?", id)
	info, statErr := p.f.Stat()
	if err != nil || statErr != nil || info.Size() < p.end || p.end < int64(len(packHead)) || p.end >= packSize {
		_ = p.f.Close() // damaged or full: a new one takes its place
		return err
	}
	bl.pack = p
	return nil
}

// beginBatch writes what waits, starts to make it durable, and returns what is to be
// committed with it.
func (bl *blobs) beginBatch(at int64) (*batch, error) {
	bl.mu.Lock()
	defer bl.mu.Unlock()
	if bl.broken != nil {
		return nil, bl.broken
	}
	bl.newest = max(bl.newest, at)
	b := &batch{at: bl.newest, touched: bl.touched}
	switch {
	case len(bl.waiting) == 0:
	case bl.written == 0 && bl.unsaved <= bl.small:
		b.blobs = bl.waiting[:len(bl.waiting):len(bl.waiting)]
		bl.written, bl.unsaved = len(bl.waiting), 0
	default:
		if bl.written == 0 {
			bl.rotatePack()
		}
		if err := bl.flushPack(); err != nil {
			return nil, err
		}
		b.blobs, b.pack, b.synced = bl.waiting[:len(bl.waiting):len(bl.waiting)], bl.pack, make(chan error, 1)
		go func() { b.synced <- b.pack.syncPack(bl.dir) }()
	}
	bl.touched = map[touch]struct{}{}
	return b, nil
}

// rotatePack leaves the pack if it is large or old; all of it is durable then.
func (bl *blobs) rotatePack() {
	if p := bl.pack; p != nil && (p.end >= packSize || p.born != 0 && bl.newest-p.born >= packAge.Microseconds()) {
		_ = p.f.Close()
		bl.pack = nil
	}
}

// commitRows writes the rows of the batch.
func (b *batch) commitRows(c *conn) error {
	for t := range b.touched {
		if err := renewRow(c, t, b.at); err != nil {
			return err
		}
	}
	if len(b.blobs) == 0 {
		return nil
	}
	if b.pack == nil {
		return b.commitSmall(c)
	}
	for _, f := range b.blobs {
		if _, err := c.execRows(putIndex, blobTable.withSum(f.key[:], f.place.pack, f.place.at, f.place.size)...); err != nil {
			return err
		}
	}
	end := b.blobs[len(b.blobs)-1].place
	put, born := b.at, b.at
	err := c.queryRows(func(row []driver.Value) error {
		if packTable.isIntact(row) {
			put, born = max(put, row[2].(int64)), row[3].(int64)
		}
		return nil
	}, packTable.selectRows()+" WHERE id = ?", b.pack.id)
	if err != nil {
		return err
	}
	_, err = c.execRows("INSERT OR REPLACE INTO pack VALUES (?,?,?,?,?)", packTable.withSum(b.pack.id, end.at+end.size, put, born)...)
	return err
}

// renewRow notes when what holds a blob was put to last. A damaged row stays as it is.
func renewRow(c *conn, t touch, at int64) error {
	in, id := packTable, t.pack
	if t.pack == 0 {
		in, id = smallTable, t.id
	}
	put := 1 // the column
	if in == packTable {
		put = 2
	}
	var sum driver.Value
	err := c.queryRows(func(row []driver.Value) error {
		if in.isIntact(row) && row[put].(int64) < at {
			row[put] = at
			sum = rowSum(in.kind, row[:len(row)-1])
		}
		return nil
	}, in.selectRows()+" WHERE id = ?", id)
	if err != nil || sum == nil {
		return err
	}
	_, err = c.execRows("UPDATE "+in.name+" SET put = ?, sum = ? WHERE id = ?", at, sum, id)
	return err
}

// waitSynced returns when the pack is durable or cannot be made so.
func (b *batch) waitSynced() error {
	if b.synced != nil {
		if err := <-b.synced; err != nil {
			b.err = fmt.Errorf("make pack %d durable: %w", b.pack.id, err)
		}
		b.synced = nil
	}
	return b.err
}

// finishBatch takes the batch out of what is fresh; one that was not committed stays for
// the next Append.
func (bl *blobs) finishBatch(b *batch, committed bool) {
	err := b.waitSynced()
	bl.mu.Lock()
	defer bl.mu.Unlock()
	n := len(b.blobs)
	if !committed {
		maps.Copy(bl.touched, b.touched)
		switch {
		case err != nil:
			bl.abandonPack()
		case b.pack == nil: // not in the pack, so behind those that are
			bl.waiting = append(bl.waiting[n:len(bl.waiting):len(bl.waiting)], b.blobs...)
			bl.written -= n
			for _, f := range b.blobs {
				bl.unsaved += len(f.bytes) + entryHead
			}
		}
		return
	}
	born := b.at
	if b.pack != nil {
		if b.pack.born == 0 {
			b.pack.born = max(b.at, 1)
		}
		born = b.pack.born
	}
	for i, f := range b.blobs {
		if b.pack == nil {
			f.place.pack, f.place.at = 0, b.ids[i]
		}
		delete(bl.fresh, f.key)
		bl.rememberBlob(&f.key, memory{f.place, born})
	}
	bl.waiting = append([]*freshBlob(nil), bl.waiting[n:]...)
	bl.written -= n
}

// finishPurge is done for a batch that a purge has committed. What was put meanwhile is
// durable, but it is the next Append that says how old it is.
func (bl *blobs) finishPurge(b *batch, committed bool) {
	bl.finishBatch(b, committed)
	if !committed {
		return
	}
	bl.mu.Lock()
	defer bl.mu.Unlock()
	maps.Copy(bl.touched, b.touched)
	for _, f := range b.blobs {
		bl.touched[f.place.touchOf()] = struct{}{}
	}
}

// abandonPack leaves a pack that could not be made durable: nobody knows what of it is
// on the disk, and a second sync would not say so. What waits goes to another one.
func (bl *blobs) abandonPack() {
	bl.unsaved = 0
	for _, f := range bl.waiting {
		if f.bytes == nil {
			b, err := readPack(bl.dir, f.place)
			if err != nil || sha256.Sum256(b) != f.key {
				bl.broken = classifyFile(fmt.Errorf("blob %x was not made durable and cannot be read again: %w", f.key, err))
			}
			f.bytes = withoutNil(b)
		}
		bl.unsaved += len(f.bytes) + entryHead
	}
	_ = bl.pack.f.Close()
	bl.pack, bl.written = nil, 0
}
