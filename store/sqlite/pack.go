package sqlite

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A pack is a file with many blobs, one after the other, each behind its hash and
// size. It only grows. How far it is valid stands in the database (pack.size); what
// lies behind that was never acknowledged and is written over.

const (
	packHead  = "coxswain pack 1\n"
	entryHead = sha256.Size + 4 // hash, size as 32 bits little-endian
)

// key is a blob's hash.
type key = [sha256.Size]byte

// place says where a blob's bytes lie.
type place struct {
	pack int64
	at   int64
	size int64
}

// pack is an open pack that this process appends to. It holds the file's lock, so
// no other process does.
type pack struct {
	id   int64
	f    *os.File
	end  int64 // where the next entry begins
	born int64 // At of the first batch in it, in microseconds; 0: nothing committed yet
	made bool  // its name may not be durable yet
}

func packName(dir string, id int64) string {
	return filepath.Join(dir, "packs", fmt.Sprintf("%06d.pack", id))
}

// packIDs lists the packs in a directory.
func packIDs(dir string) (ids []int64, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, "packs"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		var id int64
		if n, ok := strings.CutSuffix(e.Name(), ".pack"); ok {
			if _, err := fmt.Sscanf(n, "%d", &id); err == nil && filepath.Base(packName(dir, id)) == e.Name() {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// createPack makes the first pack from id on whose name is free.
func createPack(dir string, id int64) (*pack, error) {
	for {
		f, err := os.OpenFile(packName(dir, id), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		switch {
		case errors.Is(err, fs.ErrExist):
			id++
			continue
		case errors.Is(err, fs.ErrNotExist):
			if err := os.MkdirAll(filepath.Join(dir, "packs"), 0o700); err != nil {
				return nil, err
			}
			if err := syncDir(dir); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		}
		// Where locks do not work, every process has packs of its own.
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if _, err := f.WriteAt([]byte(packHead), 0); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		return &pack{id: id, f: f, end: int64(len(packHead)), made: true}, nil
	}
}

// openPack opens a pack to append to; nil says that another process has it or that
// it cannot be used. Its end is not known yet.
func openPack(dir string, id int64) *pack {
	f, err := os.OpenFile(packName(dir, id), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = f.Close()
		return nil
	}
	return &pack{id: id, f: f}
}

// encodeEntry appends an entry to buf.
func encodeEntry(buf []byte, k *key, b []byte) []byte {
	buf = append(buf, k[:]...)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(b)))
	return append(buf, b...)
}

// syncPack makes what was appended durable, and the name of a new pack.
func (p *pack) syncPack(dir string) error {
	if err := fdatasync(p.f); err != nil {
		return err
	}
	if p.made {
		if err := syncDir(filepath.Join(dir, "packs")); err != nil {
			return err
		}
		p.made = false
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

// readPack reads the bytes at a place.
func readPack(dir string, p place) ([]byte, error) {
	f, err := os.Open(packName(dir, p.pack))
	if err != nil {
		return nil, err
	}
	b := make([]byte, p.size)
	if _, err := f.ReadAt(b, p.at); err != nil {
		return nil, errors.Join(fmt.Errorf("%s, byte %d: %w", f.Name(), p.at, err), f.Close())
	}
	return b, f.Close()
}

// walkPack calls f for the entries of a pack from an offset on (0: from the first)
// up to its valid size, with the place of the bytes and, if want says so, the
// bytes. It returns where it stopped: size at the end, or where f returned errStop.
func walkPack(dir string, id, from, size int64, want func(k *key) bool, f func(k *key, p place, b []byte) error) (int64, error) {
	file, err := os.Open(packName(dir, id))
	if err != nil {
		return from, err
	}
	defer file.Close()
	at := max(from, int64(len(packHead)))
	r := bufio.NewReaderSize(io.NewSectionReader(file, at, size-at), 256<<10)
	head := make([]byte, entryHead)
	for at < size {
		if _, err := io.ReadFull(r, head); err != nil {
			return at, fmt.Errorf("%s, byte %d: %w", file.Name(), at, err)
		}
		k := key(head[:sha256.Size])
		p := place{pack: id, at: at + entryHead, size: int64(binary.LittleEndian.Uint32(head[sha256.Size:]))}
		var b []byte
		if p.at+p.size > size {
			return at, fmt.Errorf("%s, byte %d: an entry ends behind the pack", file.Name(), at)
		}
		if want(&k) {
			b = make([]byte, p.size)
			_, err = io.ReadFull(r, b)
		} else {
			_, err = r.Discard(int(p.size))
		}
		if err != nil {
			return at, fmt.Errorf("%s, byte %d: %w", file.Name(), at, err)
		}
		if err := f(&k, p, b); err != nil {
			if errors.Is(err, errStop) {
				err = nil
			}
			return at, err
		}
		at = p.at + p.size
	}
	return at, nil
}

// errStop ends a walk before the entry that it is returned for.
var errStop = errors.New("stop")
