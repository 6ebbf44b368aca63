package gateway

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// accessLog writes one line of JSON for each request. It is safe for concurrent use; nil writes nothing.
type accessLog struct {
	mu   sync.Mutex
	name string // of the file; empty: it cannot be opened anew
	out  io.WriteCloser
	buf  *bufio.Writer
}

// accessLine is a line of the access log. The query of a request, its headers and its body are not in it.
type accessLine struct {
	Time     time.Time `json:"time"` // when the request's head was here
	Client   string    `json:"client"`
	Proto    string    `json:"proto"`
	Method   string    `json:"method"`
	Host     string    `json:"host"`
	Path     string    `json:"path"`
	Status   int       `json:"status"` // 499: the client went before the answer
	Bytes    int64     `json:"bytes"`  // of the answer's body
	Service  string    `json:"service,omitempty"`
	Revision uint32    `json:"revision,omitempty"`
	Backend  string    `json:"backend,omitempty"` // job and attempt
	Tries    int       `json:"tries,omitempty"`
	Held     float64   `json:"held_ms,omitempty"`
	First    float64   `json:"first_byte_ms,omitempty"`
	Took     float64   `json:"took_ms"`
	Agent    string    `json:"user_agent,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// openAccessLog appends to a file; an empty name is no log.
func openAccessLog(name string) (*accessLog, error) {
	if name == "" {
		return nil, nil
	}
	a := &accessLog{name: name}
	if err := a.reopen(); err != nil {
		return nil, err
	}
	return a, nil
}

// reopen begins with the file of the log's name, which another program may have moved away.
func (a *accessLog) reopen() error {
	if a == nil || a.name == "" {
		return nil
	}
	f, err := os.OpenFile(a.name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return fault.New(fault.KindOf(err), "access log: %w", err).Advise("name a file that the gateway may write to, or leave the access log off")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var closing error
	if a.out != nil {
		a.buf.Flush()
		closing = a.out.Close()
	}
	a.out, a.buf = f, bufio.NewWriterSize(f, 64<<10)
	return closing
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// write writes the line of a request that has ended.
func (a *accessLog) write(x *exchange) {
	if a == nil {
		return
	}
	client, _, err := net.SplitHostPort(x.r.RemoteAddr)
	if err != nil {
		client = x.r.RemoteAddr
	}
	l := accessLine{
		Time: x.start.UTC(), Client: client, Proto: x.r.Proto, Method: x.r.Method, Host: x.r.Host, Path: x.r.URL.Path,
		Status: x.status, Bytes: x.bytes, Backend: x.replica, Tries: x.tries, Held: millis(x.held), First: millis(x.first),
		Took: millis(time.Since(x.start)), Agent: x.r.UserAgent(),
	}
	if x.service != nil {
		l.Service = x.service.name
	}
	if x.meter != nil {
		l.Revision = x.meter.revision
	}
	if x.err != nil {
		l.Error = x.err.Error()
	}
	text, err := json.Marshal(l)
	if err != nil {
		return // a text that is no UTF-8 is written with replacements, so this does not happen
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.buf.Write(append(text, '\n')) // a full disk costs lines, not requests
}

// flush writes out what was kept back.
func (a *accessLog) flush() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.buf.Flush() != nil {
		a.buf.Reset(a.out) // a writer that failed once would write no more
	}
}
