package attempt

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/smalldisk"
	"github.com/coxswain-sched/coxswain/model/job"
)

func drawEntry(t *rapid.T) Entry {
	ref := engine.Ref{Allocation: rapid.Uint64Range(1, 5).Draw(t, "allocation"), Attempt: 1}
	kinds := []EntryKind{EntryLaunch, EntrySeat, EntryGo, EntryAbort, EntryEnd, EntryForget}
	e := Entry{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Ref: ref}
	switch e.Kind {
	case EntryLaunch:
		e.Launch = &Launch{Ref: ref, Digest: rapid.StringMatching(`[a-f0-9]{4}`).Draw(t, "digest"), Job: &job.Job{ID: 7}, Script: []byte(strings.Repeat("x", 100))}
	case EntrySeat:
		e.Index = rapid.IntRange(0, 2).Draw(t, "index")
		e.Seat = &Slot{Name: rapid.StringMatching(`[1-9]\.[1-9]`).Draw(t, "seat")}
	case EntryGo:
		e.Started = at(rapid.IntRange(0, 59).Draw(t, "second"))
	case EntryAbort:
		e.Cause, e.Text = engine.LaunchFailed, "why"
	case EntryEnd:
		e.Digest = "d"
		e.Report = &engine.Report{Ref: ref, Job: 7, Phase: engine.Ended, Gone: true, Cause: engine.Exited}
	}
	return e
}

// What is read back is what was written, whether the log was written anew or not,
// and up to the last whole entry if the end is torn.
func TestLogIsReadBack(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		name := filepath.Join(dir, "log")
		_ = os.Remove(name)
		log, lives, err := OpenLog(name)
		if err != nil || len(lives) != 0 {
			t.Fatalf("an empty log: %v, %v", lives, err)
		}
		want, fenced := map[engine.Ref]*Life{}, map[engine.Ref]bool{}
		for _, e := range rapid.SliceOfN(rapid.Custom(drawEntry), 0, 40).Draw(t, "entries") {
			if err := log.Append(e); err != nil {
				t.Fatal(err)
			}
			if want[e.Ref] == nil {
				want[e.Ref] = &Life{}
			}
			want[e.Ref].applyEntry(e)
			if e.Kind == EntryForget {
				delete(want, e.Ref)
				fenced[e.Ref] = true
			}
			if rapid.IntRange(0, 9).Draw(t, "compact") == 0 {
				log.compactLog()
			}
		}
		for ref, l := range want {
			if l.Launch == nil && l.End == nil {
				delete(want, ref)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "torn") {
			f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(`{"kind":"forget","ref":{"allocation":1,"att`); err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
		}
		log, lives, err = OpenLog(name)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		if len(lives) != len(want) {
			t.Fatalf("%d attempts, want %d", len(lives), len(want))
		}
		for ref, l := range lives {
			w := want[ref]
			// Of what ended only the end has to be known.
			if w.End != nil {
				w = &Life{End: w.End, Digest: w.Digest}
				l = &Life{End: l.End, Digest: l.Digest}
			}
			if !reflect.DeepEqual(l, w) {
				t.Fatalf("%s: %+v, want %+v", ref, l, w)
			}
		}
		for n := range uint64(6) {
			if ref := (engine.Ref{Allocation: n, Attempt: 1}); log.Fenced(ref) != fenced[ref] {
				t.Fatalf("%s is fenced: %t", ref, log.Fenced(ref))
			}
		}
	})
}

// The log does not grow with what is forgotten.
func TestLogIsWrittenAnew(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	log, _, err := OpenLog(name)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	script := []byte(strings.Repeat("x", 64<<10))
	stays := engine.Ref{Allocation: 1, Attempt: 1}
	for n := range uint64(200) {
		ref := engine.Ref{Allocation: n + 1, Attempt: 1}
		if err := log.Append(Entry{Kind: EntryLaunch, Ref: ref, Launch: &Launch{Ref: ref, Digest: "d", Job: &job.Job{}, Script: script}}); err != nil {
			t.Fatal(err)
		}
		if ref != stays {
			if err := log.Append(Entry{Kind: EntryForget, Ref: ref}); err != nil {
				t.Fatal(err)
			}
		}
	}
	st, err := os.Stat(name)
	if err != nil || st.Size() > 2*compactAt {
		t.Errorf("%d bytes, %v", st.Size(), err)
	}
	_, lives, err := OpenLog(name)
	if err != nil || len(lives) != 1 || len(lives[stays].Launch.Script) != len(script) {
		t.Errorf("%d attempts, %v", len(lives), err)
	}
}

// On a full disk a launch is refused, and what must not fail has room.
func TestLogOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	smalldisk.At(t, dir, "size=1m")
	log, _, err := OpenLog(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	launch := func(n uint64) error {
		ref := engine.Ref{Allocation: n, Attempt: 1}
		return log.Append(Entry{Kind: EntryLaunch, Ref: ref, Launch: &Launch{Ref: ref, Job: &job.Job{}, Script: []byte(strings.Repeat("x", 10<<10))}})
	}
	n := uint64(1)
	for ; err == nil; n++ {
		err = launch(n)
	}
	if !errors.Is(err, unix.ENOSPC) || n < 10 {
		t.Fatalf("launch %d: %v", n, err)
	}
	for ref := uint64(1); ref < n-1; ref++ {
		if err := log.Append(Entry{Kind: EntryGo, Ref: engine.Ref{Allocation: ref, Attempt: 1}, Started: at(1)}); err != nil {
			t.Fatalf("the start of %d: %v", ref, err)
		}
	}
}

// A launch that is too large for the disk takes nothing of what is reserved for what
// must not fail.
func TestLogKeepsItsReserve(t *testing.T) {
	dir := t.TempDir()
	smalldisk.At(t, dir, "size=1m")
	log, _, err := OpenLog(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	free := func() uint64 {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		return st.Bfree
	}
	small, large := engine.Ref{Allocation: 1, Attempt: 1}, engine.Ref{Allocation: 2, Attempt: 1}
	if err := log.Append(Entry{Kind: EntryLaunch, Ref: small, Launch: &Launch{Ref: small, Job: &job.Job{}}}); err != nil {
		t.Fatal(err)
	}
	before := free()
	err = log.Append(Entry{Kind: EntryLaunch, Ref: large, Launch: &Launch{Ref: large, Job: &job.Job{}, Script: []byte(strings.Repeat("x", 2<<20))}})
	if !errors.Is(err, unix.ENOSPC) || free() != before {
		t.Fatalf("%v, %d pages free, %d before", err, free(), before)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := log.Append(Entry{Kind: EntryGo, Ref: small, Started: at(1)}); err != nil {
		t.Errorf("the start of what was launched: %v", err)
	}
}
