package security

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/job"
)

const matrixFile = "testdata/matrix.txt"

// line is one line of the matrix: a route, a case of it, and who may.
type line struct {
	method, path, what string
	may                []string
}

func (l *line) name() string { return strings.TrimSpace(l.method + " " + l.path + " " + l.what) }

// allows says whether an identity may, about an object: "own", "other", or "" where
// there is none.
func (l *line) allows(id *identity, object string) bool {
	if slices.Contains(l.may, "everybody") {
		return true
	}
	return slices.Contains(l.may, id.name) || object != "" && slices.Contains(l.may, id.name+"/"+object)
}

func readMatrix(t *testing.T) (out []line) {
	t.Helper()
	b, err := os.ReadFile(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	for n, s := range strings.Split(string(b), "\n") {
		if s = strings.TrimSpace(s); s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		left, right, ok := strings.Cut(s, " : ")
		f := strings.Fields(left)
		if !ok || len(f) < 2 {
			t.Fatalf("%s:%d: write METHOD PATH [case] : who may", matrixFile, n+1)
		}
		l := line{f[0], f[1], strings.Join(f[2:], " "), strings.Fields(right)}
		if slices.ContainsFunc(out, func(have line) bool { return have.name() == l.name() }) {
			t.Errorf("%s:%d: %s is there twice", matrixFile, n+1, l.name())
		}
		out = append(out, l)
	}
	return out
}

// objects are what one identity is tried on: anna's job and token and ben's, made anew
// for every line.
type objects struct {
	own, other         job.ID
	ownName, otherName string
}

func (s *site) objects() (o objects) {
	o.own, o.ownName = s.submit("anna")
	o.other, o.otherName = s.submit("ben")
	return o
}

// probe says how a case of a route is tried. Its functions may be nil.
type probe struct {
	body    func(job string) string
	query   string
	prepare func(s *site, o *objects)
	sees    bool // the object is looked for in the answer
	owner   bool // … by the name of its owner
}

func change(verb, more string) probe {
	return probe{body: func(id string) string {
		return fmt.Sprintf(`{"select":{"ids":[%q]},"verb":%q%s}`, id, verb, more)
	}}
}

func body(text string) probe { return probe{body: func(string) string { return text }} }

// holdFirmly holds both jobs as an administrator would.
func holdFirmly(s *site, o *objects) {
	for _, id := range []job.ID{o.own, o.other} {
		if _, err := s.control.Change(s.t.Context(), job.Actor{Name: "root"}, []job.ID{id}, control.Hold{On: true, Admin: true}); err != nil {
			s.t.Fatal(err)
		}
	}
}

const script = `{"form":"sbatch","text":"#!/bin/sh\n","dir":"/","args":["--hold"%s]}`

// probes are the cases that a request without body or parameters does not try.
var probes = map[string]probe{
	"POST /v1/jobs":                              body(fmt.Sprintf(script, "")),
	"POST /v1/jobs with a priority":              body(fmt.Sprintf(script, `,"--priority=5"`)),
	"POST /v1/jobs with a negative nice value":   body(fmt.Sprintf(script, `,"--nice=-5"`)),
	"POST /v1/advise":                            body(fmt.Sprintf(script, "")),
	"GET /v1/jobs shows":                         {sees: true, query: "?names="},
	"GET /v1/jobs shows as text":                 {sees: true, query: "?columns=job_name&names="},
	"GET /v1/jobs shows sorted":                  {sees: true, query: "?sort=-id&columns=job_name&match="},
	"GET /v1/history shows":                      {sees: true, query: "?names="},
	"GET /v1/history shows as text":              {sees: true, query: "?columns=job_name&names="},
	"GET /v1/reports/{kind} shows":               {sees: true, owner: true, query: "?by=user&users="},
	"POST /v1/jobs/change cancel":                change("cancel", ""),
	"POST /v1/jobs/change hold":                  change("hold", ""),
	"POST /v1/jobs/change hold firmly":           change("hold", `,"firm":true`),
	"POST /v1/jobs/change release":               change("release", ""),
	"POST /v1/jobs/change checkpoint-done":       change("checkpoint-done", ""),
	"POST /v1/jobs/change requeue":               change("requeue", ""),
	"POST /v1/jobs/change signal":                change("signal", `,"signal":"USR1"`),
	"POST /v1/jobs/change suspend":               change("suspend", ""),
	"POST /v1/jobs/change resume":                change("resume", ""),
	"POST /v1/jobs/change top":                   change("top", ""),
	"POST /v1/jobs/change rename":                change("update", `,"update":{"name":"x"}`),
	"POST /v1/jobs/change depend":                change("update", `,"update":{"depends":"singleton"}`),
	"POST /v1/jobs/change raise its priority":    change("update", `,"update":{"priority":1000000}`),
	"POST /v1/jobs/change nice below zero":       change("update", `,"update":{"nice":-1}`),
	"POST /v1/nodes/change":                      body(`{"nodes":["v1"],"verb":"resume"}`),
	"POST /v1/node-checks":                       body(`{"nodes":["v1"]}`),
	"POST /v1/machines/move":                     body(`{"nodes":["v1"],"to":"b"}`),
	"POST /v1/machines/abort":                    body(`{"machines":["v1"]}`),
	"POST /v1/machines/fence":                    body(`{"nodes":["v1"],"reason":"x"}`),
	"POST /v1/pools":                             body(`{"name":"b","engine":"fake"}`),
	"POST /v1/pools as a check":                  body(`{"name":"b","engine":"fake","check":true}`),
	"POST /v1/tokens":                            body(`{}`),
	"POST /v1/tokens for somebody else":          body(`{"user":"ben"}`),
	"POST /v1/tokens with administrators rights": body(`{"admin":true}`),
	"PUT /v1/policy":                             body(`{"text":"partitions: [{name: main, tier: 2}]"}`),
	"PUT /v1/policy as a dry run":                body(`{"text":"","dry_run":true}`),
	"GET /v1/jobs/{job}/logs follow":             {query: "?follow=true", prepare: cancelBoth},
	"POST /v1/jobs/change release from an administrators hold": {
		body: change("release", "").body, prepare: holdFirmly,
	},
}

// cancelBoth ends both jobs, so that what follows them ends too.
func cancelBoth(s *site, o *objects) {
	for _, id := range []job.ID{o.own, o.other} {
		if _, err := s.control.Change(s.t.Context(), job.Actor{Name: "root"}, []job.ID{id}, control.Cancel{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// outcome is what came of a request: denied for want of an identity, for want of a
// right, or not denied, whatever else may be wrong with it.
type outcome string

const (
	noIdentity outcome = "401"
	noRight    outcome = "denied"
	passed     outcome = "allowed"
)

// judge reads an answer.
func judge(resp *http.Response, text string) outcome {
	var e api.Error
	_ = json.Unmarshal([]byte(text), &e) // another answer is no error
	hidden := strings.HasPrefix(e.Detail, "there is no job ") || strings.HasPrefix(e.Detail, "you have no token ")
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return noIdentity
	case resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusNotFound && hidden:
		return noRight
	}
	var ch api.Changed
	if json.Unmarshal([]byte(text), &ch) == nil && len(ch.Errors) > 0 && ch.Changed == 0 {
		if k := ch.Errors[0].Error.Status; k == http.StatusForbidden || k == http.StatusNotFound {
			return noRight
		}
	}
	return passed
}

// TestMatrix asks every route and method of the server's own document, as every
// identity, about what is its own and what is another's. Only what testdata/matrix.txt
// lists may pass.
func TestMatrix(t *testing.T) {
	s := newSite(t)
	lines := readMatrix(t)
	documented := s.routes()
	for _, r := range documented {
		if !slices.ContainsFunc(lines, func(l line) bool { return l.method+" "+l.path == r }) {
			t.Errorf("%s has no line in %s: decide who may use it and write, for a route about a job,\n\t%s : user/own private/own admin root\n"+
				"with user/other if everybody who is known may, else\n\t%s : user private admin root\nand a probe in matrix_test.go if it needs a body", r, matrixFile, r, r)
		}
	}
	asked := 0
	for i := range lines {
		l := &lines[i]
		if !slices.Contains(documented, l.method+" "+l.path) && !slices.Contains(besides, l.path) {
			t.Errorf("%s: the server has no such route: remove the line", l.name())
			continue
		}
		ids := s.identities()
		for j := range ids {
			asked += s.try(t, l, &ids[j])
		}
	}
	t.Logf("%d lines, %d routes, %d requests", len(lines), len(documented), asked)
}

// besides are routes that the document does not have: the document itself.
var besides = []string{"/openapi.json", "/openapi.yaml", "/openapi-3.0.json", "/openapi-3.0.yaml"}

// routes are those of the server's own document.
func (s *site) routes() (out []string) {
	root := identity{name: "root", url: s.url, client: http.DefaultClient}
	_, text := s.ask(&root, http.MethodGet, "/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		s.t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for m := range methods {
			out = append(out, strings.ToUpper(m)+" "+path)
		}
	}
	if len(out) < 25 {
		s.t.Fatalf("only %d routes in the document", len(out))
	}
	slices.Sort(out)
	return out
}

// try asks one line as one identity, about each kind of object, and returns how often
// it asked.
func (s *site) try(t *testing.T, l *line, id *identity) int {
	p := probes[l.name()]
	about := strings.Contains(l.path, "{job}") || strings.Contains(l.path, "{id}") || p.sees || l.path == "/v1/jobs/change"
	if l.path == "/v1/watch" && l.what == "shows" {
		return s.tryWatch(t, l, id)
	}
	if l.path == "/v1/tokens" && l.what == "shows" {
		return s.tryTokens(t, l, id)
	}
	kinds := []string{""}
	if about {
		kinds = []string{"own", "other", "none"}
	}
	for _, kind := range kinds {
		resp, text, name := s.request(l, id, &p, kind)
		got := judge(resp, text)
		if p.sees && got == passed && !strings.Contains(text, name) {
			got = noRight
		}
		want := noRight
		switch {
		case l.allows(id, kind):
			want = passed
		case id.bad:
			want = noIdentity
		}
		if kind == "none" && (want == passed && !id.bad || want == noRight) { // nobody has it
			want = noRight
		}
		if got != want {
			t.Errorf("%s as %s, %s: %s, and %s lists %v\n%s %s", l.name(), id.name, kind, got, matrixFile, l.may, resp.Status, text)
		}
		if resp.StatusCode == http.StatusInternalServerError {
			t.Errorf("%s as %s, %s: %s", l.name(), id.name, kind, text)
		}
		if got == noIdentity && resp.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s as %s: 401 without WWW-Authenticate", l.name(), id.name)
		}
	}
	return len(kinds)
}

// request asks a line about new objects. name is what the answer shows of the object.
func (s *site) request(l *line, id *identity, p *probe, kind string) (resp *http.Response, text, name string) {
	var o objects
	subject := "1"
	if kind != "" {
		o = s.objects()
		if p.prepare != nil {
			p.prepare(s, &o)
		}
		subject, name = o.own.String(), o.ownName
		switch kind {
		case "other":
			subject, name = o.other.String(), o.otherName
		case "none":
			subject, name = "999999", "none"
		}
		if p.owner {
			name = map[string]string{"own": "anna", "other": "ben"}[kind]
			name = cmp.Or(name, "nobody-here")
		}
	}
	path := strings.NewReplacer("{job}", subject, "{node}", "v1", "{name}", "cmdline", "{kind}", "waits").Replace(l.path)
	if strings.Contains(path, "{id}") {
		key := "abcdefghij"
		if kind == "own" {
			key, _ = s.token("anna", nil)
		} else if kind == "other" {
			key, _ = s.token("ben", nil)
		}
		path = strings.ReplaceAll(path, "{id}", key)
	}
	if path += p.query; p.sees {
		path += name
	}
	body := ""
	switch {
	case p.body != nil:
		body = p.body(subject)
	case l.path == "/v1/backup":
		body = fmt.Sprintf(`{"dir":%q}`, filepath.Join(s.t.TempDir(), "backup"))
	}
	resp, text = s.ask(id, l.method, path, body)
	return resp, text, name
}

// tryTokens looks for tokens of anna and ben in the list.
func (s *site) tryTokens(t *testing.T, l *line, id *identity) int {
	own, _ := s.token("anna", nil)
	other, _ := s.token("ben", nil)
	resp, text := s.ask(id, l.method, l.path, "")
	for kind, key := range map[string]string{"own": own, "other": other} {
		if seen := strings.Contains(text, key); seen != l.allows(id, kind) {
			t.Errorf("%s as %s, %s: seen %v, and %s lists %v: %s", l.name(), id.name, kind, seen, matrixFile, l.may, resp.Status)
		}
	}
	return 1
}

// tryWatch watches while ben and then anna submit. Events come in order: once anna's
// is there, ben's has come or does not come.
func (s *site) tryWatch(t *testing.T, l *line, id *identity) int {
	if id.bad {
		if resp, text := s.ask(id, l.method, l.path, ""); judge(resp, text) != noIdentity {
			t.Errorf("%s as %s: %s", l.name(), id.name, resp.Status)
		}
		return 1
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	after := s.control.LastEvent()
	other, _ := s.submit("ben")
	own, _ := s.submit("anna")
	req, err := http.NewRequestWithContext(ctx, l.method, fmt.Sprintf("%s%s?after=%d", id.url, l.path, after), nil)
	if err != nil {
		t.Fatal(err)
	}
	if id.secret != "" {
		req.Header.Set("Authorization", "Bearer "+id.secret)
	}
	resp, err := id.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	seen := map[job.ID]bool{}
	for in := bufio.NewScanner(resp.Body); !seen[own] && in.Scan(); {
		var e api.Event
		if data, ok := strings.CutPrefix(in.Text(), "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
			seen[e.Job] = true
		}
	}
	for kind, id2 := range map[string]job.ID{"own": own, "other": other} {
		if seen[id2] != l.allows(id, kind) {
			t.Errorf("%s as %s, %s: seen %v, and %s lists %v", l.name(), id.name, kind, seen[id2], matrixFile, l.may)
		}
	}
	return 1
}

// TestNoOtherMethodIsServed tries every method on every path of the document, and
// paths that it does not have, as the one who may do everything.
func TestNoOtherMethodIsServed(t *testing.T) {
	s := newSite(t)
	ids := s.identities()
	root := &ids[len(ids)-1]
	documented := s.routes()
	paths := []string{"/", "/docs", "/schemas", "/schemas/Job.json", "/v1/", "/v1/jobs/", "/v1/jobs/1/", "/v2/jobs", "/debug/pprof/", "/debug/vars", "/static/x"}
	for _, r := range documented {
		_, path, _ := strings.Cut(r, " ")
		paths = append(paths, path)
	}
	for _, path := range paths {
		for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
			open := m == http.MethodHead && slices.Contains([]string{"/healthz", "/readyz", "/v1"}, path) ||
				path == "/" && (m == http.MethodGet || m == http.MethodHead) // the web console, which anybody may load
			if slices.Contains(documented, m+" "+path) || open || m+" "+path == "GET /v1/jobs/change" { // the job "change"
				continue
			}
			resp, _ := s.ask(root, m, strings.NewReplacer("{job}", "1", "{node}", "v1", "{name}", "cmdline", "{kind}", "waits", "{id}", "x").Replace(path), "")
			if resp.StatusCode != http.StatusMethodNotAllowed && resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: %s", m, path, resp.Status)
			}
		}
	}
}

// TestWhatIsHiddenLooksAsIfItWereNotThere compares, where jobs are private, every
// answer about another's job with that about none.
func TestWhatIsHiddenLooksAsIfItWereNotThere(t *testing.T) {
	s := newSite(t)
	ids := s.identities()
	private := &ids[slices.IndexFunc(ids, func(i identity) bool { return i.name == "private" })]
	var other job.ID
	for other < 20 { // a number that stands nowhere else in an answer
		other, _ = s.submit("ben")
	}
	for _, r := range s.routes() {
		method, path, _ := strings.Cut(r, " ")
		if !strings.Contains(path, "{job}") {
			continue
		}
		answer := func(id string) string {
			resp, text := s.ask(private, method, strings.ReplaceAll(path, "{job}", id), "")
			return resp.Status + strings.ReplaceAll(text, id, "N")
		}
		if hidden, none := answer(other.String()), answer("999999"); hidden != none {
			t.Errorf("%s: %s\nand of none: %s", r, hidden, none)
		}
	}
	for verb, p := range probes {
		if !strings.HasPrefix(verb, "POST /v1/jobs/change") {
			continue
		}
		answer := func(id string) string {
			resp, text := s.ask(private, http.MethodPost, "/v1/jobs/change", p.body(id))
			return resp.Status + strings.ReplaceAll(text, id, "N")
		}
		if hidden, none := answer(other.String()), answer("999999"); hidden != none {
			t.Errorf("%s: %s\nand of none: %s", verb, hidden, none)
		}
	}
}
