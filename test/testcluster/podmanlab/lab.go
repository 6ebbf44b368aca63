// Package podmanlab gives tests a podman with an image of its own, which comes from no registry,
// and a cox that runs inside of it.
package podmanlab

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Image is the image that is there: a busybox with an entry point and variables of its own.
const Image = "coxswain.test/busybox:1"

// Lab is a folder with podman.
type Lab struct {
	Podman string // the program
	Cox    string // cox-slurm, which needs no library of the machine; cox-pmix is beside it
}

// Start makes the folder. The test is skipped where podman cannot be had: without root, for
// example. It is removed with the test.
func Start(t testing.TB) *Lab {
	t.Helper()
	l := StartPodman(t)
	dir := filepath.Dir(filepath.Dir(l.Podman))
	l.Cox = filepath.Join(dir, "cox-slurm")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir, "./cmd/cox-slurm", "./cmd/cox-pmix")
	build.Dir, build.Env = moduleRoot(t), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build cox-slurm and cox-pmix: %v; %s", err, out)
	}
	return l
}

// StartPodman is Start without cox.
func StartPodman(t testing.TB) *Lab {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("podman's store and packages need root")
	}
	root := moduleRoot(t)
	dir, err := os.MkdirTemp("", "cox-podman-") // a short name, and a folder through which everybody may pass
	if err != nil {
		t.Fatal(err)
	}
	l := &Lab{Podman: filepath.Join(dir, "bin", "podman")}
	t.Cleanup(func() { l.remove(t, dir) })
	out, err := exec.Command(filepath.Join(root, "scripts", "containers", "podman.sh"), dir, Image).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skipf("podman cannot be had here: %s", out)
	}
	if err != nil {
		t.Fatalf("make a podman: %v; %s", err, out)
	}
	return l
}

// Containers lists the containers that are there, also those that have ended.
func (l *Lab) Containers(t testing.TB) []string {
	t.Helper()
	return strings.Fields(l.Call(t, "ps", "--all", "--format={{.Names}}"))
}

// Call runs podman and returns what it printed.
func (l *Lab) Call(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(l.Podman, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("podman %s: %v; %s", strings.Join(args, " "), err, said.String())
	}
	return string(out)
}

// remove removes the folder, with what podman has in it.
func (l *Lab) remove(t testing.TB, dir string) {
	if out, err := exec.Command(l.Podman, "system", "reset", "--force").CombinedOutput(); err != nil {
		t.Logf("podman system reset: %v; %s", err, out)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Errorf("remove the lab: %v", err)
	}
}

// moduleRoot is the folder of go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}
