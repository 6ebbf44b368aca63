package address

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestFind(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".config", "cox"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".config", "cox", "token"), []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	own, run := home+"/.local/state/coxswain/cox.sock", "/run/user/7/coxswain/cox.sock"
	for _, c := range []struct {
		name          string
		server, token string
		env           []string
		exists        []string
		want          Address
	}{
		{"nothing is there: one's own", "", "", nil, nil, Address{Socket: own, URL: "http://cox"}},
		{"nothing is there, with a runtime directory", "", "", []string{"XDG_RUNTIME_DIR=/run/user/7"}, nil, Address{Socket: run, URL: "http://cox"}},
		{"the machine's", "", "", []string{"XDG_RUNTIME_DIR=/run/user/7"}, []string{MachineSocket, run, own}, Address{Socket: MachineSocket, URL: "http://cox"}},
		{"the session's", "", "", []string{"XDG_RUNTIME_DIR=/run/user/7"}, []string{run, own}, Address{Socket: run, URL: "http://cox"}},
		{"the state directory's, though there is a session", "", "", []string{"XDG_RUNTIME_DIR=/run/user/7"}, []string{own}, Address{Socket: own, URL: "http://cox"}},
		{"the environment's", "", "", []string{"COX_SERVER=unix:///a/b"}, []string{MachineSocket}, Address{Socket: "/a/b", URL: "http://cox"}},
		{"a path", "/a/b", "", []string{"COX_SERVER=http://x:1"}, nil, Address{Socket: "/a/b", URL: "http://cox"}},
		{"a host, with the token's file", "http://h:7461/", "", nil, nil, Address{URL: "http://h:7461", Token: "from-file"}},
		{"a bare host", "h:7461", "", []string{"COX_TOKEN=from-env"}, nil, Address{URL: "http://h:7461", Token: "from-env"}},
		{"an option outranks", "https://h", "given", []string{"COX_TOKEN=from-env"}, nil, Address{URL: "https://h", Token: "given"}},
	} {
		e := Env{
			Getenv: func(name string) string {
				for _, kv := range append([]string{"HOME=" + home}, c.env...) {
					if v, ok := strings.CutPrefix(kv, name+"="); ok {
						return v
					}
				}
				return ""
			},
			UID:    7,
			Exists: func(s string) bool { return slices.Contains(c.exists, s) },
		}
		if got, err := e.Find(c.server, c.token); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestAddressesThatAreNone(t *testing.T) {
	for _, s := range []string{"unix://rel", "ftp://h", "http://", "http://h/v1", "http://u:p@h", "http://h?x=1", "http://[::1", ":", "http://h:port"} {
		if a, err := Parse(s); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
			t.Errorf("%s: %+v, %v", s, a, err)
		}
	}
}

func TestNetwork(t *testing.T) {
	for s, want := range map[string]string{
		"/a": "unix /a", "http://h": "tcp h:80", "https://h": "tcp h:443", "http://h:9": "tcp h:9", "http://[::1]": "tcp [::1]:80", "http://[::1]:9": "tcp [::1]:9",
	} {
		a, err := Parse(s)
		if n, to := a.Network(); err != nil || n+" "+to != want {
			t.Errorf("%s: %s %s, %v", s, n, to, err)
		}
	}
}

func TestRootListensForTheMachine(t *testing.T) {
	env := func(string) string { return "/x" }
	if got := (Env{Getenv: env, UID: 0}).Listen(); got != MachineSocket {
		t.Error(got)
	}
	if got := (Env{Getenv: env, UID: 7}).Listen(); got != "/x/coxswain/cox.sock" {
		t.Error(got)
	}
}

func TestExplain(t *testing.T) {
	a := Address{Socket: "/s"}
	for err, want := range map[error]struct {
		kind   fault.Kind
		remedy string
	}{
		fs.ErrNotExist:       {fault.Unavailable, "cox up"},
		syscall.ECONNREFUSED: {fault.Unavailable, "cox up"},
		syscall.EACCES:       {fault.Permission, "COX_SERVER"},
		errors.New("x"):      {fault.Unavailable, "ask again"},
	} {
		got := a.Explain(err)
		if fault.KindOf(got) != want.kind || !strings.Contains(fault.Remedy(got), want.remedy) || !strings.Contains(got.Error(), "/s") {
			t.Errorf("%v: %v (%s)", err, got, fault.Remedy(got))
		}
	}
}
