package transport

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/auth"
)

// TestRefusedRequestsCostTheLogAConstant sends requests with damaged tokens and long paths: the log has
// one short line for all of them, and after a minute one more with their number.
func TestRefusedRequestsCostTheLogAConstant(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1e9, 0)
	r := start(t, func(c *Config) {
		c.Now = func() time.Time { return now }
		c.Log = slog.New(slog.NewTextHandler(&out, nil))
	})
	AddRoute(r.Server, Route{Method: http.MethodGet, Path: "/v1/jobs/{id}", Verb: auth.SeePools, ID: "show"}, func(*Call, *Nothing) (*None, error) { return nil, nil })
	path := "/v1/jobs/" + strings.Repeat("y", 100<<10)
	refused := func(header string) {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		req.Header.Set("Authorization", header)
		rec := httptest.NewRecorder()
		r.ServeHTTP(rec, req)
		if rec.Code != http.StatusUnauthorized {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
	}
	n := 500
	if testing.Short() { // under the race detector
		n = 50
	}
	for i := range n {
		refused(fmt.Sprintf("Bearer cox_%d_%s", i, strings.Repeat("z", 100<<10)))
	}
	if lines := strings.Count(out.String(), "\n"); lines != 1 || out.Len() > 2<<10 {
		t.Errorf("%d lines, %d bytes: %.500s", lines, out.Len(), out.String())
	}
	out.Reset()
	now = now.Add(refusalInterval)
	refused("Basic x")
	if want := fmt.Sprintf("unlogged=%d", n-1); !strings.Contains(out.String(), want) {
		t.Errorf("%q lacks %q", out.String(), want)
	}
	if got := r.Metrics.Refused.Load(); got != uint64(n)+1 {
		t.Errorf("%d are counted, not %d", got, n+1)
	}
}

// TestOneSourceHidesNoOther: each has a line of its own, and the sources that are told apart are bounded.
func TestOneSourceHidesNoOther(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := newRefusals(func() time.Time { return now })
	lines := 0
	for i := range 10 * maxRefusalSources {
		for range 2 {
			if _, logged := l.countRefusal(refusalSource{"token", fmt.Sprint(i)}); logged {
				lines++
			}
		}
	}
	if lines != maxRefusalSources+1 || len(l.of) != lines {
		t.Errorf("%d lines, %d sources", lines, len(l.of))
	}
	now = now.Add(2 * refusalInterval)
	for i := range maxRefusalSources { // they owe a count each, which comes with their next line
		if unlogged, logged := l.countRefusal(refusalSource{"token", fmt.Sprint(i)}); !logged || unlogged != 1 {
			t.Fatalf("source %d: %d, %v", i, unlogged, logged)
		}
	}
	for i := range maxRefusalSources { // and owe one again
		l.countRefusal(refusalSource{"token", fmt.Sprint(i)})
	}
	now = now.Add(2 * refusalInterval)
	if _, logged := l.countRefusal(refusalSource{"token", "new"}); !logged || len(l.of) != 2 {
		t.Errorf("old sources are kept: %d", len(l.of))
	}
	// 9 times the bound had no line, twice each but for the first one.
	const others = 2*9*maxRefusalSources - 1 + maxRefusalSources
	if unlogged, logged := l.countRefusal(otherSources); !logged || unlogged != others {
		t.Errorf("the other sources owe %d, not %d (%v)", unlogged, others, logged)
	}
}
