package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/gateway"
)

// sendRaw sends bytes and returns what comes until the gateway closes the connection.
func (w *world) sendRaw(text string) string {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		w.t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		w.t.Fatal(err)
	}
	return string(got)
}

func TestSlowClients(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{Limits: gateway.Limits{Header: 100 * time.Millisecond, Idle: 100 * time.Millisecond, Stall: 200 * time.Millisecond, HeaderBytes: 4096}})
	arrived := make(chan string, 10)
	w.routes(chat(handled(t, "1.1", func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		arrived <- fmt.Sprint(len(body))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	})))
	if got := w.sendRaw("GET / HTTP/1.1\r\nHost: chat.localhost\r\nX-Slow: "); strings.Contains(got, "200") {
		t.Errorf("a head that does not end: %q", got)
	}
	if got := w.sendRaw("GET / HTTP/1.1\r\nHost: chat.localhost\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("a connection that stays idle: %q", got)
	}
	<-arrived
	got := w.sendRaw("POST / HTTP/1.1\r\nHost: chat.localhost\r\nContent-Length: 100\r\n\r\nhalf")
	if !strings.HasPrefix(got, "HTTP/1.1 408") || !strings.Contains(got, "did not come within 200ms") {
		t.Errorf("a body that does not end: %q", got)
	}
	if got := w.sendRaw("GET / HTTP/1.1\r\nHost: chat.localhost\r\nX-Large: " + strings.Repeat("x", 20_000) + "\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 431") {
		t.Errorf("a head of 20 kB: %q", got)
	}
}

// TestClientThatDoesNotRead: an answer that nobody takes is broken off, and counts no more.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{Limits: gateway.Limits{Stall: 200 * time.Millisecond}})
	broken := make(chan error, 1)
	w.routes(chat(handled(t, "1.1", func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for part := make([]byte, 1<<20); err == nil; {
			_, err = w.Write(part)
		}
		broken <- err
	})))
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: chat.localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-broken; err == nil {
		t.Error("the answer was not broken off")
	}
	w.source.waitLoad(t, "nothing in flight", func(l api.GatewayLoad) bool {
		return l.Services[0].Requests == 1 && len(l.Services[0].InFlight) == 0
	})
}

// TestSilentStreamGoesOn: a stream that says nothing for longer than Stall is not cut, with HTTP/1.1
// and with HTTP/2.
func TestSilentStreamGoesOn(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			const stall = 100 * time.Millisecond
			w := startGateway(t, gateway.Config{Limits: gateway.Limits{Stall: stall}})
			w.routes(chat(handled(t, "1.1", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 2 {
					fmt.Fprintf(w, "data: %d\n\n", i)
					_ = http.NewResponseController(w).Flush()
					<-time.After(4 * stall) // the silence that the test is about
				}
			})))
			c := w.client
			if protocol == "HTTP/2.0" {
				c = w.plainHTTP2()
			}
			resp, err := c.Get("http://chat.localhost/")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "data: 0\n\ndata: 1\n\n" || resp.Proto != protocol {
				t.Errorf("%s: %q %v", resp.Proto, text, err)
			}
		})
	}
}

func TestFirstByteOfAnAnswer(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{})
	release := make(chan struct{})
	defer close(release)
	r := chat(handled(t, "1.1", func(http.ResponseWriter, *http.Request) { <-release }))
	r.Timeout = 100 * time.Millisecond
	w.routes(r)
	status, text, _ := w.get("http://chat.localhost/")
	if status != 504 || !strings.Contains(text, "a replica of team/chat sent no answer within") {
		t.Errorf("%d %s", status, text)
	}
	w.source.waitLoad(t, "one request, failed", func(l api.GatewayLoad) bool { return l.Services[0].Failed == 1 && l.Services[0].Requests == 1 })
}

func TestRequestsAndConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	w := startGateway(t, gateway.Config{Limits: gateway.Limits{Requests: 1, Connections: 2}})
	arrived, release := make(chan struct{}), make(chan struct{})
	w.routes(chat(handled(t, "1.1", func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-release })))
	done := make(chan struct{})
	go func() { defer close(done); _, _, _ = w.send(http.MethodGet, "http://chat.localhost/", "") }()
	<-arrived
	status, text, h := w.get("http://chat.localhost/")
	if status != 503 || h.Get("Retry-After") != "1" || !strings.Contains(text, "has 1 requests at once") {
		t.Errorf("%d %s", status, text)
	}
	if got := w.sendRaw("GET / HTTP/1.1\r\n"); !strings.HasPrefix(got, "HTTP/1.1 503") {
		t.Errorf("a third connection: %q", got)
	}
	close(release)
	<-done
}

// certificateFiles makes a certificate for a name and writes it over those of before.
func certificateFiles(t *testing.T, dir, name string, at time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := errors.Join(os.WriteFile(file, pem.EncodeToMemory(block), 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLSWithReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := certificateFiles(t, dir, "first.example.org", time.Now().Add(-2*time.Hour))
	w := startGateway(t, gateway.Config{Cert: cert, Key: key})
	r := chat(handled(t, "1.1", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("X-Forwarded-Proto")) }))
	w.routes(r)
	name := func() string {
		c, err := tls.Dial("tcp", w.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // the test looks at the certificate
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if c.ConnectionState().NegotiatedProtocol != "h2" {
			t.Errorf("the protocol is %q", c.ConnectionState().NegotiatedProtocol)
		}
		return c.ConnectionState().PeerCertificates[0].DNSNames[0]
	}
	if got := name(); got != "first.example.org" {
		t.Fatalf("the certificate is of %s", got)
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true} //nolint:gosec // as above
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+w.addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "chat.localhost"
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.ProtoMajor != 2 || string(text) != "https" {
		t.Errorf("%s %q", resp.Proto, text)
	}
	if err := errors.Join(os.WriteFile(cert, []byte("broken"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "first.example.org" {
		t.Errorf("with a broken file the certificate is of %s", got)
	}
	certificateFiles(t, dir, "second.example.org", time.Now().Add(-time.Hour))
	for late := time.Now().Add(20 * time.Second); name() != "second.example.org"; <-time.After(50 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the new certificate is not used")
		}
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg  gateway.Config
		want string
	}{
		{gateway.Config{Cert: "x"}, "a certificate has two files, and one is missing"},
		{gateway.Config{Cert: "/none", Key: "/none"}, "the certificate /none with the key /none cannot be used"},
		{gateway.Config{Access: "/none/access"}, "access log: open /none/access"},
	} {
		if _, err := gateway.New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestAccessLogAndMetrics(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "access.log")
	w := startGateway(t, gateway.Config{Access: name})
	w.routes(chat(replica(t, "4.1", 3)))
	if status, _, _ := w.get("http://chat.localhost/a?secret=1", "User-Agent", "test"); status != 200 {
		t.Fatal(status)
	}
	if err := os.Rename(name, name+".1"); err != nil {
		t.Fatal(err)
	}
	if err := w.g.Reopen(); err != nil {
		t.Fatal(err)
	}
	w.get("http://none.localhost/")
	metrics := httptest.NewRecorder()
	w.g.Metrics().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/", nil))
	for _, line := range []string{
		`cox_gateway_requests_total{code="2xx",revision="3",service="team/chat"} 1`,
		`cox_gateway_unknown_requests_total 1`,
		`cox_gateway_replicas{revision="3",service="team/chat",state="ready"} 1`,
		`cox_gateway_first_byte_seconds_count{revision="3",service="team/chat"} 1`,
		`cox_gateway_server_connected 1`,
	} {
		if !strings.Contains(metrics.Body.String(), line+"\n") {
			t.Errorf("the metrics have no line %s", line)
		}
	}
	w.client.CloseIdleConnections()
	w.stop()
	first, second := readLine(t, name+".1"), readLine(t, name)
	if first["service"] != "team/chat" || first["status"] != 200.0 || first["path"] != "/a" || first["backend"] != "4.1" || first["revision"] != 3.0 || first["user_agent"] != "test" || first["bytes"] != 3.0 {
		t.Errorf("the line is %v", first)
	}
	if second["status"] != 404.0 || second["host"] != "none.localhost" || second["service"] != nil {
		t.Errorf("the line is %v", second)
	}
}

// readLine reads a file of one line of JSON.
func readLine(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(text, &line); err != nil {
		t.Fatalf("%s: %v: %s", name, err, text)
	}
	return line
}
