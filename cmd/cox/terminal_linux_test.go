package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/frame"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
)

// console is a cox on a terminal, with all that it wrote.
type console struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func openConsole(t *testing.T, f *clitest.Server, args ...string) *console {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "cox")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, cmd: exec.Command(name, args...), more: make(chan struct{}, 1)}
	c.cmd.Env = append(os.Environ(), "COX_SERVER="+f.URL, "TERM=xterm-256color")
	if c.tty, err = pty.StartWithSize(c.cmd, &pty.Winsize{Rows: 10, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	go c.read()
	t.Cleanup(func() { c.tty.Close(); _ = c.cmd.Process.Kill() })
	return c
}

func (c *console) read() {
	buf := make([]byte, 4096)
	for {
		n, err := c.tty.Read(buf)
		c.mu.Lock()
		c.text.Write(buf[:n])
		c.mu.Unlock()
		select {
		case c.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// until waits for a text after all that was waited for before.
func (c *console) until(text string) {
	c.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		c.mu.Lock()
		at := bytes.Index(c.text.Bytes(), []byte(text))
		if at >= 0 {
			c.text.Next(at + len(text))
		}
		rest := c.text.String()
		c.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-c.more:
		case <-deadline:
			c.t.Fatalf("%q was never written:\n%q", text, rest)
		}
	}
}

func (c *console) press(keys string) {
	c.t.Helper()
	if _, err := c.tty.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) wait() int {
	_ = c.cmd.Wait() // the code says it
	return c.cmd.ProcessState.ExitCode()
}

func TestASelectionIsConfirmedOnATerminal(t *testing.T) {
	f := newFake(t)
	f.Mux.HandleFunc("GET /v1/jobs", clitest.ServeRows(map[string]string{"name": "7"}, map[string]string{"name": "8"}, map[string]string{"name": "9"}))
	f.Answer("POST /v1/jobs/change", func(*http.Request) (any, error) { return api.Changed{Matched: 3, Changed: 3}, nil })
	no := openConsole(t, f, "cancel", "-u", "anna")
	no.until("cancel 3 jobs? [y/N] ")
	no.press("\r")
	no.until("nothing was changed")
	if code := no.wait(); code != 4 {
		t.Errorf("exit %d", code)
	}
	if got := f.Last(t, nil); strings.HasPrefix(got, "POST") {
		t.Fatal("changed although the answer was no")
	}
	yes := openConsole(t, f, "cancel", "-u", "anna")
	yes.until("[y/N] ")
	yes.press("y\r")
	yes.until("cancelled 3 jobs")
	if code := yes.wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestAWatchedQueueIsDrawnInPlace: on events, in colours, no more rows than the
// terminal has.
func TestAWatchedQueueIsDrawnInPlace(t *testing.T) {
	f := newFake(t)
	var mu sync.Mutex
	rows := []map[string]string{{"name": "7", "state": "RUNNING", "job_name": "first"}}
	f.Mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		clitest.WriteRows(w, r, rows...)
	})
	more := make(chan struct{})
	f.Mux.HandleFunc("GET /v1/watch", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
		io.WriteString(w, "id: 42\nevent: change\ndata: {\"seq\":42}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	c := openConsole(t, f, "queue", "--watch")
	c.until("\x1b[32mRUNNING\x1b[0m")
	c.until("1 row")
	mu.Lock()
	for range 20 {
		rows = append(rows, map[string]string{"name": "8", "state": "PENDING", "job_name": "second", "reason_text": strings.Repeat("long ", 40)})
	}
	mu.Unlock()
	close(more)
	c.until("\x1b[3A\r") // up over header, row and foot
	c.until("second")
	c.until("… 14 more; 21 rows")
	c.press("\x03")
	if code := c.wait(); code != -1 {
		t.Errorf("exit %d", code)
	}
}

// TestExecOnATerminal: the command gets a terminal of this one's size, its keys as
// they are, Ctrl-C too, and the terminal is put back.
func TestExecOnATerminal(t *testing.T) {
	f := newFake(t)
	asked, sizes := make(chan api.Exec, 1), make(chan [2]uint16, 1)
	f.Mux.HandleFunc("POST /v1/jobs/7/exec", func(w http.ResponseWriter, r *http.Request) {
		var e api.Exec
		if err := json.NewDecoder(decoder(r.Header.Get(frame.Header))).Decode(&e); err != nil {
			t.Error(err)
		}
		asked <- e
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: cox-exec\r\n\r\n")
		out := frame.NewWriter(conn)
		_ = out.Write(frame.Stdout, []byte("ready\r\n"))
		var buf []byte
		for {
			kind, payload, grown, err := frame.Read(rw, buf)
			if err != nil {
				return
			}
			buf = grown
			switch {
			case kind == frame.Window:
				rows, cols, _ := frame.GetWindow(payload)
				sizes <- [2]uint16{rows, cols}
			case kind == frame.Stdin && bytes.Contains(payload, []byte{3}):
				_ = out.Write(frame.Exit, []byte(`{"signal":2}`))
				return
			}
		}
	})
	c := openConsole(t, f, "exec", "7", "--", "bash")
	c.until("ready")
	if e := <-asked; !e.TTY || e.Window != (api.Window{Rows: 10, Cols: 80}) || len(e.Env) != 1 || e.Env[0] != "TERM=xterm-256color" {
		t.Errorf("%+v", e)
	}
	if err := pty.Setsize(c.tty, &pty.Winsize{Rows: 33, Cols: 99}); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-sizes:
		if got != [2]uint16{33, 99} {
			t.Errorf("size %v", got)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the new size was never told")
	}
	c.press("\x03")
	if code := c.wait(); code != 130 {
		t.Errorf("exit %d", code)
	}
}

func TestNoColour(t *testing.T) {
	f := newFake(t)
	f.Mux.HandleFunc("GET /v1/jobs", clitest.ServeRows(map[string]string{"name": "7", "state": "RUNNING"}))
	c := openConsole(t, f, "queue", "--no-color")
	c.until("RUNNING")
	if code := c.wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(c.text.String(), "\x1b") {
		t.Errorf("%q", c.text.String())
	}
}

// TestSubmitOnATerminalSaysWhatWasAsked: before the number, and what to do next.
func TestSubmitOnATerminalSaysWhatWasAsked(t *testing.T) {
	f := newFake(t)
	f.Answer("POST /v1/jobs", func(*http.Request) (any, error) { return api.Submitted{ID: 7, Name: "train"}, nil })
	c := openConsole(t, f, "submit", clitest.WriteFile(t, "train.sbatch", "#!/bin/sh\n#SBATCH -N2 --gpus-per-node=4 -t 10\nsrun hostname\n"))
	c.until("train.sbatch: 2 nodes × 4 gpu, 2 tasks, 10 min")
	c.until(" train submitted")
	c.until("cox why 7   cox logs -f 7")
	if code := c.wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// decoder reads what stands in a header in base64.
func decoder(header string) io.Reader {
	return base64.NewDecoder(base64.StdEncoding, strings.NewReader(header))
}
