package asuser

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenStreamNeverWaits: a named pipe without a reader is refused for output, one with a reader
// is written to, none is taken for input, and what is opened blocks as usual.
//
// Seen to fail with: O_NONBLOCK left out (it waits for ever), and left set on the file.
func TestOpenStreamNeverWaits(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const create = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	for name, open := range map[string]func(string, int, os.FileMode) (*os.File, error){"as another": OpenFile, "as itself": os.OpenFile} {
		if f, err := OpenStream(open, pipe, create, 0o666); !errors.Is(err, errNoReader) {
			t.Fatalf("%s, nobody reads: %v, %v", name, f, err)
		}
		if f, err := OpenStream(open, pipe, os.O_RDONLY, 0); !errors.Is(err, errPipeInput) {
			t.Fatalf("%s, for input: %v, %v", name, f, err)
		}
		reader, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		plain := filepath.Join(t.TempDir(), "plain")
		for _, file := range []string{pipe, plain, os.DevNull} {
			f, err := OpenStream(open, file, create, 0o666)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, file, err)
			}
			if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
				t.Errorf("%s: %s has flags %o, %v", name, file, flags, err)
			}
			if _, err := f.WriteString("text"); err != nil {
				t.Error(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		if b, err := io.ReadAll(reader); string(b) != "text" || err != nil {
			t.Errorf("%s: the reader got %q, %v", name, b, err)
		}
		if b, err := os.ReadFile(plain); string(b) != "text" || err != nil {
			t.Errorf("%s: the file has %q, %v", name, b, err)
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}
}
