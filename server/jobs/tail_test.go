package jobs

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// counted counts what is read of a file.
type counted struct {
	*os.File
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.File.Read(b)
	c.n += int64(n)
	return n, err
}

func (c *counted) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.File.ReadAt(b, at)
	c.n += int64(n)
	return n, err
}

// TestTailCostsWhatItShows asks for more lines than a long log has, from a file and
// from something that can only be read through.
func TestTailCostsWhatItShows(t *testing.T) {
	const lines = 4 << 20
	name := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(name, []byte(strings.Repeat("a\n", lines)), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]int64{1: 2, 3: 6, lines: 2 * lines, 2 * lines: 2 * lines, lines / 2: lines} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		c := &counted{File: f}
		kept, _, err := tailLines(c, n)
		if err != nil || len(kept) != 0 {
			t.Fatalf("%d kept, %v", len(kept), err)
		}
		if looked := c.n; looked > want+64<<10 {
			t.Errorf("%d lines: %d bytes were read to find them", n, looked)
		}
		if got, err := io.Copy(io.Discard, struct{ io.Reader }{f}); err != nil || got != want {
			t.Errorf("%d lines: %d bytes, %v", n, got, err)
		}
		_ = f.Close()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	kept, _, err := tailLines(struct{ io.Reader }{strings.NewReader(strings.Repeat("a\n", lines))}, lines)
	runtime.ReadMemStats(&after)
	if err != nil || len(kept) != 2*lines {
		t.Errorf("%d bytes, %v", len(kept), err)
	}
	// It was 40 times as much when each block that came cut anew.
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 20*2*lines {
		t.Errorf("%d bytes were moved for %d", spent, 2*lines)
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\n", 5, "a\n"}, {"", 3, ""}, {"\n\n\n", 2, "\n\n"}, {"abc", 1, "abc"},
	} {
		if got := string(lastLines([]byte(c.in), c.n)); got != c.want {
			t.Errorf("%q, %d: %q, not %q", c.in, c.n, got, c.want)
		}
	}
}
