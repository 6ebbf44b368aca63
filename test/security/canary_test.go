package security

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/server/config"
)

// canaries are secrets by what they are. Each is found nowhere but where it was put.
var canaries = map[string]string{
	"server": "c4n4ry-of-the-servers-own-environment",
	"env":    "c4n4ry-of-a-submitted-environment",
	"export": "c4n4ry-of-an-export",
	"script": "c4n4ry-in-a-script",
	"wrap":   "c4n4ry-in-a-wrapped-command",
	"mail":   "c4n4ry-of-the-mail-relay",
	"body":   "c4n4ry-in-a-body-that-is-refused",
}

// found are the canaries in a text, but those that may be there.
func found(text string, but ...string) (out []string) {
	for what, secret := range canaries {
		allowed := false
		for _, b := range but {
			allowed = allowed || b == what
		}
		if !allowed && strings.Contains(text, secret) {
			out = append(out, what)
		}
	}
	return out
}

// relay is a mail relay that takes no password; it says when it was asked.
func relay(t *testing.T) (addr string, asked <-chan bool) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	said := make(chan bool, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprint(c, "220 relay ESMTP\r\n")
				for in := bufio.NewScanner(c); in.Scan(); {
					if strings.HasPrefix(in.Text(), "EHLO") {
						fmt.Fprint(c, "250-relay\r\n250 AUTH PLAIN LOGIN\r\n")
						continue
					}
					fmt.Fprint(c, "535 no\r\n")
					select {
					case said <- true:
					default:
					}
				}
			}()
		}
	}()
	return l.Addr().String(), said
}

// TestSecretsStayWhereTheyBelong runs a job with secrets everywhere, asks for all that
// can be asked for, and looks for the secrets: in what is logged, in the arguments of
// every process, in the files of the state directory, in what programs of the site and
// supervisors see, in metrics, profiles and audit, and in what others are answered.
func TestSecretsStayWhereTheyBelong(t *testing.T) {
	t.Setenv("COX_TEST_CANARY", canaries["server"])
	addr, asked := relay(t)
	hooked := filepath.Join(folder(t), "hook")
	m := newMachine(t, func(m *machine, c *config.Config) {
		hook := filepath.Join(m.dir, "prolog")
		secret := filepath.Join(m.dir, "password")
		for name, text := range map[string]string{hook: "#!/bin/sh\nenv > " + hooked + "\n", secret: canaries["mail"] + "\n"} {
			if err := os.WriteFile(name, []byte(text), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
		c.Hooks.Prolog = hook
		c.Notify.SMTP = config.SMTP{Addr: addr, From: "cox@example.org", User: "cox", PasswordFile: secret}
	})
	uid := os.Getuid()
	if uid == 0 {
		uid = annaUID
	}
	owner, root := m.as(uid), m.as(os.Getuid())
	dir := home(t, uid)
	secret, theirs := m.token(root, `{"comment":"canary"}`), m.token(root, fmt.Sprintf(`{"user":%q}`, stranger(t)))
	canaries["token"] = secret[20:]
	defer delete(canaries, "token")

	running := filepath.Join(dir, "running")
	number := m.submit(owner, &api.Submit{
		Text: "#!/bin/sh\n# " + canaries["script"] + "\nsrun sh -c 'echo up; exec sleep 600' &\necho > " + running + "\nwait\n",
		File: "job.sh", Dir: dir, Environ: []string{"PATH=/usr/bin:/bin", "SECRET=" + canaries["env"]},
		Args: []string{"--export=ALL,OTHER=" + canaries["export"], "--output=" + filepath.Join(dir, "out"), "--mail-type=BEGIN,END", "--mail-user=anna@example.org"},
	})
	eventually(t, "the step runs", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "out"))
		return err == nil && strings.Contains(string(b), "up")
	})
	<-asked // the relay refused the password
	wrapped := m.submit(owner, &api.Submit{
		Text: "#!/bin/sh\n# This script was created by sbatch --wrap.\n\necho " + canaries["wrap"] + "\n", File: "wrap", Dir: dir,
		Args: []string{"--hold", "--wrap=echo " + canaries["wrap"]},
	})

	// Requests that fail, with secrets where they do not belong.
	for _, header := range []string{secret, "Token " + secret, "Bearer " + secret + "x", "Bearer" + secret} {
		bad := identity{name: "bad", url: m.url, client: root.client, header: header}
		bad.client = http.DefaultClient
		if resp, text := ask(t, &bad, http.MethodGet, "/v1/jobs", ""); resp.StatusCode != http.StatusUnauthorized || len(found(text)) > 0 {
			t.Errorf("%s %s", resp.Status, text)
		}
	}
	_, _ = ask(t, owner, http.MethodDelete, "/v1/tokens/"+secret, "")
	for _, path := range []string{"/v1/jobs", "/v1/jobs/change", "/v1/tokens", "/v1/advise", "/v1/nodes/change", "/v1/backup"} {
		for _, body := range []string{`{"` + canaries["body"] + `":1}`, `{"form":"` + canaries["body"] + `"}`, `"` + canaries["body"], `{"dir":"` + canaries["body"] + `","nodes":["` + canaries["body"] + `"]}`} {
			_, _ = ask(t, owner, http.MethodPost, path, body)
		}
	}

	// What another user is answered, on every route.
	other := &identity{name: "another", url: m.url, secret: theirs, client: http.DefaultClient}
	for _, r := range m.routes(other) {
		method, path, _ := strings.Cut(r, " ")
		for _, n := range []string{number, wrapped} {
			if _, text := ask(t, other, method, strings.ReplaceAll(path, "{job}", n), ""); strings.Contains(path, "{job}") && len(found(text)) > 0 {
				t.Errorf("%s tells another user secrets of %v of job %s", r, found(text), n)
			}
		}
		path = strings.NewReplacer("{job}", number, "{node}", "127.0.0.1", "{name}", "cmdline", "{kind}", "usage", "{id}", "x").Replace(path)
		if _, text := ask(t, other, method, path, ""); len(found(text)) > 0 {
			t.Errorf("%s tells another user secrets of %v", r, found(text))
		}
	}
	for _, path := range []string{"/v1/jobs?states=all&columns=" + column.Join(column.All()), "/v1/history?columns=" + column.Join(column.All())} {
		if resp, text := ask(t, other, http.MethodGet, path, ""); len(found(text)) > 0 || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, secrets of %v", path, resp.Status, found(text))
		}
	}

	// What only administrators see holds no secrets either.
	for _, path := range []string{"/metrics", "/v1/audit?limit=10000", "/v1/tokens", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/v1"} {
		resp, text := ask(t, root, http.MethodGet, path, "")
		if resp.StatusCode != http.StatusOK || len(found(text)) > 0 {
			t.Errorf("%s: %s, secrets of %v", path, resp.Status, found(text))
		}
	}
	m.lookAtProcesses(uid)
	if b, err := os.ReadFile(hooked); err != nil || len(found(string(b))) > 0 {
		t.Errorf("the prolog saw secrets of %v, %v", found(string(b)), err)
	}
	m.lookAtFiles()

	_, _ = ask(t, owner, http.MethodPost, "/v1/jobs/change", `{"select":{"ids":["`+number+`"]},"verb":"cancel","grace":0}`)
	m.ended(owner, number)
	m.lookAtFiles()
	if log := m.log.String(); len(found(log)) > 0 {
		for line := range strings.Lines(log) {
			if len(found(line)) > 0 {
				t.Errorf("logged: %s", line)
			}
		}
	}
}

// token makes a token by the API.
func (m *machine) token(id *identity, body string) (secret string) {
	m.t.Helper()
	resp, text := ask(m.t, id, http.MethodPost, "/v1/tokens", body)
	var made api.MadeToken
	if err := json.Unmarshal([]byte(text), &made); err != nil || resp.StatusCode != http.StatusCreated {
		m.t.Fatalf("%s %s", resp.Status, text)
	}
	return made.Secret
}

func (m *machine) routes(id *identity) []string {
	return (&site{t: m.t, url: m.url}).routes()
}

// lookAtProcesses looks at the arguments of every process of the machine, and at the
// environment of supervisors.
func (m *machine) lookAtProcesses(owner int) {
	m.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		m.t.Fatal(err)
	}
	supervisors := 0
	for _, p := range all {
		b, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		args := strings.ReplaceAll(string(b), "\x00", " ")
		// The test's own shell commands are arguments of tasks, the script is not.
		if f := found(args); len(f) > 0 {
			m.t.Errorf("process %s has secrets of %v in its arguments: %s", filepath.Base(p), f, args)
		}
		if strings.Contains(args, " supervise ") && strings.Contains(args, m.state) {
			supervisors++
			if env, err := os.ReadFile(filepath.Join(p, "environ")); err != nil || len(found(string(env))) > 0 {
				m.t.Errorf("a supervisor's environment has secrets of %v, %v", found(string(env)), err)
			}
		}
	}
	if supervisors == 0 {
		m.t.Error("no supervisor was found")
	}
}

// kept are files of the state directory that hold what users submitted. Their owners,
// and root, alone may read them.
var kept = regexp.MustCompile(`^(journal\.db(-wal|-shm)?|blobs/.*|packs/.*|small.*|engine/attempts.*|engine/s/[0-9.]+/(script|alloc\.json|journal))$`)

// lookAtFiles looks at the files of the state directory.
func (m *machine) lookAtFiles() {
	m.t.Helper()
	err := filepath.WalkDir(m.state, func(name string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // it was removed meanwhile
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return nil
		}
		rel, _ := filepath.Rel(m.state, name)
		if strings.HasPrefix(rel, "engine/bin/") {
			return nil // this program, which has the secrets in it
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil
		}
		text := string(b)
		for _, never := range []string{"token", "server", "mail", "body"} {
			if strings.Contains(text, canaries[never]) {
				m.t.Errorf("%s holds the secret of %s", rel, never)
			}
		}
		if f := found(text); len(f) > 0 && !kept.MatchString(rel) {
			m.t.Errorf("%s holds secrets of %v, and is none of the files that keep submissions", rel, f)
		}
		if len(found(text)) > 0 && st.Mode().Perm()&0o077 != 0 {
			m.t.Errorf("%s holds secrets of %v and has the mode %s", rel, found(text), st.Mode())
		}
		return nil
	})
	if err != nil {
		m.t.Error(err)
	}
}

// stranger is the name of a user that the machine has and that is not the test's.
func stranger(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nobody", "daemon"} {
		if u, err := user.Lookup(name); err == nil && u.Uid != fmt.Sprint(os.Getuid()) {
			return name
		}
	}
	t.Skip("this machine has no other user")
	return ""
}
