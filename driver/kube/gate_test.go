package kube_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// gate is an address in front of API servers, or of etcd, as a load balancer's: it passes on
// connections and knows nothing of what is in them.
type gate struct {
	at string

	mu    sync.Mutex
	dial  func(context.Context) (net.Conn, error)
	pairs map[*pair]bool
	moved *sync.Cond
	shut  bool // nothing passes, new connections wait
	taken int  // connections that were passed on, ever
}

// pair is a connection and the one that it is passed on to.
type pair struct {
	a, b net.Conn
	deaf bool // what comes is dropped, and no end is told: the other side is not there any more
}

// newGate listens on an address of this machine, whatever the port.
func newGate(t *testing.T, host string, dial func(context.Context) (net.Conn, error)) *gate {
	t.Helper()
	ls, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{at: ls.Addr().String(), dial: dial, pairs: map[*pair]bool{}}
	g.moved = sync.NewCond(&g.mu)
	t.Cleanup(func() { _ = ls.Close(); g.open(); g.cut() })
	go func() {
		for {
			c, err := ls.Accept()
			if err != nil {
				return
			}
			go g.pass(t.Context(), c)
		}
	}()
	return g
}

// tcp dials an address.
func tcp(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", address) }
}

func (g *gate) pass(ctx context.Context, c net.Conn) {
	g.mu.Lock()
	for g.shut {
		g.moved.Wait()
	}
	dial := g.dial
	g.mu.Unlock()
	to, err := dial(ctx)
	if err != nil {
		_ = c.Close()
		return
	}
	p := &pair{a: c, b: to}
	g.mu.Lock()
	g.pairs[p] = true
	g.taken++
	g.mu.Unlock()
	go g.copy(p, p.a, p.b)
	g.copy(p, p.b, p.a)
}

// copy passes on what one side says to the other.
func (g *gate) copy(p *pair, to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		g.mu.Lock()
		for g.shut && g.pairs[p] {
			g.moved.Wait()
		}
		deaf := p.deaf
		g.mu.Unlock()
		if !deaf && n > 0 {
			if _, failed := to.Write(buf[:n]); failed != nil {
				err = failed
			}
		}
		if err != nil {
			if !deaf {
				g.drop(p)
			}
			return
		}
	}
}

func (g *gate) drop(p *pair) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pairs, p)
	g.moved.Broadcast()
	_ = p.a.Close()
	_ = p.b.Close()
}

// to leads new connections elsewhere.
func (g *gate) to(dial func(context.Context) (net.Conn, error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dial = dial
}

// cut ends all connections.
func (g *gate) cut() {
	g.mu.Lock()
	var all []*pair
	for p := range g.pairs {
		all = append(all, p)
	}
	g.mu.Unlock()
	for _, p := range all {
		g.drop(p)
	}
}

// close lets nothing pass, on no connection, until open.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
	g.moved.Broadcast()
}

// hush has all connections of now lead nowhere, and neither side hears of it.
func (g *gate) hush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for p := range g.pairs {
		p.deaf = true
	}
}

// passed is how many connections were passed on.
func (g *gate) passed() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken
}

// config is a kubeconfig that leads to the gate, from one that leads to the lab.
func (g *gate) config(t *testing.T, l *lab.Lab, kubeconfig string) string {
	t.Helper()
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, bytes.ReplaceAll(text, []byte(l.Server()+`"`), []byte("https://"+g.at+`"`)))
}

func written(t *testing.T, text []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// tap is a proxy in front of an API server that sees the calls, and may answer, change or keep
// them. The API server takes whoever comes through it for the user who may do everything.
type tap struct {
	file string // kubeconfig

	mu   sync.Mutex
	on   func(w http.ResponseWriter, r *http.Request, pass http.HandlerFunc)
	back func(r *http.Response) error
}

func newTap(t *testing.T, l *lab.Lab, address string) *tap {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	way, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tp := &tap{}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "https", Host: address}) },
		Transport:     way,
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			tp.mu.Lock()
			back := tp.back
			tp.mu.Unlock()
			if back != nil {
				return back(r)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // as a server that dies
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tp.mu.Lock()
		on := tp.on
		tp.mu.Unlock()
		if on != nil {
			on(w, r, proxy.ServeHTTP)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	tp.file = written(t, []byte(strings.NewReplacer("SERVER", s.URL, "CA", ca).Replace(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "SERVER", certificate-authority-data: "CA"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`)))
	return tp
}

func (tp *tap) set(on func(w http.ResponseWriter, r *http.Request, pass http.HandlerFunc), back func(*http.Response) error) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.on, tp.back = on, back
}

// late keeps calls until they are let go: they are done then, whoever sent them.
type late struct {
	held chan string // what is kept, as it comes
	free chan struct{}
	done sync.WaitGroup
}

// keep has a tap keep the calls of which it is said.
func (tp *tap) keep(which func(*http.Request) bool) *late {
	k := &late{held: make(chan string, 100), free: make(chan struct{})}
	tp.set(func(w http.ResponseWriter, r *http.Request, pass http.HandlerFunc) {
		if !which(r) {
			pass(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		own := r.Clone(context.Background())
		own.Body = io.NopCloser(bytes.NewReader(body))
		k.done.Add(1)
		k.held <- r.Method + " " + r.URL.Path
		go func() {
			defer k.done.Done()
			<-k.free
			pass(httptest.NewRecorder(), own)
		}()
		<-r.Context().Done() // its sender goes
	}, nil)
	return k
}

// release has all that was kept done, and returns when it is.
func (k *late) release() { close(k.free); k.done.Wait() }
