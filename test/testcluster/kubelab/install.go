package lab

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/checkout"
)

// installKubernetes has Kubernetes there, and what nodes need, and returns the folder of its programs.
func installKubernetes(t testing.TB, nodes bool) string {
	t.Helper()
	if os.Geteuid() != 0 {
		skipOrFail(t, "a cluster of real Kubernetes needs root")
	}
	if nodes {
		runScript(t, filepath.Join(scriptsDir(), "packages.sh"))
	}
	return runScript(t, filepath.Join(scriptsDir(), "build.sh"))
}

// scriptsDir is where the scripts are that build what is started.
func scriptsDir() string {
	return checkout.Path("scripts", "kube")
}

// runScript runs one of the scripts and returns the line that it printed.
func runScript(t testing.TB, script string, args ...string) string {
	t.Helper()
	c := exec.Command(script, args...)
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		skipOrFail(t, said.String())
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(script), err, said.String())
	}
	return strings.TrimSpace(string(out))
}

// skipOrFail skips a test that cannot have a cluster here, or fails it where all must run.
func skipOrFail(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
