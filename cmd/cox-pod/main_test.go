package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLinkedPackages: the first process of every pod stays small, and knows nothing of
// Kubernetes.
func TestLinkedPackages(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(out))
	if len(all) < 50 {
		t.Fatalf("only %d packages are listed", len(all))
	}
	for _, p := range all {
		for _, foreign := range []string{"net/http", "k8s.io", "github.com/spf13", "charm.land", "modernc.org", "github.com/danielgtaylor", "log/syslog", "html/template", "text/template", "google.golang.org"} {
			if p == foreign || strings.HasPrefix(p, foreign+"/") {
				t.Errorf("%s is linked", p)
			}
		}
	}
}

// TestUsage: what is no command is refused.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"run", "x"}, {"tell"}, {"install"}, {"sail"}} {
		if code := dispatch(args); code != 2 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}
