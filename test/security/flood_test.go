package security

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// flood is one user doing one thing as fast and as badly as he can, until ctx ends.
type flood struct {
	name string
	do   func(ctx context.Context, f *flooded)
}

// flooded is the server that is flooded, and as whom.
type flooded struct {
	addr, secret string
	client       *http.Client
	times        atomic.Int64 // it was done
}

// raw opens a connection and writes a text to it.
func (f *flooded) raw(ctx context.Context, text string) net.Conn {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.addr)
	if err != nil {
		return nil
	}
	if _, err := io.WriteString(c, text); err != nil {
		_ = c.Close()
		return nil
	}
	f.times.Add(1)
	return c
}

// keep opens connections with a text and leaves them be, not more than n.
func (f *flooded) keep(ctx context.Context, n int, text string) {
	for range n {
		if ctx.Err() != nil {
			return
		}
		if c := f.raw(ctx, text); c != nil {
			context.AfterFunc(ctx, func() { _ = c.Close() })
		}
	}
	<-ctx.Done()
}

// ask sends one request after the other.
func (f *flooded) ask(ctx context.Context, method, path, body string) {
	f.askAs(ctx, f.secret, method, path, body)
}

func (f *flooded) askAs(ctx context.Context, secret, method, path, body string) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, method, "http://"+f.addr+path, strings.NewReader(body))
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := f.client.Do(req)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		f.times.Add(1)
	}
}

func (f *flooded) head(method, path string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n", method, path, f.secret)
}

var floods = []flood{
	{"connections that say nothing", func(ctx context.Context, f *flooded) { f.keep(ctx, 150, "") }},
	{"heads that do not end", func(ctx context.Context, f *flooded) { f.keep(ctx, 150, f.head("POST", "/v1/jobs")+"X-Slow: ") }},
	{"bodies that do not come", func(ctx context.Context, f *flooded) {
		f.keep(ctx, 150, f.head("POST", "/v1/jobs")+"Content-Length: 8000000\r\n\r\n{")
	}},
	{"bodies without a length that do not end", func(ctx context.Context, f *flooded) {
		f.keep(ctx, 50, f.head("POST", "/v1/jobs/change")+"Transfer-Encoding: chunked\r\n\r\n10\r\n{")
	}},
	{"watchers that do not read", func(ctx context.Context, f *flooded) { f.keep(ctx, 100, f.head("GET", "/v1/watch?after=0")+"\r\n") }},
	{"pages that nobody reads", func(ctx context.Context, f *flooded) {
		f.keep(ctx, 50, strings.Repeat(f.head("GET", "/v1/jobs?states=all")+"\r\n", 20))
	}},
	{"requests without an answer's end", func(ctx context.Context, f *flooded) {
		f.keep(ctx, 100, f.head("GET", "/v1/jobs/1/wait?timeout=3600")+"\r\n")
	}},
	{"bodies that are too large", func(ctx context.Context, f *flooded) { f.ask(ctx, "POST", "/v1/jobs", strings.Repeat("x", 9<<20)) }},
	{"bodies that are as large as may be", func(ctx context.Context, f *flooded) {
		f.ask(ctx, "POST", "/v1/jobs", `{"form":"sbatch","dir":"/","text":"#!/bin/sh\n`+strings.Repeat("# x\\n", 1<<19)+`","args":["--time=x"]}`)
	}},
	{"deep nesting", func(ctx context.Context, f *flooded) {
		f.ask(ctx, "POST", "/v1/jobs", `{"provenance":`+strings.Repeat("[", 1<<20))
	}},
	{"one job named half a million times", func(ctx context.Context, f *flooded) {
		f.ask(ctx, "POST", "/v1/jobs/change", `{"verb":"hold","select":{"ids":["1"`+strings.Repeat(`,"1"`, 1<<19)+`]}}`)
	}},
	{"submissions", func(ctx context.Context, f *flooded) {
		f.ask(ctx, "POST", "/v1/jobs", `{"form":"sbatch","dir":"/","text":"#!/bin/sh\n","args":["--hold"]}`)
	}},
	{"lists", func(ctx context.Context, f *flooded) { f.ask(ctx, "GET", "/v1/jobs?states=all", "") }},
	{"history", func(ctx context.Context, f *flooded) { f.ask(ctx, "GET", "/v1/history?limit=10000", "") }},
	{"tokens that are wrong", func(ctx context.Context, f *flooded) {
		f.askAs(ctx, "cox_0123456789_x", "GET", "/v1/jobs", "")
	}},
}

// TestOthersAreAnsweredDuringAFlood lets one user flood the server in every way, and
// another do his work meanwhile: each of his requests is answered, and rightly.
func TestOthersAreAnsweredDuringAFlood(t *testing.T) {
	for _, f := range floods {
		t.Run(f.name, func(t *testing.T) {
			s := newSite(t)
			_, bad := s.token("ben", nil)
			_, good := s.token("anna", nil)
			on := &flooded{addr: strings.TrimPrefix(s.url, "http://"), secret: bad, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
			for range 20 {
				s.submit("ben")
			}
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			workers := 3
			if strings.Contains(f.name, "connections") || strings.Contains(f.name, "not") || strings.Contains(f.name, "nobody") || strings.Contains(f.name, "without") {
				workers = 1 // each opens many
			}
			for range workers {
				all.Go(func() { f.do(ctx, on) })
			}
			defer func() {
				stop()
				all.Wait()
				on.client.CloseIdleConnections()
			}()
			eventually(t, "the flood has begun", func() bool { return on.times.Load() >= 3 })
			anna := &identity{name: "anna", url: s.url, secret: good, client: &http.Client{Transport: &http.Transport{}}}
			defer anna.client.CloseIdleConnections()
			for range 5 {
				resp, text := ask(t, anna, http.MethodPost, "/v1/jobs", fmt.Sprintf(script, ""))
				if resp.StatusCode != http.StatusCreated {
					t.Fatalf("submit: %s %s", resp.Status, text)
				}
				for _, path := range []string{"/v1", "/v1/jobs?users=anna", "/v1/nodes"} {
					if resp, text := ask(t, anna, http.MethodGet, path, ""); resp.StatusCode != http.StatusOK {
						t.Fatalf("%s: %s %s", path, resp.Status, text)
					}
				}
			}
			root := &identity{name: "root", url: "http://cox", client: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
			}}}}
			defer root.client.CloseIdleConnections()
			if resp, text := ask(t, root, http.MethodGet, "/metrics", ""); resp.StatusCode != http.StatusOK || !strings.Contains(text, "cox_http_panics_total 0") {
				t.Errorf("metrics: %s %.200s", resp.Status, text)
			}
		})
	}
}
