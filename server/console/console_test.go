package console

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/server/transport"
)

type noTokens struct{}

func (noTokens) TokenByID(string) (state.Token, bool) { return state.Token{}, false }

// built is a small console.
var built = fstest.MapFS{
	".keep": {}, "index.html": {Data: []byte(`<!doctype html><script src="/assets/a-1234.js"></script>`)},
	"assets/a-1234.js": {Data: []byte(strings.Repeat("console.log(1)\n", 100))},
	"icon.svg":         {Data: []byte("<svg xmlns='http://www.w3.org/2000/svg'/>")},
}

func serve(t *testing.T, files fstest.MapFS) func(path string, header ...string) *http.Response {
	t.Helper()
	s := transport.New(transport.Config{Tokens: noTokens{}, Users: &user.Users{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Stall: time.Second, Patience: time.Second})
	Register(s, Config{Files: files})
	return func(path string, header ...string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
}

func bodyOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	var r io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if r, err = gzip.NewReader(resp.Body); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestFilesOfTheConsole: which path is answered with what, and what browsers may keep.
//
// Seen to fail without: the check of apiPrefixes, of the Accept header, of hashedFolder.
func TestFilesOfTheConsole(t *testing.T) {
	get := serve(t, built)
	const page = "text/html,application/xhtml+xml"
	for _, c := range []struct{ path, accept, media, cache string }{
		{"/", "*/*", "text/html", "no-cache"},
		{"/queue", page, "text/html", "no-cache"},
		{"/jobs/7_3", page, "text/html", "no-cache"},
		{"/assets/a-1234.js", "*/*", "text/javascript", "public, max-age=31536000, immutable"},
		{"/icon.svg", "*/*", "image/svg+xml", "no-cache"},
		{"/queue", "*/*", transport.ProblemType, ""},
		{"/assets/a-other.js", page, transport.ProblemType, ""},
		{"/v1/nothing", page, transport.ProblemType, ""},
		{"/v2/jobs", page, transport.ProblemType, ""},
		{"/debug/x", page, transport.ProblemType, ""},
		{"/.keep", page, transport.ProblemType, ""},
	} {
		resp := get(c.path, "Accept", c.accept, "Accept-Encoding", "br, gzip")
		text := bodyOf(t, resp)
		h := resp.Header
		if !strings.HasPrefix(h.Get("Content-Type"), c.media) || h.Get("Cache-Control") != c.cache || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s (%s): %v\n%s", c.path, c.accept, h, text)
		}
		if c.media != transport.ProblemType && (resp.StatusCode != 200 || h.Get("Content-Security-Policy") != policy || h.Get("Referrer-Policy") != "no-referrer") {
			t.Errorf("%s: %d %v", c.path, resp.StatusCode, h)
		}
	}
	js := get("/assets/a-1234.js", "Accept-Encoding", "gzip;q=0")
	if js.Header.Get("Content-Encoding") != "" || bodyOf(t, js) != string(built["assets/a-1234.js"].Data) {
		t.Error("gzip;q=0 gets gzip")
	}
	again := get("/", "If-None-Match", get("/").Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified || bodyOf(t, again) != "" {
		t.Errorf("asked again: %d", again.StatusCode)
	}
}

// TestWithoutAConsole: the page says how to get one, in a page that needs nothing from elsewhere.
func TestWithoutAConsole(t *testing.T) {
	get := serve(t, fstest.MapFS{".keep": {}})
	resp := get("/")
	text := bodyOf(t, resp)
	if resp.StatusCode != 200 || !strings.Contains(text, "make build") || !strings.Contains(text, "Node 20") || !strings.Contains(text, "release") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if strings.Contains(text, "//") || strings.Contains(text, "<script") || resp.Header.Get("Content-Security-Policy") != stylePolicy {
		t.Errorf("it needs something from elsewhere: %v\n%s", resp.Header, text)
	}
	if resp := get("/queue"); resp.StatusCode != 404 {
		t.Errorf("/queue: %d", resp.StatusCode)
	}
}
