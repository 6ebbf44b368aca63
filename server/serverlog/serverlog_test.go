package serverlog

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestARepeatedMessageIsBounded: a message that comes ten thousand times in a second costs a hundred entries,
// the next one says how many are missing, and other messages are not held up by it.
func TestARepeatedMessageIsBounded(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1e9, 0)
	log := slog.New(NewBounded(slog.NewTextHandler(&out, nil), func() time.Time { return now })).With("pid", 7)
	for range 10_000 {
		log.Info("refused")
	}
	if n := strings.Count(out.String(), "\n"); n != burst {
		t.Errorf("%d entries, not %d", n, burst)
	}
	log.Error("another")
	now = now.Add(perEntry)
	out.Reset()
	log.Info("refused")
	if want := fmt.Sprintf("msg=refused pid=7 left_out=%d\n", 10_000-burst); !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q does not end with %q", out.String(), want)
	}
}

// TestMessagesOfRequestsShareOneCount: a defect that puts parts of requests into messages does not fill the log.
func TestMessagesOfRequestsShareOneCount(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1e9, 0)
	h := NewBounded(slog.NewTextHandler(&out, nil), func() time.Time { return now })
	for i := range 10_000 {
		slog.New(h).Info(fmt.Sprint("path ", i))
	}
	if n := strings.Count(out.String(), "\n"); n != maxMessages+burst || len(h.rates.of) > maxMessages+1 {
		t.Errorf("%d entries, %d counts", n, len(h.rates.of))
	}
}

// TestLongEntriesAreShortened: texts, errors, groups, keys and many values.
func TestLongEntriesAreShortened(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	for name, attrs := range map[string][]any{
		"text":   {"a", long},
		"error":  {"a", fmt.Errorf("%s", long)},
		"group":  {slog.Group("g", "a", long)},
		"values": {"a", strings.Split(long, "ä")},
	} {
		var out bytes.Buffer
		slog.New(NewBounded(slog.NewTextHandler(&out, nil), time.Now)).Info("m", attrs...)
		if out.Len() > 2*maxText || !strings.Contains(out.String(), "bytes more)") {
			t.Errorf("%s: %d bytes: %.80s", name, out.Len(), out.String())
		}
	}
	var out bytes.Buffer
	log := slog.New(NewBounded(slog.NewTextHandler(&out, nil), time.Now))
	log.Info(long)
	log.With("b", long).WithGroup("g").Info("m")
	var many []any
	for i := range 10_000 {
		many = append(many, fmt.Sprint(i), long)
	}
	log.Info("m", many...)
	if out.Len() > (maxAttrs+6)*maxText {
		t.Errorf("%d bytes", out.Len())
	}
}

func openTestFile(t *testing.T, size int64) *File {
	t.Helper()
	l, err := OpenFile(filepath.Join(t.TempDir(), "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	l.size = size
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestTheLogIsRotated writes a hundred times what is kept: the newest entries are there, in order and whole,
// and the files stay within their bounds. A log that is opened again is appended to.
func TestTheLogIsRotated(t *testing.T) {
	l := openTestFile(t, 1000)
	const lines = 10_000
	for i := range lines {
		if _, err := fmt.Fprintf(l, "%09d\n", i); err != nil {
			t.Fatal(err)
		}
		if i == lines/2 {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := OpenFile(l.name)
			if err != nil {
				t.Fatal(err)
			}
			again.size = l.size
			l = again
		}
	}
	var all []byte
	for i := oldFiles; i >= 0; i-- {
		name := l.oldName(i)
		if i == 0 {
			name = l.name
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 || len(b) > 1000 {
			t.Errorf("%s: %d bytes, %v, %v", name, len(b), st.Mode(), err)
		}
		all = append(all, b...)
	}
	kept := strings.Split(strings.TrimSpace(string(all)), "\n")
	for i, line := range kept {
		if want := fmt.Sprintf("%09d", lines-len(kept)+i); line != want {
			t.Fatalf("line %d is %q, not %q", i, line, want)
		}
	}
	if left, err := filepath.Glob(l.name + "*"); err != nil || len(left) != oldFiles+1 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestTheLogLeavesTheLastRoom: where the disk is nearly full nothing is written, and later the log
// says how much is missing.
func TestTheLogLeavesTheLastRoom(t *testing.T) {
	l := openTestFile(t, fileSize)
	free := uint64(reserve - 1)
	l.room = func(*os.File) (uint64, uint64) { return free, 100 << 30 }
	for range 3 {
		if n, err := l.Write([]byte("lost\n")); n != 5 || err != nil {
			t.Error(n, err)
		}
	}
	free = reserve
	if _, err := l.Write([]byte("kept\n")); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(l.name)
	if want := "# the disk was full: 3 entries were left out\nkept\n"; err != nil || string(b) != want {
		t.Errorf("%q, not %q: %v", b, want, err)
	}
}
