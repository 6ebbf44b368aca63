package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// etcdAddress is etcd's, inside the lab.
const etcdAddress = "127.0.0.1:2379"

// Second starts another apiserver beside the first, on the same etcd: "apiserver.NAME" for Kill,
// Freeze and Restart. It returns its address, which the certificate of the first holds for too.
// etcd is the way to etcd, as another address that leads there; empty: the usual. More arguments
// outrank those of the first.
func (l *Lab) Second(t testing.TB, name, etcd string, more ...string) (address string) {
	t.Helper()
	if K3s() != "" {
		t.Skip("a second apiserver is Kubernetes' own, and the first is K3s'")
	}
	l.mu.Lock()
	l.seconds++
	port := 1442 + l.seconds
	l.mu.Unlock()
	address = fmt.Sprintf("%s:%d", l.wire.server, port)
	words := []string{l.programs + "/kube", "apiserver"}
	for _, a := range l.apiserver() {
		if etcd != "" && strings.HasPrefix(a, "--etcd-servers=") {
			a = "--etcd-servers=http://" + etcd
		}
		words = append(words, a)
	}
	words = append(words, fmt.Sprintf("--secure-port=%d", port))
	d := &daemon{name: "apiserver." + name, words: append(words, more...), up: func(ctx context.Context) bool {
		return probe(ctx, l.admin, "https://"+address+"/readyz") == nil
	}}
	if err := l.start(t.Context(), d); err != nil {
		t.Fatalf("%v\n%s", err, l.Logs())
	}
	return address
}

// Near is the address of this machine as the lab reaches it: what listens there can stand
// between two of the lab's parts.
func (l *Lab) Near() string { return l.wire.near }

// Dial connects to what listens in the lab, at an address that only the lab has.
func (l *Lab) Dial(ctx context.Context, address string) (net.Conn, error) {
	type made struct {
		c   net.Conn
		err error
	}
	done := make(chan made, 1)
	go func() {
		runtime.LockOSThread()
		own, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- made{nil, err}
			return
		}
		defer own.Close()
		if err := unix.Setns(int(l.wire.space.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- made{nil, fmt.Errorf("the lab's network: %w", err)}
			return
		}
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil { // else the thread ends with this, and with it what it began
			runtime.UnlockOSThread()
		}
		done <- made{c, err}
	}()
	m := <-done
	return m.c, m.err
}

// DialEtcd connects to etcd.
func (l *Lab) DialEtcd(ctx context.Context) (net.Conn, error) { return l.Dial(ctx, etcdAddress) }

// Compact has etcd forget all that was before now, as it does by itself every five minutes.
func (l *Lab) Compact(t testing.TB) {
	t.Helper()
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := l.etcd(t.Context(), "/v3/kv/range", `{"key":"AA=="}`, &now); err != nil {
		t.Fatal(err)
	}
	if err := l.etcd(t.Context(), "/v3/kv/compaction", `{"physical":true,"revision":"`+now.Header.Revision+`"}`, nil); err != nil {
		t.Fatal(err)
	}
}

// etcd asks etcd something, in JSON.
func (l *Lab) etcd(ctx context.Context, path, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	way := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.DialEtcd(ctx) }}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+etcdAddress+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	r, err := (&http.Client{Transport: way}).Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return err
	case r.StatusCode != http.StatusOK:
		return fmt.Errorf("etcd: %s: %s: %s", path, r.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}
