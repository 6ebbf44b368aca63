package server_test

import (
	"testing"
)

// TestContextCommands: servers get names, one of them is the current one, and commands ask it.
func TestContextCommands(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("COX_SERVER", "")
	f := newFake(t)
	cox := func(args ...string) func(code int, out, err string) {
		r := coxAt(t, "", "", args...)
		return func(code int, out, err string) { t.Helper(); r.Check(t, code, out, err) }
	}
	cox("context")(0, "", "no contexts          cox context add NAME SERVER makes one\n")
	cox("context", "add", "lab", f.URL)(0, "lab is "+f.URL+", which commands ask now\n", "")
	cox("context", "add", "far", "ssh://login1")(0, "far is ssh://login1\n", "")
	cox("context", "list", "-o", "name")(0, "far\nlab\n", "")
	cox("context")(0, "NAME  SERVER\nfar   ssh://login1\nlab*  "+f.URL+"\n", "")
	cox("ping")(0, "~", "")
	if len(f.Requests()) == 0 {
		t.Error("cox ping did not ask the current context")
	}
	before := len(f.Requests())
	cox("context", "use", "far")(0, "commands ask far, ssh://login1\n", "")
	cox("ping", "--server", "lab")(0, "~", "")
	if len(f.Requests()) == before {
		t.Error("cox ping --server lab did not ask it")
	}
	cox("context", "use", "none-of-them")(3, "", "~there is no context none-of-them")
	cox("context", "use", "--none")(0, "commands ask this machine's own server\n", "")
	cox("context", "add", "a.b", "ssh://x")(2, "", "~is no name of a context")
	cox("context", "add", "x", "ssh://-oProxyCommand=y")(2, "", "~is not usable")
	cox("context", "add", "x")(2, "", "~a context has a name and a server")
	cox("context", "remove", "far")(0, "removed far\n", "")
	cox("context", "remove", "far")(3, "", "~there is no context far")
	cox("context", "list", "-o", "jsonpath={[*].name}")(0, "lab\n", "")
}
