package transport

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestOneUserCannotTakeEveryConnection: TCP stands for a user who is no administrator.
func TestOneUserCannotTakeEveryConnection(t *testing.T) {
	r := start(t, nil)
	r.connLimit.mu.Lock()
	r.connLimit.user = 8
	r.connLimit.mu.Unlock()
	var open []net.Conn
	dial := func() (*http.Response, error) {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
		if _, err := c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			return nil, err
		}
		return http.ReadResponse(bufio.NewReader(c), nil)
	}
	for i := range 8 {
		if resp, err := dial(); err != nil || resp.StatusCode != 200 {
			t.Fatalf("connection %d: %v, %v", i+1, resp, err)
		}
	}
	if resp, err := dial(); err != nil || resp.StatusCode != fault.Unavailable.HTTPStatus() || !resp.Close {
		t.Errorf("one too many: %+v, %v", resp, err)
	}
	r.overSocket(t)
	for _, c := range open {
		_ = c.Close()
	}
	until(t, "no connection is counted", func() bool { // the server notices by itself that they are closed
		r.connLimit.mu.Lock()
		defer r.connLimit.mu.Unlock()
		return r.connLimit.of["tcp"] == 0
	})
	if resp, err := dial(); err != nil || resp.StatusCode != 200 {
		t.Errorf("afterwards: %v, %v", resp, err)
	}
}
