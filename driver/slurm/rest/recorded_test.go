package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/rest"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// recorded is a server that gives answers of real ones: testdata/VERSION has them, with
// their HTTP status in the first line, and of jobs and nodes the fields that are read.
type recorded struct {
	*httptest.Server
	version string

	mu    sync.Mutex
	give  map[string]string // "GET /job/7" → file
	asked []string          // what was asked: "GET /job/7?flags=ALL"
	sent  [][]byte
	users []string
}

func record(t *testing.T, version string, give map[string]string) *recorded {
	t.Helper()
	r := &recorded{version: version, give: give}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		path := strings.TrimPrefix(strings.TrimPrefix(q.URL.Path, "/slurm/"+version), "/slurmdb/"+version)
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		what := q.Method + " " + path
		file := r.give[what]
		if path != "/openapi/v3" {
			r.asked = append(r.asked, q.Method+" "+strings.TrimSuffix(path+"?"+q.URL.RawQuery, "?"))
			r.sent = append(r.sent, body)
			r.users = append(r.users, q.Header.Get("X-SLURM-USER-NAME")+" "+q.Header.Get("X-SLURM-USER-TOKEN"))
		}
		r.mu.Unlock()
		if path == "/openapi/v3" {
			file = "openapi"
		}
		if file == "" {
			file = "no-such-address"
		}
		answer(t, w, filepath.Join("testdata", version, file))
	}))
	t.Cleanup(r.Close)
	return r
}

// answer writes a recorded answer.
func answer(t *testing.T, w http.ResponseWriter, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	status, text, _ := bytes.Cut(b, []byte("\n"))
	code, err := strconv.Atoi(string(status))
	if err != nil {
		t.Error(err)
	}
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

func (r *recorded) site(t *testing.T) *rest.Site {
	t.Helper()
	s, err := rest.New(rest.Config{URL: r.URL, Version: r.version, Tokens: rest.Given("token"), User: "root"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// versions are those with recorded answers. v0.0.41's differ from v0.0.40's in numbers alone.
var versions = []string{"v0.0.38", "v0.0.40", "v0.0.42"}

// first is the number of the first of the four jobs that each recording begins with.
func first(t *testing.T, version string) uint32 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", version, "submit"))
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		ID uint32 `json:"job_id"`
	}
	_, text, _ := bytes.Cut(b, []byte("\n"))
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	return a.ID
}

func number(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

// What real servers say of a job that failed, one that was killed by a signal, one that
// runs, one that is held, and one that was cancelled.
func TestRecordedJobs(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			id := first(t, v)
			r := record(t, v, map[string]string{
				"GET /job/" + number(id): "job-failed", "GET /job/" + number(id+1): "job-signalled", "GET /job/" + number(id+2): "job-running",
				"GET /job/" + number(id+3): "job-held", "GET /job/4000000": "job-unknown",
			})
			all, err := r.site(t).Jobs(t.Context(), []uint32{id, id + 1, id + 2, id + 3, 4_000_000})
			if err != nil || len(all) != 4 {
				t.Fatalf("%+v, %v", all, err)
			}
			by := map[uint32]*site.Job{}
			for i := range all {
				by[all[i].ID] = &all[i]
			}
			j := by[id]
			if j.State != site.Failed || j.Exit != (job.ExitCode{Status: 3}) || j.Comment != "cox:x:1:1.1 of | mine" || len(j.Nodes) != 2 || j.User != "root" || j.Account != "root" || j.Partition != "main" ||
				j.QOS != "normal" || j.Submitted.IsZero() || j.Started.Before(j.Submitted) || j.Ended.Before(j.Started) || j.Completing || j.Held || j.Reason != "NonZeroExitCode" || j.Priority == 0 {
				t.Errorf("failed: %+v", j)
			}
			if j := by[id+1]; j.State != site.Failed || j.Exit != (job.ExitCode{Signal: 9}) {
				t.Errorf("signalled: %+v", j)
			}
			if j := by[id+2]; j.State != site.Running || j.Reason != "" || j.Exit != (job.ExitCode{}) || len(j.Nodes) != 1 {
				t.Errorf("running: %+v", j)
			}
			if j := by[id+3]; j.State != site.Pending || !j.Held || j.Reason != "JobHeldUser" || !j.Started.IsZero() || j.Nodes != nil || j.Priority != 0 {
				t.Errorf("held: %+v", j)
			}
			r.give["GET /job/"+number(id+2)] = "job-cancelled"
			all, err = r.site(t).Jobs(t.Context(), []uint32{id + 2})
			cleaned := v != "v0.0.38" // when it was recorded
			if err != nil || len(all) != 1 || cleaned && all[0].State != site.Cancelled || all[0].Completing == cleaned {
				t.Errorf("cancelled: %+v, %v", all, err)
			}
		})
	}
}

// Accounting: the exit code of 22.05's is wrong, and stands as 1 where the job failed.
func TestRecordedPast(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			id := first(t, v)
			r := record(t, v, map[string]string{"GET /jobs": "past"})
			all, err := r.site(t).Past(t.Context(), []uint32{id, id + 1, id + 2})
			if err != nil || len(all) != 3 {
				t.Fatalf("%+v, %v", all, err)
			}
			status := 3
			if v == "v0.0.38" {
				status = 1
			}
			if j := all[0]; j.ID != id || j.State != site.Failed || j.Exit != (job.ExitCode{Status: status}) || j.Comment != "cox:x:1:1.1 of | mine" || j.User != "root" || j.Submitted.IsZero() || len(j.Nodes) != 2 {
				t.Errorf("failed: %+v", j)
			}
			if j := all[1]; j.Exit != (job.ExitCode{Signal: 9}) || j.CancelledBy != "" {
				t.Errorf("signalled: %+v", j)
			}
			if j := all[2]; j.State != site.Cancelled || j.CancelledBy != "root" {
				t.Errorf("cancelled: %+v", j)
			}
			want := "GET /jobs?skip_steps=true&step=" + number(id) + "&step=" + number(id+1) + "&step=" + number(id+2)
			if v == "v0.0.38" {
				want = "GET /jobs?skip_steps=true&step=" + number(id) + "%2C" + number(id+1) + "%2C" + number(id+2)
			}
			if got := r.asked[len(r.asked)-1]; got != want {
				t.Errorf("asked %q, want %q", got, want)
			}
			r.give["GET /jobs"] = "past-nothing"
			if all, err := r.site(t).Past(t.Context(), []uint32{4_000_000}); err != nil || len(all) != 0 {
				t.Errorf("nothing: %v, %v", all, err)
			}
		})
	}
}

// What real servers say of a token that is none is no news of any job.
func TestRecordedTokens(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			r := record(t, v, map[string]string{"GET /job/7": "token-job", "GET /diag": "token-diag", "GET /jobs": "token-past", "DELETE /job/7": "token-delete", "GET /nodes": "no-token"})
			s, ctx := r.site(t), t.Context()
			no := func(what string, err error) {
				t.Helper()
				if fault.KindOf(err) != fault.Unavailable {
					t.Errorf("%s: %v, %v", what, fault.KindOf(err), err)
				}
			}
			all, err := s.Jobs(ctx, []uint32{7})
			no("a job", err)
			past, err := s.Past(ctx, []uint32{7})
			no("accounting", err)
			if all != nil || past != nil {
				t.Errorf("%v, %v", all, past)
			}
			_, err = s.Cluster(ctx)
			no("the cluster", err)
			no("an end", s.End(ctx, 7))
			_, err = s.Nodes(ctx)
			no("no token at all", err)
		})
	}
}

// What was refused is told from what was not answered.
func TestRecordedRefusals(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			r := record(t, v, map[string]string{"POST /job/submit": "submit-refused", "DELETE /job/7": "delete-unknown", "DELETE /job/8": "delete-denied", "DELETE /job/9": "delete"})
			s, ctx := r.site(t), t.Context()
			sub := &site.Submission{Script: []byte("#!/bin/sh\n")}
			if _, err := s.Submit(ctx, sub); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "Invalid partition name specified (Slurm's error 2000)") {
				t.Errorf("no such partition: %v", err)
			}
			if err := s.End(ctx, 7); err != nil {
				t.Errorf("no such job: %v", err)
			}
			if err := s.End(ctx, 8); fault.KindOf(err) != fault.Permission && v != "v0.0.40" { // which says nothing of it
				t.Errorf("somebody else's: %v", err)
			}
			if err := s.End(ctx, 9); err != nil {
				t.Error(err)
			}
			r.give["POST /job/submit"] = "submit"
			if id, err := s.Submit(ctx, sub); err != nil || id != first(t, v) {
				t.Errorf("submitted: %d, %v", id, err)
			}
			r.give["POST /job/submit"], r.give["DELETE /job/"+number(left(t, v))] = "submit-unread", "delete"
			_, err := s.Submit(ctx, sub)
			if want := map[bool]fault.Kind{true: fault.Invalid, false: fault.Unsupported}[v == "v0.0.38"]; fault.KindOf(err) != want {
				t.Errorf("a field that it does not know: %v", err)
			}
			ended := r.asked[len(r.asked)-1] == "DELETE /job/"+number(left(t, v))
			if ended != (v != "v0.0.38") {
				t.Errorf("a job that is not whole was left: %q", r.asked)
			}
		})
	}
}

// left is the number of the job that was submitted with a field that the server does not
// know: 24.11 takes it.
func left(t *testing.T, version string) uint32 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", version, "submit-unread"))
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		ID uint32 `json:"job_id"`
	}
	_, text, _ := bytes.Cut(b, []byte("\n"))
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	return a.ID
}

func TestRecordedCluster(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			r := record(t, v, map[string]string{"GET /diag": "diag", "GET /nodes": "nodes"})
			s, ctx := r.site(t), t.Context()
			c, err := s.Cluster(ctx)
			version := map[bool]string{true: "22.05.8", false: "24.11.5"}[v == "v0.0.38"]
			if err != nil || c.Version != version || !c.Accounts || c.Booted.Year() != 2026 {
				t.Errorf("%+v, %v", c, err)
			}
			nodes, err := s.Nodes(ctx)
			if err != nil || len(nodes) != 2 {
				t.Fatalf("%+v, %v", nodes, err)
			}
			n := nodes[0]
			if n.Name == "" || n.Address != "127.0.0.1" || n.CPUs != 64 || n.Sockets != 2 || n.Memory != 512000<<20 || len(n.Parts) != 1 || n.Parts[0] != "main" || !n.Available || n.State != "idle" {
				t.Errorf("%+v", n)
			}
		})
	}
}

// Many numbers are one call for their states, and the records of those that changed.
func TestPollsAreCheap(t *testing.T) {
	id := first(t, "v0.0.42")
	r := record(t, "v0.0.42", map[string]string{
		"GET /jobs/state": "states", "GET /job/" + number(id): "job-failed", "GET /job/" + number(id+2): "job-running", "GET /job/" + number(id+3): "job-held",
	})
	s := r.site(t)
	ids := make([]uint32, 500)
	for i := range ids {
		ids[i] = id + uint32(i)
	}
	for round, want := range []int{4, 1, 1} {
		before := len(r.asked)
		all, err := s.Jobs(t.Context(), ids)
		if err != nil || len(all) != 3 {
			t.Fatalf("%+v, %v", all, err)
		}
		if got := len(r.asked) - before; got != want {
			t.Errorf("round %d: %d calls, want %d: %q", round, got, want, r.asked[before:])
		}
	}
	before := len(r.asked)
	if all, err := s.Jobs(t.Context(), []uint32{id}); err != nil || len(all) != 1 || len(r.asked) != before+1 { // before somebody acts on it
		t.Errorf("one number: %v, %v, %d calls", all, err, len(r.asked)-before)
	}
}

// Who asks while all jobs are being read gets an answer that began later; what is strange of
// somebody else's jobs does not matter.
func TestListing(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/openapi/v3" {
			answer(t, w, "testdata/v0.0.42/openapi")
			return
		}
		mu.Lock()
		n++
		first := n == 1
		mu.Unlock()
		if first {
			close(began)
			<-release
			_, _ = io.WriteString(w, `{"jobs":[],"errors":[]}`)
			return
		}
		_, _ = io.WriteString(w, `{"jobs":[{"job_id":1,"user_name":"bob","job_state":["NONSENSE"]},{"job_id":2,"user_name":"alice","job_state":["RUNNING"],"comment":"x"}],"errors":[]}`)
	}))
	defer server.Close()
	s, err := rest.New(rest.Config{URL: server.URL, User: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing to lose
	var wg sync.WaitGroup
	wg.Go(func() {
		if all, err := s.Of(t.Context(), "alice"); err != nil || len(all) != 0 {
			t.Errorf("the first: %v, %v", all, err)
		}
	})
	<-began
	for range 10 {
		wg.Go(func() {
			if all, err := s.Of(t.Context(), ""); err != nil || len(all) != 1 || all[0].ID != 2 {
				t.Errorf("a later one: %v, %v", all, err)
			}
		})
	}
	close(release)
	wg.Wait()
	if all, err := s.Of(t.Context(), "bob"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a state that is not known: %v, %v", all, err)
	}
}

// A call ends with its deadline or its context, whatever the server does, and so do all
// who wait for one listing.
func TestDeadlines(t *testing.T) {
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/openapi/v3" {
			answer(t, w, "testdata/v0.0.42/openapi")
			return
		}
		select {
		case <-release:
		case <-q.Context().Done():
		}
	}))
	defer silent.Close()
	defer close(release)
	s, err := rest.New(rest.Config{URL: silent.URL, User: "root", Deadline: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			_, err := s.Jobs(t.Context(), []uint32{1, 2, 3})
			_, err2 := s.Of(t.Context(), "root")
			for _, err := range []error{err, err2, s.End(t.Context(), 1)} {
				if fault.KindOf(err) != fault.Unavailable {
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
	slow, err := rest.New(rest.Config{URL: silent.URL, User: "root"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := slow.Of(ctx, "root"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	if err := slow.Close(); err != nil { // and the listing that it began ends
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A server that is no slurmrestd, or one of a version that is not spoken, is no news.
func TestStrangeServers(t *testing.T) {
	for name, f := range map[string]http.HandlerFunc{
		"a proxy's page": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>Bad Gateway", http.StatusBadGateway)
		},
		"a login page": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>please") },
		"another place": func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/elsewhere" {
				t.Error("it went there, with its token")
			}
			http.Redirect(w, q, "/elsewhere", http.StatusFound)
		},
		"an old version": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"paths":{"\/slurm\/v0.0.37\/ping":{},"\/slurm\/v0.0.99\/ping":{}}}`)
		},
		"half an answer": func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/openapi/v3" {
				answer(t, w, "testdata/v0.0.42/openapi")
				return
			}
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"jobs":[`)
		},
		"nothing of a job": func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/openapi/v3" {
				answer(t, w, "testdata/v0.0.42/openapi")
				return
			}
			_, _ = io.WriteString(w, `{"jobs":[],"errors":[]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(f)
			defer server.Close()
			s, err := rest.New(rest.Config{URL: server.URL, User: "root"})
			if err != nil {
				t.Fatal(err)
			}
			if all, err := s.Jobs(t.Context(), []uint32{7}); fault.KindOf(err) != fault.Unavailable || all != nil {
				t.Errorf("%v, %v", all, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, url := range []string{"", "localhost:6820", "ftp://x", "http://"} {
		if _, err := rest.New(rest.Config{URL: url}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := rest.New(rest.Config{URL: "http://x", Version: "v0.0.39"}); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("%v", err)
	}
}

// The server may be replaced by another version while we talk to it.
func TestUpgrade(t *testing.T) {
	now := "v0.0.38"
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		v := now
		mu.Unlock()
		switch q.URL.Path {
		case "/openapi/v3":
			answer(t, w, "testdata/"+v+"/openapi")
		case "/slurm/" + v + "/diag":
			answer(t, w, "testdata/"+v+"/diag")
		default:
			answer(t, w, "testdata/"+v+"/no-such-address")
		}
	}))
	defer server.Close()
	s, err := rest.New(rest.Config{URL: server.URL, User: "root"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing to lose
	for _, version := range []string{"22.05.8", "24.11.5"} {
		c, err := s.Cluster(t.Context())
		if fault.KindOf(err) == fault.Unavailable {
			c, err = s.Cluster(t.Context())
		}
		if err != nil || c.Version != version {
			t.Errorf("%+v, %v", c, err)
		}
		mu.Lock()
		now = "v0.0.42"
		mu.Unlock()
	}
}

// Over TLS, whose certificate is checked.
func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		answer(t, w, "testdata/v0.0.42/"+map[bool]string{true: "openapi", false: "diag"}[q.URL.Path == "/openapi/v3"])
	}))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, trusts := range []bool{true, false} {
		cfg := rest.Config{URL: server.URL, Tokens: rest.Given("token"), User: "root"}
		if trusts {
			cfg.TLS = server.Client().Transport.(*http.Transport).TLSClientConfig
		}
		s, err := rest.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Cluster(t.Context()); (err == nil) != trusts || err != nil && fault.KindOf(err) != fault.Unavailable {
			t.Errorf("trusts %t: %v", trusts, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Who is not the owner of a job ends it as its owner, if there is a token for that.
func TestAsTheOwner(t *testing.T) {
	id := first(t, "v0.0.42") + 2
	r := record(t, "v0.0.42", map[string]string{"DELETE /job/" + number(id): "delete-denied", "GET /job/" + number(id): "job-running"})
	s, err := rest.New(rest.Config{URL: r.URL, Tokens: rest.Given("token"), User: "daemon"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing to lose
	if err := s.End(t.Context(), id); fault.KindOf(err) != fault.Permission {
		t.Errorf("%v", err)
	}
	if got := strings.Join(r.users, ", "); got != "daemon token, daemon token, root token" {
		t.Errorf("asked as %s", got)
	}
}

// Without a token for the owner it stays what it was: not ours.
func TestNoTokenForTheOwner(t *testing.T) {
	id := first(t, "v0.0.42") + 2
	r := record(t, "v0.0.42", map[string]string{"DELETE /job/" + number(id): "delete-denied", "GET /job/" + number(id): "job-running"})
	s, err := rest.New(rest.Config{URL: r.URL, Tokens: &rest.Command{Words: []string{"sh", "-c", "[ %u = daemon ] && echo token"}}, User: "daemon"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing to lose
	if err := s.End(t.Context(), id); fault.KindOf(err) != fault.Permission {
		t.Errorf("%v", err)
	}
}

// By a socket, without a token.
func TestSocket(t *testing.T) {
	r := record(t, "v0.0.38", map[string]string{"GET /diag": "diag"})
	dir, err := os.MkdirTemp("", "rest") // t.TempDir's names are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	served := listen(t, path, r.Config.Handler)
	defer served.Close()
	s, err := rest.New(rest.Config{URL: "unix:" + path, User: "root"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing to lose
	if c, err := s.Cluster(t.Context()); err != nil || c.Version != "22.05.8" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := s.Submit(t.Context(), &site.Submission{Script: []byte("#!/bin/sh\n"), User: "alice"}); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("as somebody else: %v", err)
	}
	if len(r.users) != 1 || r.users[0] != " " {
		t.Errorf("sent as %q", r.users)
	}
}
