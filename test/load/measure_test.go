package load

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// figures are what a shift takes: the largest values within it, and what is held at its
// end, when nothing is left to do.
type figures struct {
	rss, db, wal, packs, fds  int64 // within
	heap                      int64 // at the end, as all that follows
	endFDs, goroutines, files int64
}

// sample takes notice of what the server's process and its folder have now.
func (f *figures) sample(t *testing.T, pid int, dir string) {
	f.rss = max(f.rss, resident(t, pid))
	f.fds = max(f.fds, descriptors(t, pid))
	var db, wal, packs int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		switch {
		case strings.HasSuffix(path, "-wal"):
			wal += info.Size()
		case strings.HasSuffix(path, ".pack"):
			packs += info.Size()
		default:
			db += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Errorf("the server's folder: %v", err)
	}
	f.db, f.wal, f.packs = max(f.db, db), max(f.wal, wal), max(f.packs, packs)
}

func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil // a pack was purged meanwhile
	}
	return err
}

func resident(t *testing.T, pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatalf("the server's process has ended: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("/proc says nothing of the server's memory")
	return 0
}

func descriptors(t *testing.T, pid int) int64 {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatalf("the server's process has ended: %v", err)
	}
	return int64(len(list))
}

// mib is 1 MiB.
const mib = 1 << 20

// bounds say how much more the last shift may take than the second, in parts of a
// hundred and beyond that. At the end two things vary in the heap that are bounded
// elsewhere: a window of 4,096 to 8,192 events (3 MiB), and the states that nodes once
// had, which the core keeps until it knows more than 4,192 (9 MiB). What is taken within
// a shift depends on when the collector and the checkpoints come.
var bounds = []struct {
	what   string
	of     func(*figures) int64
	part   int64
	beyond int64
	unit   int64
}{
	{"heap at its end, KiB", func(f *figures) int64 { return f.heap }, 5, 12 * mib, 1 << 10},
	{"goroutines at its end", func(f *figures) int64 { return f.goroutines }, 0, 2, 1},
	{"descriptors at its end", func(f *figures) int64 { return f.endFDs }, 0, 3, 1},
	{"most descriptors", func(f *figures) int64 { return f.fds }, 25, 16, 1},
	{"resident memory, MiB", func(f *figures) int64 { return f.rss }, 25, 16 * mib, mib},
	{"journal.db, MiB", func(f *figures) int64 { return f.db }, 10, 4 * mib, mib},
	{"write-ahead log, MiB", func(f *figures) int64 { return f.wal }, 25, 32 * mib, mib},
	{"packs of blobs, MiB", func(f *figures) int64 { return f.packs }, 10, 4 * mib, mib},
}

// judgeShifts prints the figures and compares the last shift with the second.
func judgeShifts(t *testing.T, all []figures) {
	for _, b := range bounds {
		var shown []string
		for i := range all {
			shown = append(shown, fmt.Sprint(b.of(&all[i])/b.unit))
		}
		t.Logf("%-28s %s", b.what, strings.Join(shown, "  "))
		second, last := b.of(&all[1]), b.of(&all[len(all)-1])
		if last > second+second*b.part/100+b.beyond {
			t.Errorf("%s: %d in the last shift, %d in the second: it grows", b.what, last/b.unit, second/b.unit)
		}
	}
}

// printLatency prints what the requests took.
func printLatency(t *testing.T, took map[string][]time.Duration) {
	t.Logf("%-10s %7s %9s %9s %9s", "verb", "times", "p50 ms", "p99 ms", "max ms")
	verbs := []string{}
	for v := range took {
		verbs = append(verbs, v)
	}
	slices.Sort(verbs)
	for _, v := range verbs {
		d := took[v]
		slices.Sort(d)
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		t.Logf("%-10s %7d %9.2f %9.2f %9.2f", v, len(d), ms(d[len(d)/2]), ms(d[len(d)*99/100]), ms(d[len(d)-1]))
	}
}
