package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/server/transport"
)

func TestBadRequests(t *testing.T) {
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	r := start(t, p, nil)
	admin := r.Token(t, "anna", func(k *state.Token) { k.Admin = true })
	good, _ := json.Marshal(servertest.Request())
	with := func(field string) string { return `{` + field + `,` + string(good[1:]) }
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		kind                     fault.Kind
		want                     string
	}{
		{"no route", "GET", "/v1/frobs", "", 404, fault.Unsupported, "has no GET /v1/frobs"},
		{"next version", "GET", "/v2/jobs", "", 404, fault.Unsupported, "has no GET /v2/jobs"},
		{"not of the API", "GET", "/frobs.html", "", 404, fault.NotFound, "no GET /frobs.html"},
		{"wrong method", "DELETE", "/v1/jobs", "", 405, fault.Invalid, "only GET, POST"},
		{"unknown parameter", "GET", "/v1/jobs?frob=1", "", 400, fault.Invalid, "frob"},
		{"parameter of a wrong type", "GET", "/v1/jobs?limit=many", "", 400, fault.Invalid, "limit"},
		{"parameter out of range", "GET", "/v1/jobs?limit=-1", "", 400, fault.Invalid, "limit"},
		{"cursor", "GET", "/v1/jobs?cursor=x", "", 400, fault.Invalid, "cursor"},
		{"unknown job", "GET", "/v1/jobs/77", "", 404, fault.NotFound, "no job 77"},
		{"unknown task", "GET", "/v1/jobs/1_4", "", 404, fault.NotFound, "no job 1_4"},
		{"no job number", "GET", "/v1/jobs/all", "", 400, fault.Invalid, "all"},
		{"no script", "GET", "/v1/jobs/0/script", "", 400, fault.Invalid, "0"},
		{"unknown node", "GET", "/v1/nodes/v9", "", 404, fault.NotFound, "no node v9"},
		{"not JSON", "POST", "/v1/jobs", "#!/bin/sh\n", 400, fault.Invalid, "not the JSON"},
		{"empty", "POST", "/v1/jobs", "", 400, fault.Invalid, "not the JSON"},
		{"not JSON in a change", "POST", "/v1/jobs/change", "{", 400, fault.Invalid, "not the JSON"},
		{"unknown field", "POST", "/v1/jobs", with(`"frob":1`), 400, fault.Invalid, `no field "frob"`},
		{"unknown field in a change", "POST", "/v1/jobs/change", `{"frob":1}`, 400, fault.Invalid, `unknown field "frob"`},
		{"unknown verb", "POST", "/v1/jobs/change", `{"select":{"ids":["1"]},"verb":"explode"}`, 400, fault.Invalid, `no "explode"`},
		{"unknown signal", "POST", "/v1/jobs/change", `{"select":{"ids":["1"]},"verb":"signal","signal":"SIGNOPE"}`, 400, fault.Invalid, "signal"},
		{"no signal", "POST", "/v1/jobs/change", `{"select":{"ids":["1"]},"verb":"signal"}`, 400, fault.Invalid, "which one"},
		{"nothing to update", "POST", "/v1/jobs/change", `{"select":{"ids":["1"]},"verb":"update"}`, 400, fault.Invalid, "nothing to change"},
		{"update to no partition", "POST", "/v1/jobs/change", `{"select":{"ids":["1"]},"verb":"update","update":{"partitions":["x"]}}`, 400, fault.Invalid, "no partition x"},
		{"update of a bad dependency", "POST", "/v1/jobs/change", `{"select":{"ids":["1"]},"verb":"update","update":{"depends":"after:"}}`, 400, fault.Invalid, "after"},
		{"negative grace", "POST", "/v1/jobs/change", `{"select":{"ids":["1"]},"verb":"cancel","grace":-1}`, 400, fault.Invalid, "grace"},
		{"drain without reason", "POST", "/v1/nodes/change", `{"nodes":["v1"],"verb":"drain"}`, 400, fault.Invalid, "needs a reason"},
		{"unknown verb for nodes", "POST", "/v1/nodes/change", `{"nodes":["v1"],"verb":"paint"}`, 400, fault.Invalid, "paint"},
		{"no nodes", "POST", "/v1/nodes/change", `{"nodes":[],"verb":"resume"}`, 400, fault.Invalid, "none"},
		{"relative backup", "POST", "/v1/backup", `{"dir":"x"}`, 400, fault.Invalid, "absolute"},
		{"Last-Event-ID", "GET", "/v1/watch?jobs=x", "", 400, fault.Invalid, "job id"},
	} {
		resp, body := r.Ask(t, c.method, c.path, admin, c.body)
		servertest.CheckRefusal(t, c.name, resp, body, c.status, c.kind, c.want)
	}
}

func TestHugeBodies(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	secret := r.Token(t, "anna", nil)
	huge := `{"text":"` + strings.Repeat("x", transport.MaxBody) + `"}`
	resp, body := r.Ask(t, "POST", "/v1/jobs", secret, huge)
	servertest.CheckRefusal(t, "announced", resp, body, 413, fault.Invalid, "larger than 8 MiB")
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.URL+"/v1/jobs", io.MultiReader(strings.NewReader(huge))) // of unknown length
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	if resp, err = http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	servertest.CheckRefusal(t, "in chunks", resp, string(b), 413, fault.Invalid, "larger than 8 MiB")
}

func TestVersions(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	secret := r.Token(t, "anna", nil)
	for v, want := range map[string]string{
		"":     "",
		"1.0":  "",
		"1.99": "", // may use only what the server lists
		"2.0":  "update the server",
		"0.9":  "update the client",
		"x":    "leave it out",
		"1":    "leave it out",
		"-1.0": "leave it out",
	} {
		resp, body := r.Ask(t, "GET", "/v1/jobs", secret, "", api.VersionHeader, v)
		if resp.Header.Get(api.VersionHeader) != transport.APIVersion {
			t.Errorf("%q: the answer is of version %q", v, resp.Header.Get(api.VersionHeader))
		}
		switch {
		case want == "":
			if resp.StatusCode != 200 {
				t.Errorf("%q: %s", v, body)
			}
		case !strings.Contains(body, want):
			t.Errorf("%q: %s", v, body)
		case want == "leave it out":
			servertest.CheckRefusal(t, v, resp, body, 400, fault.Invalid, "no version")
		default:
			servertest.CheckRefusal(t, v, resp, body, 501, fault.Unsupported, "this client speaks API "+v)
		}
	}
}

func TestAPanicIsAnAnswer(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, nil)
	p.Jobs = append(p.Jobs, nil) // which List follows
	resp, body := r.Ask(t, "GET", "/v1/jobs", r.Token(t, "anna", nil), "")
	servertest.CheckRefusal(t, "panic", resp, body, 500, fault.Internal, "(request ")
	if log := r.Logged.String(); !strings.Contains(log, "panicked") || !strings.Contains(log, "select.go") {
		t.Errorf("%s", log)
	}
}

func TestErrorsOfThePlaneKeepTheirKind(t *testing.T) {
	p := servertest.NewPlane()
	r := start(t, p, nil)
	for _, k := range []fault.Kind{fault.Exhausted, fault.Unavailable, fault.Conflict, fault.Unsupported} {
		p.Fail = fault.New(k, "because").Advise("do that")
		_, err := r.As(t, "anna").Submit(t.Context(), servertest.Request())
		if fault.KindOf(err) != k || fault.Remedy(err) != "do that" || err.Error() != "because" {
			t.Errorf("%s: %v", k, err)
		}
	}
}

func TestSockets(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	if _, err := transport.ListenSocket(r.Socket); fault.KindOf(err) != fault.Conflict || !strings.Contains(fault.Remedy(err), "cox down") {
		t.Errorf("in use: %v", err)
	}
	if _, err := transport.ListenTCP(strings.TrimPrefix(r.URL, "http://")); fault.KindOf(err) != fault.Conflict || fault.Remedy(err) == "" {
		t.Errorf("port in use: %v", err)
	}
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:7461", ":7461", "nonsense"} {
		if _, err := transport.ListenTCP(addr); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
			t.Errorf("%s: %v", addr, err)
		}
	}
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as a killed server leaves it
	l.Close()
	again, err := transport.ListenSocket(stale)
	if err != nil {
		t.Fatalf("stale: %v", err)
	}
	defer again.Close()
	st, err := os.Stat(stale)
	want := os.FileMode(0o600)
	if os.Geteuid() == 0 {
		want = 0o666
	}
	if err != nil || st.Mode().Perm() != want {
		t.Errorf("%v %v", st.Mode(), err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := transport.ListenSocket(file); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a file: %v", err)
	}
	if b, _ := os.ReadFile(file); string(b) != "mine" {
		t.Error("the file is gone")
	}
	if _, err := transport.ListenSocket(filepath.Join(dir, strings.Repeat("x", 120))); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a long name: %v", err)
	}
}

// TestOneOfManyGetsTheSocket starts servers at once on one stale socket.
func TestOneOfManyGetsTheSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cox.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	var wg sync.WaitGroup
	got := make(chan net.Listener, 20)
	for range 20 {
		wg.Go(func() {
			l, err := transport.ListenSocket(path)
			switch {
			case err == nil:
				got <- l
			case fault.KindOf(err) != fault.Conflict:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(got)
	n := 0
	for l := range got {
		n++
		l.Close()
	}
	if n != 1 {
		t.Errorf("%d of 20 have it", n)
	}
}

func TestNoServerIsExplained(t *testing.T) {
	c, err := client.New(client.Options{Socket: filepath.Join(t.TempDir(), "none")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Info(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Remedy(err), "cox up") {
		t.Errorf("%v", err)
	}
	if _, err := address.Parse("ftp://x"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
}

// TestAThousandClients has them connected and asking at once.
func TestAThousandClients(t *testing.T) {
	const n = 1000
	p := servertest.NewPlane()
	p.Fill(t, 1, "anna", 2001, nil)
	r := start(t, p, nil)
	var wg sync.WaitGroup
	gate := make(chan struct{})
	errs := make(chan error, n)
	for range n {
		wg.Go(func() {
			conn, err := net.Dial("unix", r.Socket)
			if err != nil {
				errs <- err
				return
			}
			defer conn.Close()
			<-gate
			_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
			fmt.Fprintf(conn, "GET /v1/jobs?columns=id HTTP/1.1\r\nHost: cox\r\nConnection: close\r\n\r\n")
			b, err := io.ReadAll(conn)
			if err != nil || !strings.Contains(string(b), "200 OK") {
				errs <- fmt.Errorf("%q, %w", b, err)
			}
		})
	}
	close(gate)
	wg.Wait()
	close(errs)
	failed := 0
	for err := range errs {
		if failed++; failed < 5 {
			t.Error(err)
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d got no answer", failed, n)
	}
}

// TestSlowClientsAreCutOff sends half a head, half a body, and nothing more.
func TestSlowClientsAreCutOff(t *testing.T) {
	r := start(t, servertest.NewPlane(), func(c *Config) { c.Patience = 100 * time.Millisecond })
	for _, c := range []struct{ name, sent, want string }{
		{"half a head", "GET /v1/jobs HTTP/1.1\r\nHost: c", ""},
		{"half a body", "POST /v1/jobs HTTP/1.1\r\nHost: cox\r\nContent-Length: 1000\r\n\r\n{", "did not come within"},
		{"nothing", "", ""},
	} {
		conn, err := net.Dial("unix", r.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
		_, _ = io.WriteString(conn, c.sent)
		b, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(b), c.want) {
			t.Errorf("%s: %q, %v", c.name, b, err)
		}
	}
}

func TestABodyThatBreaksOff(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	conn, err := net.Dial("unix", r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/jobs HTTP/1.1\r\nHost: cox\r\nContent-Length: 1000\r\n\r\n{")
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(conn)
	if !strings.Contains(string(b), "broke off") {
		t.Errorf("%s", b)
	}
	if len(r.Plane.Jobs) != 0 {
		t.Error("it was taken")
	}
}

// TestTheSocketsFolderCanBeLockedByNobodyElse: whoever may read a folder may lock it.
func TestTheSocketsFolderCanBeLockedByNobodyElse(t *testing.T) {
	dir := t.TempDir()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	l, err := transport.ListenSocket(filepath.Join(dir, "cox.sock"))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if st, err := os.Stat(filepath.Join(dir, "cox.sock.lock")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the lock is %v, %v", st, err)
	}
}
