package control_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/internal/sweep"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// projection is what Every leaves in a store: rows ascending, and the document.
func projection(t testing.TB) ([]store.JobRow, []byte) {
	st := new(store.Memory)
	if err := control.ProjectOf(t.Context(), memory(t, control.Every()), st, uint64(len(control.Every())), true); err != nil {
		t.Fatal(err)
	}
	var rows []store.JobRow
	for id := uint64(1); ; id++ {
		r, err := st.Job(t.Context(), id)
		if err != nil {
			break
		}
		rows = append(rows, r)
	}
	doc, err := st.Doc(t.Context(), "control")
	if err != nil || len(rows) != 6 {
		t.Fatal(err, len(rows))
	}
	return rows, doc
}

// fill writes a projection that reflects the whole of Every, after its journal.
func fill(t testing.TB, st store.Store, rows []store.JobRow, doc []byte) {
	epoch, err := st.Lead(t.Context(), "old")
	if err == nil {
		_, err = st.Append(t.Context(), epoch, control.Every())
	}
	if err == nil {
		err = st.Project(t.Context(), epoch, uint64(len(control.Every())), rows, map[string][]byte{"control": doc, "policy-1": everysPolicy()})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// everysPolicy is the revision of the policy that Every sets.
func everysPolicy() []byte {
	for _, r := range control.Every() {
		if r.Kind == "policy-set" {
			return r.Data
		}
	}
	panic("Every sets no policy")
}

// judgeRows starts from a projection, whatever stands in it: with a clear error, or in
// a sound state whose own rows give the same again; what shows one row alone does not
// panic either.
func judgeRows(t testing.TB, rows []store.JobRow, doc []byte, whole bool) (taken bool, wrong error) {
	t.Helper()
	st, size := new(store.Memory), len(doc)
	fill(t, st, rows, doc)
	for i := range rows {
		_ = control.ShowRow(&rows[i])
		size += len(rows[i].Detail)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	want, err := control.Restored(t.Context(), st, false)
	runtime.ReadMemStats(&after)
	if took, may := after.TotalAlloc-before.TotalAlloc, uint64(64<<20+3000*size); took > may {
		return false, fmt.Errorf("%d bytes of rows take %d bytes of memory", size, took)
	}
	if err != nil || !whole {
		return err == nil, refusalOf(err)
	}
	if err := control.ProjectOf(t.Context(), st, st, uint64(len(control.Every())), true); err != nil {
		return true, fmt.Errorf("project it again: %w", err)
	}
	got, err := control.Restored(t.Context(), st, false)
	if err != nil {
		return true, fmt.Errorf("a start from its own rows: %w", err)
	}
	if got != want {
		return true, fmt.Errorf("a start from its own rows differs:\n%s", differ(want, got))
	}
	ctl, err := control.Open(t.Context(), control.Config{Store: st, Pools: onHand(newHand(3, 4)), Keep: -1, Project: -1})
	if err != nil {
		return true, fmt.Errorf("what can be restored is not opened: %w", err)
	}
	return true, errors.Join(ctl.Check(t.Context()), ctl.Close())
}

func refusalOf(err error) error {
	if err == nil {
		return nil
	}
	return refusal(err)
}

// TestSweepOfRows changes one place of one row's detail, of a column that a start uses,
// or of the document at a time.
func TestSweepOfRows(t *testing.T) {
	whole, one := thorough(t)
	rows, doc := projection(t)
	try := func(t *testing.T, n int, what string, rows []store.JobRow, doc []byte) {
		if n%one != 0 {
			return
		}
		_, wrong := guarded(func() (bool, error) { return judgeRows(t, rows, doc, n%whole == 0) })
		if wrong != nil {
			t.Errorf("%s: %v", what, wrong)
		}
	}
	for i := range rows {
		t.Run(fmt.Sprint("job ", rows[i].ID), func(t *testing.T) {
			t.Parallel()
			spec, rest := control.CutDetail(rows[i].Detail)
			n := 0
			for c := range sweep.JSON(rest) {
				changed := append([]store.JobRow(nil), rows...)
				changed[i].Detail = control.JoinDetail(spec, c.Doc)
				n++
				try(t, n, c.What, changed, doc)
			}
			for c := range sweep.JSON(spec) {
				changed := append([]store.JobRow(nil), rows...)
				changed[i].Detail = control.JoinDetail(c.Doc, rest)
				n++
				try(t, n, "spec "+c.What, changed, doc)
			}
			for at := range rows[i].Detail[:40] {
				for _, b := range []byte{0, '9', '-', '"', '}'} {
					changed := append([]store.JobRow(nil), rows...)
					changed[i].Detail = append([]byte(nil), rows[i].Detail...)
					changed[i].Detail[at] = b
					try(t, 1, fmt.Sprintf("byte %d is %q", at, b), changed, doc)
				}
				changed := append([]store.JobRow(nil), rows...)
				changed[i].Detail = rows[i].Detail[:at]
				try(t, 1, fmt.Sprintf("%d bytes", at), changed, doc)
			}
			for _, id := range []uint64{0, 1, 3, 1 << 63, 1<<64 - 1} {
				changed := append([]store.JobRow(nil), rows...)
				changed[i].ID = id
				try(t, 0, fmt.Sprint("number ", id), changed, doc)
			}
			changed := append([]store.JobRow(nil), rows...)
			changed[i].Final = !changed[i].Final
			try(t, 0, "final", changed, doc)
			try(t, 0, "left out", append(append([]store.JobRow(nil), rows[:i]...), rows[i+1:]...), doc)
		})
	}
	t.Run("document", func(t *testing.T) {
		t.Parallel()
		n := 0
		for c := range sweep.JSON(doc) {
			n++
			try(t, n, c.What, rows, c.Doc)
		}
		try(t, 0, "left out", rows, nil)
	})
}

// A row with any bytes is refused or gives a sound state, and SQLite gives back what it
// was given.
func FuzzRows(f *testing.F) {
	rows, doc := projection(f)
	for i := range rows {
		f.Add([]byte(rows[i].Detail), doc, byte(i), rows[i].Final)
	}
	dir := f.TempDir()
	disk, err := sqlite.Open(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = disk.Close() })
	epoch, err := disk.Lead(context.Background(), "fuzz")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, detail, doc []byte, which byte, final bool) {
		if len(detail)+len(doc) > 64<<10 {
			return
		}
		changed := append([]store.JobRow(nil), rows...)
		i := int(which) % len(rows)
		changed[i].Detail, changed[i].Final = detail, final
		changed[i].Name = strings.ToValidUTF8(string(detail[:min(len(detail), 40)]), "?")
		if err := disk.Project(t.Context(), epoch, 1, changed[i:i+1], map[string][]byte{"control": doc}); err != nil {
			t.Fatal(err)
		}
		got, err := disk.Job(t.Context(), changed[i].ID)
		if err != nil || string(got.Detail) != string(detail) || got.Name != changed[i].Name || got.Final != final {
			t.Fatalf("SQLite gives back %+v, %v", got, err)
		}
		if back, err := disk.Doc(t.Context(), "control"); err != nil || string(back) != string(doc) {
			t.Fatalf("SQLite gives back %q for %q, %v", back, doc, err)
		}
		if _, wrong := judgeRows(t, changed, doc, true); wrong != nil {
			t.Fatal(wrong)
		}
	})
}
