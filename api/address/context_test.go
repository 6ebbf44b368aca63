package address

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestContexts: contexts are kept, and Find takes the current one after --server and COX_SERVER,
// each of which may name one.
func TestContexts(t *testing.T) {
	env := map[string]string{"HOME": t.TempDir()}
	e := Env{Getenv: func(n string) string { return env[n] }, UID: 1000, Exists: func(string) bool { return false }}
	if list, err := e.Contexts(); err != nil || len(list) > 0 {
		t.Fatalf("%v, %v", list, err)
	}
	err := e.SaveContexts([]Context{{Name: "prod", Server: "https://cox.example.org", Token: "secret"}, {Name: "lab", Server: "ssh://login1", Current: true}})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(env["HOME"], ".config", "coxswain", "contexts")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", st, err)
	}
	for _, c := range []struct {
		flag, variable string
		want           Address
	}{
		{"", "", Address{SSH: "ssh://login1", URL: "http://cox"}},
		{"prod", "", Address{URL: "https://cox.example.org", Token: "secret"}},
		{"", "prod", Address{URL: "https://cox.example.org", Token: "secret"}},
		{"lab", "prod", Address{SSH: "ssh://login1", URL: "http://cox"}},
		{"unix:///run/x", "prod", Address{Socket: "/run/x", URL: "http://cox"}},
		{"other", "", Address{URL: "http://other"}}, // the name of a host
		{"", "ssh://anna@h:22/run/x", Address{SSH: "ssh://anna@h:22/run/x", URL: "http://cox"}},
	} {
		env["COX_SERVER"] = c.variable
		if got, err := e.Find(c.flag, ""); err != nil || got != c.want {
			t.Errorf("--server %q, COX_SERVER=%q: %+v, %v; want %+v", c.flag, c.variable, got, err, c.want)
		}
	}
	if err := os.Chmod(filepath.Join(env["HOME"], ".config", "coxswain", "contexts"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Contexts(); os.Getuid() != 0 && fault.KindOf(err) != fault.Permission {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// TestTokenOfTheOldFolder: the token of the version before is found, until there is one in its new place.
func TestTokenOfTheOldFolder(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home, "COX_SERVER": "http://h:1"}
	e := Env{Getenv: func(n string) string { return env[n] }}
	for _, place := range []string{"cox", "coxswain"} {
		if err := os.MkdirAll(filepath.Join(home, ".config", place), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".config", place, "token"), []byte("of-"+place+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := e.Find("", ""); err != nil || a.Token != "of-"+place {
			t.Errorf("%s: %+v, %v", place, a, err)
		}
	}
}
