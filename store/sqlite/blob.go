package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

const (
	smallSize = 32 << 10 // of bytes that one Append puts into the table small rather than a pack
	packSize  = 64 << 20 // a larger pack is not appended to
	packAge   = 24 * time.Hour
	spillSize = 4 << 20  // of bytes that wait for an Append; more are written at once
	lookSize  = 64 << 10 // blobs from this size on are looked up before they are written again
	knownSize = 8 << 10  // blobs per generation of the memory of what was put lately
	blobLimit = 1 << 30
)

// blobs are the blobs of a store. A blob that was put is fresh until an Append has
// committed its row of the index. What was put before is known for a while, and put
// again it costs nothing; what is no longer known is written a second time, and the
// index then names the new copy. Few bytes lie in the table small: one sync makes
// them durable with the record; many lie in packs. A blob whose pack is older than packAge is written
// anew too, so a pack that nobody has put to for long has nothing that is in use,
// except by jobs as old as that.
type blobs struct {
	dir   string
	small int // smallSize

	mu      sync.Mutex
	fresh   map[key]*freshBlob
	waiting []*freshBlob // fresh, in the order in which they were put
	written int          // of waiting, how many lie in the pack already or are being committed
	unsaved int          // bytes of waiting that do not
	buf     []byte       // of save

	known, faded map[key]memory     // two generations
	touched      map[touch]struct{} // what was put again since the last Append

	broken error // what was put and acknowledged is lost: nothing can be appended any more
	pack   *pack // nil: none yet
	newest int64 // At of the newest record that was appended
}

// memory is what is known of a blob.
type memory struct {
	place
	born int64 // of its pack, or when it was put into the table small
}

// touch names what holds a blob: a pack, or with pack 0 a row of the table small.
type touch struct{ pack, id int64 }

func (p place) touchOf() touch {
	if p.pack == 0 {
		return touch{0, p.at}
	}
	return touch{p.pack, 0}
}

type freshBlob struct {
	key   key
	bytes []byte // nil: only in the pack
	place place
}

func newBlobs(dir string) *blobs {
	return &blobs{dir: dir, small: smallSize, fresh: map[key]*freshBlob{}, known: map[key]memory{}, touched: map[touch]struct{}{}}
}

// PutBlob implements store.Store.
func (s *Store) PutBlob(ctx context.Context, b []byte) (string, error) {
	if len(b) > blobLimit {
		return "", fault.New(fault.Invalid, "a blob of %d bytes is too large: the limit is %d", len(b), blobLimit)
	}
	if err := s.checkUsable(ctx); err != nil {
		return "", err
	}
	k := key(sha256.Sum256(b))
	if len(b) >= lookSize {
		if err := s.recallBlob(ctx, &k); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(k[:]), classifyError(s.blobs.putBlob(&k, b))
}

// recallBlob makes a blob known that the index has.
func (s *Store) recallBlob(ctx context.Context, k *key) error {
	return s.withReader(ctx, func(c *conn) error {
		return c.queryRows(func(row []driver.Value) error {
			s.blobs.mu.Lock()
			defer s.blobs.mu.Unlock()
			if _, has := s.blobs.lookupKnown(k); !has && blobTable.isIntact(row[:5]) && packTable.isIntact(row[5:]) {
				s.blobs.rememberBlob(k, memory{scanPlace(row[1:]), row[8].(int64)})
			}
			return nil
		}, "SELECT hash, pack, at, blob.size, blob.sum, pack.id, pack.size, put, born, pack.sum FROM blob JOIN pack ON id = pack WHERE hash = ?", k[:])
	})
}

func scanPlace(row []driver.Value) place {
	return place{pack: row[0].(int64), at: row[1].(int64), size: row[2].(int64)}
}

// putBlob makes a blob fresh, or touches it if it is known and young.
func (bl *blobs) putBlob(k *key, b []byte) error {
	bl.mu.Lock()
	defer bl.mu.Unlock()
	if bl.fresh[*k] != nil {
		return nil
	}
	if m, has := bl.lookupKnown(k); has && bl.newest-m.born < packAge.Microseconds() {
		bl.touched[m.touchOf()] = struct{}{}
		bl.rememberBlob(k, m)
		return nil
	}
	return bl.insertBlob(k, b)
}

// insertBlob makes a blob fresh and writes what waits if that is much.
func (bl *blobs) insertBlob(k *key, b []byte) error {
	bl.addFresh(k, b)
	if before := bl.written; bl.unsaved > spillSize {
		if err := bl.flushPack(); err != nil {
			bl.dropLast(*k)
			return err
		}
		for _, f := range bl.waiting[before:] {
			f.bytes = nil
		}
	}
	return nil
}

// dropLast takes back the blob that was added last.
func (bl *blobs) dropLast(k key) {
	bl.unsaved -= len(bl.fresh[k].bytes) + entryHead
	delete(bl.fresh, k)
	bl.waiting = bl.waiting[:len(bl.waiting)-1]
}

// addFresh makes a blob fresh.
func (bl *blobs) addFresh(k *key, b []byte) {
	f := &freshBlob{key: *k, bytes: bytes.Clone(b), place: place{size: int64(len(b))}}
	if f.bytes == nil {
		f.bytes = []byte{}
	}
	bl.fresh[*k] = f
	bl.waiting = append(bl.waiting, f)
	bl.unsaved += len(b) + entryHead
}

func (bl *blobs) lookupKnown(k *key) (memory, bool) {
	m, has := bl.known[*k]
	if !has {
		m, has = bl.faded[*k]
	}
	return m, has
}

func (bl *blobs) rememberBlob(k *key, m memory) {
	bl.known[*k] = m
	if len(bl.known) >= knownSize {
		bl.faded, bl.known = bl.known, make(map[key]memory, knownSize)
	}
}

// forgetPurged takes purged blobs of a pack, or of the table small, out of what is known.
func (bl *blobs) forgetPurged(pack int64, gone []key) {
	bl.mu.Lock()
	defer bl.mu.Unlock()
	for _, generation := range []map[key]memory{bl.known, bl.faded} {
		for _, k := range gone {
			if m, has := generation[k]; has && m.pack == pack {
				delete(generation, k)
			}
		}
	}
}

// inUse returns the pack that is appended to, 0 for none, and those that were put
// to since the last Append.
func (bl *blobs) inUse() (current int64, touched map[touch]struct{}) {
	bl.mu.Lock()
	defer bl.mu.Unlock()
	if bl.pack != nil {
		current = bl.pack.id
	}
	return current, maps.Clone(bl.touched)
}

// renewBlob makes a blob fresh, whatever is known of it.
func (bl *blobs) renewBlob(k *key, b []byte) error {
	bl.mu.Lock()
	defer bl.mu.Unlock()
	if bl.fresh[*k] != nil {
		return nil
	}
	return bl.insertBlob(k, b)
}

// flushPack writes what waits to the pack, in one call; a failed one changes nothing,
// and the next writes over it.
func (bl *blobs) flushPack() error {
	if bl.written == len(bl.waiting) {
		return nil
	}
	if bl.pack == nil {
		id := int64(1)
		ids, err := packIDs(bl.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, other := range ids {
			id = max(id, other+1)
		}
		if bl.pack, err = createPack(bl.dir, id); err != nil {
			return err
		}
	}
	todo, at := bl.waiting[bl.written:], bl.pack.end
	buf := slices.Grow(bl.buf[:0], bl.unsaved)
	for _, f := range todo {
		f.place.pack, f.place.at = bl.pack.id, at+int64(len(buf))+entryHead
		buf = encodeEntry(buf, &f.key, f.bytes)
	}
	if _, err := bl.pack.f.WriteAt(buf, at); err != nil {
		return err
	}
	bl.pack.end += int64(len(buf))
	if bl.buf = buf; cap(buf) > 1<<20 {
		bl.buf = nil
	}
	bl.written, bl.unsaved = len(bl.waiting), 0
	return nil
}

// Blob implements store.Store.
func (s *Store) Blob(ctx context.Context, hash string) ([]byte, error) {
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != hash {
		return nil, fault.New(fault.NotFound, "no blob has the hash %q", hash)
	}
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}
	k := key(raw)
	b, err := s.blobs.cachedBytes(&k)
	if err == nil && b != nil {
		return b, nil
	}
	// Not known, or a purge has moved it in the meantime.
	p, has, err := s.findBlob(ctx, &k)
	if err != nil {
		return nil, err
	}
	if !has {
		return s.oldBlob(hash)
	}
	if p.pack == 0 {
		return s.smallBlob(ctx, &k, p.at)
	}
	b, err = readPack(s.dir, p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Internal, "blob %s: its pack is gone: %w", hash, err).Advise("put the pack back from a backup")
	case err != nil:
		return nil, classifyFile(err)
	case sha256.Sum256(b) != k:
		return nil, damagedError(hash, packName(s.dir, p.pack))
	}
	return b, nil
}

func damagedError(hash, file string) error {
	return fault.New(fault.Internal, "blob %s is %w in %s", hash, store.ErrDamaged, file).Advise("put the file back from a backup")
}

// cachedBytes returns the bytes of a blob that is fresh or known; nil if it is neither
// or lies in the database.
func (bl *blobs) cachedBytes(k *key) ([]byte, error) {
	bl.mu.Lock()
	m, has := bl.lookupKnown(k)
	p := m.place
	if f := bl.fresh[*k]; f != nil {
		if f.bytes != nil {
			defer bl.mu.Unlock()
			return append([]byte{}, f.bytes...), nil
		}
		p, has = f.place, true
	}
	bl.mu.Unlock()
	if !has || p.pack == 0 {
		return nil, nil
	}
	b, err := readPack(bl.dir, p)
	if err == nil && sha256.Sum256(b) != *k {
		return nil, damagedError(hex.EncodeToString(k[:]), packName(bl.dir, p.pack))
	}
	return b, err
}

func (s *Store) findBlob(ctx context.Context, k *key) (p place, has bool, err error) {
	err = s.withReader(ctx, func(c *conn) error {
		return c.queryRows(func(row []driver.Value) error {
			if !blobTable.isIntact(row) {
				s.damages.noteDamage(blobTable.damageOf(row))
				return damagedError(hex.EncodeToString(k[:]), "the index in journal.db")
			}
			p, has = scanPlace(row[1:]), true
			return nil
		}, blobTable.selectRows()+" WHERE hash = ?", k[:])
	})
	return p, has, err
}

// oldBlob reads a blob of schema 1: a file with the hash as its name.
func (s *Store) oldBlob(hash string) ([]byte, error) {
	path := filepath.Join(s.dir, "blobs", hash)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "no blob has the hash %s", hash)
	case err != nil:
		return nil, classifyFile(err)
	case store.Hash(b) != hash:
		return nil, damagedError(hash, path)
	}
	return b, nil
}

func (bl *blobs) close() error {
	bl.mu.Lock()
	defer bl.mu.Unlock()
	if bl.pack == nil {
		return nil
	}
	return bl.pack.f.Close()
}
