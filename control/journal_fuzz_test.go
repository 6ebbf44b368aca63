package control_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/internal/sweep"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// memory is a store with a journal.
func memory(t testing.TB, recs []store.Record) *store.Memory {
	st := new(store.Memory)
	epoch, err := st.Lead(t.Context(), "old")
	if err == nil {
		_, err = st.Append(t.Context(), epoch, recs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// judge starts from a journal, whatever stands in it. Either that is refused with an
// error that says where and what to do, or the state is sound, and the same
// from the journal alone, from a projection that was made after half of the records
// and the other half, and from a projection of which some rows are newer than it
// says; and a control plane opens on it and works. That is looked at if whole is set.
func judge(t testing.TB, recs []store.Record, half int, whole bool) (taken bool, wrong error) {
	t.Helper()
	size := 0
	for i := range recs {
		size += len(recs[i].Data)
	}
	st := memory(t, recs)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	want, err := control.Restored(t.Context(), st, true)
	runtime.ReadMemStats(&after)
	if took, may := after.TotalAlloc-before.TotalAlloc, uint64(32<<20+3000*size); took > may {
		return false, fmt.Errorf("%d bytes of records take %d bytes of memory", size, took)
	}
	if err != nil {
		return false, refusal(err)
	}
	if !whole {
		return true, nil
	}
	for _, of := range []int{half, len(recs)} {
		if err := control.ProjectOf(t.Context(), memory(t, recs[:of]), st, uint64(half), of == half); err != nil {
			return true, fmt.Errorf("project %d records as %d: %w", of, half, err)
		}
		got, err := control.Restored(t.Context(), st, false)
		if err != nil {
			return true, fmt.Errorf("a start from rows of record %d and the journal after %d: %w", of, half, err)
		}
		if got != want {
			return true, fmt.Errorf("a start from rows of record %d and the journal after %d differs:\n%s", of, half, differ(want, got))
		}
	}
	return true, run(t, recs)
}

// refusal expects of a refused journal that it says where it stops, and a remedy.
func refusal(err error) error {
	text := err.Error()
	switch {
	case !slices.ContainsFunc([]string{"journal record ", "row of job ", "does not add up", "document control", "the projection has no"}, func(s string) bool { return strings.Contains(text, s) }):
		return fmt.Errorf("refused without saying where: %w", err)
	case fault.Remedy(err) == "":
		return fmt.Errorf("refused without a remedy: %w", err)
	case len(text) > 2000:
		return fmt.Errorf("a refusal of %d bytes: %.200s", len(text), text)
	}
	return nil
}

// differ shows the first line in which two states differ.
func differ(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d of %d, %d\n%.2000s\n%.2000s", i, len(a), len(b), a[min(i, len(a)-1)], b[min(i, len(b)-1)])
		}
	}
	return ""
}

// run opens a control plane on a journal that can be restored.
func run(t testing.TB, recs []store.Record) error {
	t.Helper()
	ctl, err := control.Open(t.Context(), control.Config{Store: memory(t, recs), Pools: onHand(newHand(3, 4)), Keep: -1, Project: -1})
	if err != nil {
		return fmt.Errorf("what can be restored is not opened: %w", err)
	}
	_, _, err = ctl.Jobs(t.Context())
	return errors.Join(err, ctl.Check(t.Context()), ctl.Close())
}

// TestSweepOfTheJournal changes one place of one record at a time, every fifth one. What is taken is
// looked at from all sides every twentieth time; make torture makes and looks at all of them.
func TestSweepOfTheJournal(t *testing.T) {
	whole, one := thorough(t)
	all := control.Every()
	seen := map[string]bool{}
	for i := range all {
		seen[all[i].Kind] = true
		t.Run(fmt.Sprint(i+1, "-", all[i].Kind), func(t *testing.T) {
			t.Parallel()
			n, accepted, failed := 0, 0, 0
			for c := range sweep.JSON(all[i].Data) {
				if n++; n%one != 0 {
					continue
				}
				recs := slices.Clone(all)
				recs[i].Data = c.Doc
				taken, wrong := guarded(func() (bool, error) { return judge(t, recs, i, n%whole == 0) })
				if wrong != nil {
					t.Errorf("%s: %v", c.What, wrong)
					if failed++; failed == 5 {
						t.FailNow()
					}
				}
				if taken {
					accepted++
				}
			}
			t.Logf("%d changes, %d taken", n, accepted)
		})
	}
	for _, k := range control.Kinds() {
		if !seen[k] {
			t.Errorf("no record of kind %s", k)
		}
	}
}

// thorough says how many changes of a sweep are looked at from all sides, and how many at
// all: one in so many. The race detector is left out: what it could find, the tests of whole lives show it.
func thorough(t *testing.T) (whole, one int) {
	t.Helper()
	if testing.Short() {
		t.Skip("in make unit")
	}
	if os.Getenv("COX_LONG") != "" {
		return 1, 1
	}
	return 20, 5
}

// guarded makes an error of a panic of this goroutine.
func guarded(f func() (bool, error)) (ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			buf := make([]byte, 2<<10)
			err = fmt.Errorf("panic: %v\n%s", r, buf[:runtime.Stack(buf, false)])
		}
	}()
	return f()
}

// A journal that was damaged, or written by something else, is refused with a clear
// error or gives a sound state: see judge.
func FuzzJournal(f *testing.F) {
	all := control.Every()
	var lines []byte
	for i := range all {
		b, err := json.Marshal(all[i])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(bytes.Clone(b), '\n'), byte(0))
		lines = append(append(lines, b...), '\n')
		if i%5 == 4 {
			f.Add(bytes.Clone(lines), byte(i/2))
		}
	}
	f.Add(lines, byte(len(all)/2))
	f.Fuzz(func(t *testing.T, lines []byte, half byte) {
		if len(lines) > 64<<10 {
			return
		}
		var recs []store.Record
		for line := range bytes.Lines(lines) {
			var r store.Record
			if json.Unmarshal(line, &r) == nil {
				recs = append(recs, r)
			}
		}
		if _, wrong := judge(t, recs, min(int(half), len(recs)), true); wrong != nil {
			t.Fatal(wrong)
		}
	})
}
