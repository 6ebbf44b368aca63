package registry_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/registry"
)

// startRegistry is a registry that takes anna with "right", by Basic or by a token.
func startRegistry(t *testing.T, bearer bool) (host string) {
	t.Helper()
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, given := r.BasicAuth()
		right := user == "anna" && password == "right"
		switch {
		case bearer && r.URL.Path == "/token" && r.URL.Query().Get("service") != "lab":
			w.WriteHeader(http.StatusBadRequest)
		case right && (!bearer || r.URL.Path == "/token"):
		case given && bearer && r.URL.Path != "/token":
			t.Errorf("the password went to %s", r.URL)
		case bearer:
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+s.URL+`/token",service="lab"`)
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path != "/v2/":
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestRegistryCommands(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("COX_SERVER", "")
	cox := func(in string, args ...string) func(code int, out, err string) {
		r := clitest.Run(t, clitest.Root(registry.Commands), "", in, append([]string{"registry"}, args...)...)
		return func(code int, out, err string) { t.Helper(); r.Check(t, code, out, err) }
	}
	basic, bearer := startRegistry(t, false), startRegistry(t, true)
	if bearer < basic {
		basic, bearer = bearer, basic
	}
	login := func(host string, more ...string) []string {
		return append([]string{"login", host, "--username", "anna", "--password-stdin"}, more...)
	}
	cox("", "list", "-o", "json")(0, "[]\n", "")
	cox("", "list")(0, "", "no logins          cox registry login HOST makes one\n")
	cox("right\n", login(basic, "--tls-verify=false")...)(0, basic+": logged in as anna\n", "")
	cox("right", login("https://"+bearer+"/", "--tls-verify=false")...)(0, bearer+": logged in as anna\n", "")
	cox("wrong", login(basic, "--tls-verify=false")...)(77, "", "~the registry "+basic+" refuses user anna with this password")
	cox("wrong", login(bearer, "--tls-verify=false")...)(77, "", "~refuses user anna")
	cox("right", login(basic)...)(75, "", "~add --tls-verify=false")
	cox("right", login("127.0.0.1:1")...)(75, "", "~the registry 127.0.0.1:1 does not answer")
	cox("right", "login", basic, "--username", "anna")(2, "", "~standard input is no terminal")
	cox("right", "login", basic, "--password-stdin")(2, "", "~--password-stdin needs --username")
	cox("", login(basic)...)(2, "", "~the password is empty")
	cox("", "login")(2, "", "~needs the name of one registry")
	cox("right", login("reg.io/team")...)(2, "", "~is no registry")
	cox("", "list", "-o", "name")(0, basic+"\n"+bearer+"\n", "")
	cox("", "list", "-o", "json")(0, "~\"user\": \"anna\"", "")
	if text, err := os.ReadFile(filepath.Join(config, "coxswain", "registry", "config.json")); err != nil || !strings.Contains(string(text), basic) {
		t.Errorf("%s %v", text, err)
	}
	cox("", "logout", basic)(0, basic+": logged out\n", "")
	cox("", "logout", basic)(3, "", "~there is no login for "+basic)
	cox("", "logout", "--all")(0, bearer+": logged out\n", "")
	t.Setenv("COX_SERVER", "ssh://login1")
	cox("right", login(basic, "--tls-verify=false")...)(69, "", "~the server ssh://login1 is another machine")
	t.Setenv("COX_SERVER", "https://cox.example.org")
	cox("right", login(basic, "--tls-verify=false")...)(69, "", "~the server https://cox.example.org is another machine")
}
