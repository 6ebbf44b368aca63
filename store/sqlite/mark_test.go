package sqlite

import (
	"errors"
	"os"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// TestMarkCannotBeWritten: what was committed without its mark is there and is not said to be
// refused; nothing more is written until the mark can be.
func TestMarkCannotBeWritten(t *testing.T) {
	s, epoch := opened(t)
	if _, err := s.Append(t.Context(), epoch, one); err != nil {
		t.Fatal(err)
	}
	if err := s.mark.waitSynced(); err != nil {
		t.Fatal(err)
	}
	whole := s.mark.f
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	s.mark.f = full
	if _, err := s.Append(t.Context(), epoch, one); fault.KindOf(err) != fault.Unavailable || err == nil {
		t.Errorf("committed without its mark: %v (%s)", err, fault.KindOf(err))
	}
	for range 2 {
		if _, err := s.Append(t.Context(), epoch, one); fault.KindOf(err) != fault.Exhausted {
			t.Errorf("while the mark cannot be written: %v (%s)", err, fault.KindOf(err))
		}
	}
	n := uint64(0)
	if err := s.Read(t.Context(), 0, func(r store.Record) error { n = r.Seq; return nil }); err != nil || n != 2 {
		t.Errorf("%d records, %v", n, err)
	}
	s.mark.f = whole
	last, err := s.Append(t.Context(), epoch, one)
	if err = errors.Join(err, full.Close(), s.mark.waitSynced()); err != nil || last != 3 {
		t.Errorf("with room again: record %d, %v", last, err)
	}
	if m, spoilt, err := readMark(s.dir); m.seq != 3 || m.epoch != epoch || spoilt || err != nil {
		t.Errorf("the mark says %+v, spoilt %v, %v", m, spoilt, err)
	}
}

// TestMarkOutlivesADamagedPlace: with one place damaged the other one is used; with both, or with
// a journal that is older than the mark, the store is not opened.
func TestMarkOutlivesADamagedPlace(t *testing.T) {
	s, epoch := opened(t)
	for range 3 {
		if _, err := s.Append(t.Context(), epoch, one); err != nil {
			t.Fatal(err)
		}
	}
	dir := s.dir
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	m, _, err := readMark(dir)
	if err != nil || m.seq != 3 || m.log.frames != 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	f, err := os.OpenFile(markName(dir), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	turn := func(place uint64) {
		t.Helper()
		if _, err := f.WriteAt([]byte{'C'}, int64(place%2)*markStep); err != nil {
			t.Fatal(err)
		}
	}
	turn(m.turn)
	if older, spoilt, err := readMark(dir); older.seq != 3 || older.turn != m.turn-1 || !spoilt || err != nil {
		t.Errorf("%+v, spoilt %v, %v", older, spoilt, err)
	}
	turn(m.turn + 1)
	if _, err := Open(dir); !errors.Is(err, store.ErrDamaged) || fault.Remedy(err) == "" {
		t.Errorf("both places are damaged: %v", err)
	}
	ahead := mark{turn: 9, seq: 4, epoch: epoch}
	if _, err := f.WriteAt(ahead.encodeMark(), markStep); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("record 4 was acknowledged and is not there: %v", err)
	}
	if _, err := Verify(t.Context(), dir); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("Verify: %v", err)
	}
}
