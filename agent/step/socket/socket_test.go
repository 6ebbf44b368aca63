package socket_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step/socket"
)

// TestNamesOfAnyLength talks over sockets with a short and a very long name.
func TestNamesOfAnyLength(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, strings.Repeat("a", 200), strings.Repeat("b", 200))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "s"), filepath.Join(deep, "s")} {
		if _, err := socket.Dial(name, 0); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("nobody is there: %v", err)
		}
		l, err := socket.Listen(name)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = io.WriteString(c, "hello")
				_ = c.Close()
			}
		}()
		c, err := socket.Dial(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c); err != nil || string(b) != "hello" {
			t.Errorf("%q, %v", b, err)
		}
		_ = c.Close()
		_ = l.Close()
		if st, err := os.Lstat(name); err != nil || st.Mode().Type() != fs.ModeSocket {
			t.Errorf("the socket is not where it belongs: %v", err)
		}
		if _, err := socket.Dial(name, 0); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("a listener that was closed: %v", err)
		}
	}
}
