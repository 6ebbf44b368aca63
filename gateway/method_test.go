package gateway_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/coxswain-sched/coxswain/gateway"
)

// statusOverHTTP2 sends a request with any method over HTTP/2 without TLS, and returns the answer's
// status.
func (w *world) statusOverHTTP2(method, path string) string {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	var head bytes.Buffer
	fields := hpack.NewEncoder(&head)
	for _, f := range [][2]string{{":method", method}, {":scheme", "http"}, {":authority", "chat.localhost"}, {":path", path}} {
		if err := fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		w.t.Fatal(err)
	}
	framer := http2.NewFramer(c, c)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := framer.WriteSettings(); err != nil {
		w.t.Fatal(err)
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
		w.t.Fatal(err)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			w.t.Fatal(err)
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			return f.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return f.ErrCode.String()
		}
	}
}

// TestMethodIsOneWord: a method with a request line in it reaches no replica; one that nobody knows does.
//
// Seen to fail with: a gateway that looks at no method.
func TestMethodIsOneWord(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	var got atomic.Int32
	b, _ := keptBackend(t, func(c net.Conn, _ *http.Request) bool {
		got.Add(1)
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		return err == nil
	})
	w.routes(chat(b))
	for _, method := range []string{"GET /private HTTP/1.1", "GET\t/", "G(T"} {
		if status := w.statusOverHTTP2(method, "/"); status != "400" || got.Load() != 0 {
			t.Errorf("%q: %s, and the replica got %d requests", method, status, got.Load())
		}
	}
	if status := w.statusOverHTTP2("M-SEARCH", "/"); status != "200" || got.Load() != 1 {
		t.Errorf("%s, and the replica got %d requests", status, got.Load())
	}
}
