package fastclient_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/api/frame"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// serve answers on a socket with net/http, and counts connections.
func serve(t *testing.T, h http.HandlerFunc) (*fastclient.Client, *atomic.Int32) {
	t.Helper()
	return serveOn(t, "unix", filepath.Join(t.TempDir(), "s"), h)
}

// serveOn is serve on a socket, or over TCP.
func serveOn(t *testing.T, network, at string, h http.HandlerFunc) (*fastclient.Client, *atomic.Int32) {
	t.Helper()
	ln, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	var conns atomic.Int32
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(ln) }()
	t.Cleanup(func() { srv.Close(); <-done })
	to := address.Address{Socket: at, URL: "http://cox"}
	if network == "tcp" {
		to = address.Address{URL: "http://" + ln.Addr().String(), Token: "secret"}
	}
	c := fastclient.New(to)
	t.Cleanup(c.Close)
	return c, &conns
}

// raw answers every connection with the bytes as they are, then closes it.
func raw(t *testing.T, answer string) *fastclient.Client {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, answer)
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	c := fastclient.New(address.Address{URL: "http://" + ln.Addr().String(), Token: "secret"})
	t.Cleanup(c.Close)
	return c
}

// TestOneConnection: requests follow each other on one connection, whatever form the
// answers have, also if an answer was not read.
func TestOneConnection(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20000)
	c, conns := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(api.VersionHeader) == "" {
			t.Error("the version is not sent")
		}
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/chunks":
			w.Header().Set("Trailer", "Cox-Log-End")
			for i := 0; i < len(long); i += 7777 {
				_, _ = io.WriteString(w, long[i:min(i+7777, len(long))])
				w.(http.Flusher).Flush()
			}
			w.Header().Set("Cox-Log-End", "job-ended")
		case "/echo":
			_, _ = w.Write(body)
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		}
	})
	for range 3 {
		r, err := c.Get("/chunks", "")
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.All()
		if err != nil || string(b) != long || r.End != "job-ended" {
			t.Fatalf("%d bytes of %d, end %q, %v", len(b), len(long), r.End, err)
		}
		r, err = c.Post("/echo", []byte(long))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = r.All(); err != nil || string(b) != long {
			t.Fatalf("%d bytes of %d, %v", len(b), len(long), err)
		}
		if r, err = c.Get("/nothing", ""); err != nil || r.Status != 204 {
			t.Fatal(r, err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for nine requests", n)
	}
	if _, err := c.Get("/chunks", ""); err != nil { // not read
		t.Fatal(err)
	}
	v, err := c.JSON("POST", "/echo", []byte(`{"a":[1,2]}`))
	if err != nil || len(v.Get("a").Items()) != 2 {
		t.Errorf("after an answer that was not read: %v, %v", v, err)
	}
}

// TestProblem: an error of the server keeps its kind, remedy and places.
func TestProblem(t *testing.T) {
	c, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(422)
		_, _ = io.WriteString(w, `{"status":422,"title":"invalid request","detail":"no","remedy":"do","errors":[{"file":"f","line":3,"message":"m"}]}`)
	})
	_, err := c.JSON("POST", "/v1/jobs", []byte("{}"))
	var e *api.Error
	if !errors.As(err, &e) || fault.KindOf(err) != fault.Invalid || e.Remedy != "do" || len(e.Errors) != 1 || e.Errors[0].Line != 3 {
		t.Errorf("got %#v, kind %s", err, fault.KindOf(err))
	}
}

// TestBrokenAnswers: an answer that is no HTTP or ends early is an error that says the
// outcome is not known; nothing hangs, nothing is taken for whole.
func TestBrokenAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":           "",
		"garbage":           "SSH-2.0-OpenSSH_9\r\n",
		"no header end":     "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
		"short body":        "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n{}",
		"short chunk":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{}",
		"no last chunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
		"negative length":   "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n",
		"wrong chunk":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"wrong status":      "HTTP/1.1 OK\r\n\r\n",
		"endless header":    "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<20),
		"not JSON":          "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
		"gzip of all sorts": "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			v, err := raw(t, answer).JSON("GET", "/v1", nil)
			if err == nil {
				t.Errorf("taken for %v", v)
			}
		})
	}
}

// TestUntilClose: an answer without a length ends with its connection.
func TestUntilClose(t *testing.T) {
	v, err := raw(t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n\r\n{\"a\":7}").JSON("GET", "/v1", nil)
	if err != nil || v.Get("a").Int() != 7 {
		t.Errorf("got %v, %v", v, err)
	}
}

// TestNoServer says what to do, and an address that cannot be spoken to is refused.
func TestNoServer(t *testing.T) {
	c := fastclient.New(address.Address{Socket: filepath.Join(t.TempDir(), "none"), URL: "http://cox"})
	if _, err := c.Get("/v1", ""); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Remedy(err), "cox up") {
		t.Errorf("got %v (%s)", err, fault.Remedy(err))
	}
	c = fastclient.New(address.Address{URL: "https://host:1"})
	if _, err := c.Get("/v1", ""); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("got %v", err)
	}
}

// lateInput is the input of a command, which comes when told and notes how its writes went.
type lateInput struct {
	now  chan struct{}
	sent chan error
}

func (l *lateInput) Read([]byte) (int, error) { return 0, io.EOF }

// WriteTo is what io.Copy calls.
func (l *lateInput) WriteTo(w io.Writer) (int64, error) {
	<-l.now
	n, err := w.Write([]byte("typed"))
	l.sent <- err
	return int64(n), err
}

// TestInputAfterTheCommand: input that comes after the end of the command goes nowhere, least of all to
// a connection that has got the descriptor's number since.
//
// Seen to fail with: a write to the descriptor's number after Close. srun --jobid and sattach sent the
// end of the input to the job's supervisor, which hung up.
func TestInputAfterTheCommand(t *testing.T) {
	c, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+frame.Protocol+"\r\n\r\n")
		_ = frame.NewWriter(conn).Write(frame.Exit, []byte("{}"))
	})
	in := &lateInput{now: make(chan struct{}), sent: make(chan error, 1)}
	if code, err := c.Exec("1", []string{"true"}, in, io.Discard, io.Discard); err != nil || !code.OK() {
		t.Fatalf("%v, %v", code, err)
	}
	for range 8 { // one of them has the number
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) })
	}
	close(in.now)
	if err := <-in.sent; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the input was written somewhere: %v", err)
	}
}

// endless is input without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// TestCommandThatDoesNotRead: the end of a command ends a write of input that waits for it, on a socket
// and over TCP.
//
// Seen to fail with: a Close that waits for the write, on either.
func TestCommandThatDoesNotRead(t *testing.T) {
	for network, at := range map[string]string{"unix": filepath.Join(t.TempDir(), "s"), "tcp": "127.0.0.1:0"} {
		t.Run(network, func(t *testing.T) {
			c, _ := serveOn(t, network, at, func(w http.ResponseWriter, _ *http.Request) {
				conn, rest, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { conn.Close() })
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+frame.Protocol+"\r\n\r\n")
				_, _ = rest.ReadByte() // the input is on its way
				_ = frame.NewWriter(conn).Write(frame.Exit, []byte("{}"))
			})
			ended := make(chan error, 1)
			go func() {
				_, err := c.Exec("1", []string{"true"}, endless{}, io.Discard, io.Discard)
				ended <- err
			}()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("it does not end")
			}
		})
	}
}
