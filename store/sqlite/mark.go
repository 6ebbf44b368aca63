package sqlite

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// The high-water mark is a file beside the database. It says up to which record the journal was
// acknowledged, and up to which frame the write-ahead log must be intact for that. SQLite cannot
// tell a log that is damaged in the middle from a log whose end was never written; with the mark,
// the store can.
//
// The file has two places. The store writes them in turn, so that one of them is intact at any
// moment. It writes the mark after every commit, before the call returns, and makes it durable
// while it writes the next one. After a crash of the process the mark is exact; after a loss of
// power it is one commit late at most.

const (
	markMagic = "coxmark1"
	markSize  = len(markMagic) + 7*8 + 4
	markStep  = 4096 // between the places, so that no block of a disk has both
)

// mark is the content of a place.
type mark struct {
	turn       uint64
	seq, epoch uint64
	log        logEnd
}

// logEnd is the end of the committed part of a write-ahead log: the salts of the log, the number
// of committed frames, and the checksum in the last of them. Without frames the log may be absent.
type logEnd struct {
	salt   uint64
	frames uint64
	sum    uint64
}

func markName(dir string) string { return filepath.Join(dir, "journal.mark") }

func (m *mark) encodeMark() []byte {
	b := append(make([]byte, 0, markSize), markMagic...)
	for _, n := range []uint64{m.turn, m.seq, m.epoch, m.log.salt, m.log.frames, m.log.sum, 0} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeMark(b []byte) (m mark, ok bool) {
	if len(b) < markSize || string(b[:len(markMagic)]) != markMagic ||
		binary.LittleEndian.Uint32(b[markSize-4:]) != crc32.Checksum(b[:markSize-4], castagnoli) {
		return m, false
	}
	for i, n := range []*uint64{&m.turn, &m.seq, &m.epoch, &m.log.salt, &m.log.frames, &m.log.sum} {
		*n = binary.LittleEndian.Uint64(b[len(markMagic)+8*i:])
	}
	return m, true
}

// readMark reads the mark of a directory; it returns the zero mark if there is none yet. spoilt
// says that one place is damaged; the mark may then be one commit old.
func readMark(dir string) (m mark, spoilt bool, err error) {
	b, err := os.ReadFile(markName(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	found := false
	for at := 0; at < 2*markStep; at += markStep {
		place := b[min(at, len(b)):min(at+markSize, len(b))]
		if len(bytes.Trim(place, "\x00")) == 0 {
			continue // not written yet
		}
		one, ok := decodeMark(place)
		if !ok {
			spoilt = true
		} else if found = true; one.turn >= m.turn {
			m = one
		}
	}
	if spoilt && !found && len(b) >= 2*markStep {
		return m, true, fault.New(fault.Internal, "%s is %w: it no longer says which records were acknowledged", markName(dir), store.ErrDamaged).
			Advise("keep the directory, and put a backup in its place; docs/explanation/state.md says how")
	}
	return m, spoilt, nil
}

// marker writes the mark of a store. The caller of its methods holds the store's lock.
type marker struct {
	dir     string
	f       *os.File
	now     mark
	log     *logTail
	syncing chan error // of the sync under way; nil: none
}

// openMarker returns a marker that goes on from a mark. It creates the file if there is none.
func openMarker(dir string, now mark) (*marker, error) {
	f, err := os.OpenFile(markName(dir), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Size() < 2*markStep {
		// Allocate all blocks now, so that writing a mark needs no free space later.
		if _, err := f.WriteAt(make([]byte, 2*markStep-info.Size()), info.Size()); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if err := errors.Join(f.Sync(), syncDir(dir)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return &marker{dir: dir, f: f, now: now, log: &logTail{name: filepath.Join(dir, "journal.db-wal")}}, nil
}

// acked is what a commit acknowledges to its caller.
type acked struct {
	seq, epoch uint64 // the newest record and the newest epoch; 0: as before
	durable    bool   // after a loss of power too, not only after a crash of the process
}

// noteCommit writes the mark after a commit. After a durable commit it also begins to sync the
// mark, when the sync before has ended.
func (m *marker) noteCommit(a acked) error {
	m.now.seq, m.now.epoch = max(m.now.seq, a.seq), max(m.now.epoch, a.epoch)
	end, err := m.log.followLog()
	if err != nil {
		return err
	}
	m.now.log = end
	if err := m.writePlace(); err != nil || !a.durable {
		return err
	}
	if err := m.waitSynced(); err != nil {
		return err
	}
	m.syncing = make(chan error, 1)
	go func(f *os.File, done chan<- error) { done <- fdatasync(f) }(m.f, m.syncing)
	return nil
}

func (m *marker) writePlace() error {
	m.now.turn++
	_, err := m.f.WriteAt(m.now.encodeMark(), int64(m.now.turn%2)*markStep)
	if err != nil {
		m.now.turn-- // the next try is for the same place: the other one is whole
	}
	return err
}

func (m *marker) waitSynced() error {
	if m.syncing == nil {
		return nil
	}
	err := <-m.syncing
	m.syncing = nil
	return err
}

// close makes the mark durable. If the last connection to the database has removed the log, it
// first writes a mark that needs none.
func (m *marker) close() error {
	err := m.waitSynced()
	if _, stat := os.Stat(m.log.name); errors.Is(stat, fs.ErrNotExist) && m.now.turn > 0 {
		m.now.log = logEnd{}
		err = errors.Join(err, m.writePlace())
	}
	return errors.Join(err, m.f.Sync(), m.f.Close(), m.log.close())
}

// writeMark writes the mark of a copy that has no log.
func writeMark(c *conn, dir string) error {
	last, _, err := c.queryNumber("SELECT MAX(seq) FROM journal")
	if err != nil {
		return err
	}
	epoch, _, err := readLeader(c)
	if err != nil {
		return err
	}
	m, err := openMarker(dir, mark{seq: uint64(last), epoch: epoch})
	if err != nil {
		return err
	}
	return errors.Join(m.writePlace(), m.close())
}

// The format of a write-ahead log: https://www.sqlite.org/fileformat2.html#walformat

const (
	logHead   = 32
	frameHead = 24
	logMagic  = 0x377f0682 // or with the last bit set: checksums read words of the other order
)

// logTail follows a write-ahead log from commit to commit.
type logTail struct {
	name  string
	f     *os.File
	size  int64  // of a page
	seen  uint64 // frames that were looked at
	end   logEnd
	bytes [frameHead]byte
}

// followLog finds the end of the committed part.
func (l *logTail) followLog() (logEnd, error) {
	var head [logHead]byte
	if l.f == nil {
		f, err := os.Open(l.name)
		if errors.Is(err, fs.ErrNotExist) {
			return logEnd{}, nil // no commit has written to it yet
		}
		if err != nil {
			return logEnd{}, err
		}
		l.f = f
	}
	if n, _ := l.f.ReadAt(head[:], 0); n < logHead {
		return logEnd{}, nil
	}
	if salt := binary.BigEndian.Uint64(head[16:]); salt != l.end.salt {
		l.end, l.seen = logEnd{salt: salt}, 0
		l.size = int64(binary.BigEndian.Uint32(head[8:]))
	}
	for {
		at := logHead + int64(l.seen)*(frameHead+l.size)
		if n, _ := l.f.ReadAt(l.bytes[:], at); n < frameHead || binary.BigEndian.Uint64(l.bytes[8:]) != l.end.salt {
			break
		}
		l.seen++
		if binary.BigEndian.Uint32(l.bytes[4:]) != 0 { // a commit
			l.end.frames, l.end.sum = l.seen, binary.BigEndian.Uint64(l.bytes[16:])
		}
	}
	l.seen = l.end.frames // what follows may be written again
	return l.end, nil
}

func (l *logTail) close() error {
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}

// checkMark compares the journal of a directory with its mark, before SQLite may touch it: a
// log that is damaged stays as it is. It does nothing where there is no mark.
func checkMark(dir string) (m mark, spoilt bool, err error) {
	const tries = 5 // where another process is writing
	for try := 1; ; try++ {
		if m, spoilt, err = readMark(dir); err != nil || m.turn == 0 {
			return m, spoilt, err
		}
		if err = compareMark(dir, &m); err == nil || try == tries {
			return m, spoilt, err
		}
		if again, _, readErr := readMark(dir); readErr != nil || again == m {
			return m, spoilt, err
		}
	}
}

func compareMark(dir string, m *mark) error {
	if err := checkLog(filepath.Join(dir, "journal.db-wal"), &m.log); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Join(dir, "journal.db")); err != nil || info.Size() == 0 {
		if m.seq == 0 {
			return nil
		}
		return fault.New(fault.Internal, "%s has no journal: journal.db is gone or empty, and record %d was acknowledged", dir, m.seq).
			Advise("put journal.db back from a backup, or start with another --state-dir")
	}
	c, err := dialStill(dir)
	if err != nil {
		return err
	}
	defer c.close()
	if version, _, err := c.queryNumber("PRAGMA user_version"); err != nil || version != int64(len(schema)) {
		return err // the opening says what it thinks of it
	}
	last, _, err := c.queryNumber("SELECT MAX(seq) FROM journal")
	if err != nil {
		return err
	}
	if uint64(last) < m.seq {
		return lostRecords(dir, uint64(last), m.seq)
	}
	epoch, _, err := readLeader(c)
	if err == nil && epoch < m.epoch {
		err = fault.New(fault.Internal, "%s is %w: epoch %d has led, and the newest one there is %d", dir, store.ErrDamaged, m.epoch, epoch).
			Advise("keep the directory, and put a backup in its place; docs/explanation/state.md says how")
	}
	return err
}

func lostRecords(dir string, last, acknowledged uint64) error {
	return fault.New(fault.Internal, "the journal of %s is %w: it ends with record %d, and record %d was acknowledged", dir, store.ErrDamaged, last, acknowledged).
		Advise("keep the directory, and put a backup in its place; docs/explanation/state.md says how")
}

// checkLog reads a write-ahead log up to where the mark says that it has to be whole.
func checkLog(name string, want *logEnd) error {
	if want.frames == 0 {
		return nil
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the database has all of it, or the comparison with the mark says that it has not
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, logHead)
	if n, _ := f.ReadAt(head, 0); n < logHead || len(bytes.Trim(head, "\x00")) == 0 {
		return nil
	}
	order, ok := logOrder(head)
	sum := frameSum(order, 0, head[:24])
	if !ok || sum != binary.BigEndian.Uint64(head[24:]) {
		return damagedLog(name, 0)
	}
	if binary.BigEndian.Uint64(head[16:]) != want.salt {
		return nil // begun anew since: the database has all that it had
	}
	size := int64(binary.BigEndian.Uint32(head[8:]))
	frame := make([]byte, frameHead+size)
	for i := uint64(1); i <= want.frames; i++ {
		if _, err := f.ReadAt(frame, logHead+int64(i-1)*int64(len(frame))); err != nil {
			return damagedLog(name, i)
		}
		sum = frameSum(order, frameSum(order, sum, frame[:8]), frame[frameHead:])
		if sum != binary.BigEndian.Uint64(frame[16:]) || binary.BigEndian.Uint64(frame[8:]) != want.salt {
			return damagedLog(name, i)
		}
	}
	if sum != want.sum {
		return damagedLog(name, want.frames)
	}
	return nil
}

func damagedLog(name string, frame uint64) error {
	return fault.New(fault.Internal, "%s is %w in frame %d, before records that were acknowledged", name, store.ErrDamaged, frame).
		Advise("keep the directory, and put a backup in its place; docs/explanation/state.md says how")
}

// logOrder is the order of the bytes in the words that the checksums of a log add up.
func logOrder(head []byte) (binary.ByteOrder, bool) {
	switch magic := binary.BigEndian.Uint32(head); magic {
	case logMagic:
		return binary.LittleEndian, true
	case logMagic | 1:
		return binary.BigEndian, true
	}
	return binary.LittleEndian, false
}

// frameSum goes on with the checksum of a log over some bytes, a multiple of eight.
func frameSum(order binary.ByteOrder, sum uint64, b []byte) uint64 {
	s0, s1 := uint32(sum>>32), uint32(sum)
	for ; len(b) >= 8; b = b[8:] {
		s0 += order.Uint32(b) + s1
		s1 += order.Uint32(b[4:]) + s0
	}
	return uint64(s0)<<32 | uint64(s1)
}

// checkSchema compares the schema in the database with the one that this version makes.
func checkSchema(c *conn, dir string) error {
	sum, err := sumSchema(c)
	if err == nil && sum != schemaSum {
		err = fault.New(fault.Internal, "the schema in %s is %w", filepath.Join(dir, "journal.db"), store.ErrDamaged).
			Advise("keep the directory, and put a backup in its place; docs/explanation/state.md says how")
	}
	return err
}

func sumSchema(c *conn) (int64, error) {
	var all []driver.Value
	err := c.queryRows(func(row []driver.Value) error {
		all = append(all, fmt.Sprintf("%v", row))
		return nil
	}, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
	return rowSum("schema", all), err
}
