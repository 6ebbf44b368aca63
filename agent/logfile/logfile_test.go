package logfile_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/logfile"
)

func openLog(t *testing.T, name string, limit int64, keep int) *logfile.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	l := logfile.Wrap(f, name, limit, keep, nil)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func openReader(t *testing.T, name string) *logfile.Reader {
	t.Helper()
	r, err := logfile.Open(name, os.Open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// readOn reads to the present end.
func readOn(t *testing.T, r *logfile.Reader) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := io.Copy(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestAFollowerSeesEveryLine: whatever the sizes of writes and limits, and however seldom it looks.
func TestAFollowerSeesEveryLine(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		name := filepath.Join(t.TempDir(), "out")
		l := openLog(t, name, 100+rnd.Int64N(200), 90)
		r := openReader(t, name)
		var wrote, got strings.Builder
		for n := range 300 {
			text := fmt.Sprintf("line %d %s\n", n, strings.Repeat("x", rnd.IntN(40)))
			if rnd.IntN(4) == 0 {
				text += text
			}
			if k, err := l.Write([]byte(text)); err != nil || k != len(text) {
				t.Fatal(k, err)
			}
			wrote.WriteString(text)
			if rnd.IntN(8) == 0 {
				got.WriteString(readOn(t, r))
			}
		}
		got.WriteString(readOn(t, r))
		if got.String() != wrote.String() {
			t.Fatalf("seed %d: read %d bytes of %d", seed, got.Len(), wrote.Len())
		}
	}
}

// TestSizeAndNumberAreKept: no file is larger, a line is whole, the newest are there, and who opens them
// reads them in order and from the end.
func TestSizeAndNumberAreKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	l := openLog(t, name, 100, 3)
	var wrote string
	for n := range 100 {
		text := fmt.Sprintf("this is line %d\n", n)
		if _, err := l.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		wrote += text
	}
	files, err := filepath.Glob(name + "*")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		info, _ := os.Stat(f)
		if err != nil || len(b) > 100 || !bytes.HasPrefix(b, []byte("this is")) || !bytes.HasSuffix(b, []byte("\n")) || info.Mode().Perm() != 0o640 {
			t.Errorf("%s, %s: %q %v", f, info.Mode(), b, err)
		}
	}
	r := openReader(t, name)
	all := readOn(t, r)
	if !strings.HasSuffix(wrote, all) || len(all) < 300 {
		t.Errorf("%q", all)
	}
	if at, err := r.Seek(-150, io.SeekEnd); err != nil || readOn(t, r) != all[at:] || len(all[at:]) != 150 {
		t.Errorf("from %d: %v", at, err)
	}
	part := make([]byte, 130)
	if n, err := r.ReadAt(part, 40); err != nil || string(part[:n]) != all[40:170] {
		t.Errorf("%q %v", part[:n], err)
	}
}

// TestALineThatIsTooLong is written all the same.
func TestALineThatIsTooLong(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	l := openLog(t, name, 10, 1)
	long := strings.Repeat("x", 100) + "\n"
	for range 2 {
		if n, err := l.Write([]byte(long)); n != len(long) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := readOn(t, openReader(t, name)); got != long+long {
		t.Errorf("%d bytes", len(got))
	}
}
