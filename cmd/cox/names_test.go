package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestInstallNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	r := coxAt(t, "", "", "install-names", dir)
	r.check(t, 0, "~export PATH="+dir+":$PATH", "")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"sbatch", "srun", "squeue", "scancel", "sinfo", "sacct", "scontrol"} {
		if to, err := os.Readlink(filepath.Join(dir, n)); err != nil || filepath.Dir(to) != filepath.Dir(self) {
			t.Errorf("%s leads to %q, %v", n, to, err)
		}
	}
	coxAt(t, "", "", "install-names").check(t, 2, "", "~into which folder?")
}

// TestForeignFilesStay: a file is never replaced, a link only if asked, and then
// nothing else has been changed before.
func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "scontrol")
	if err := os.WriteFile(name, []byte("real"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"install-names", dir}, {"install-names", "--force", dir}} {
		coxAt(t, "", "", args...).check(t, 4, "", "~scontrol exists and is not a link")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d entries", len(entries))
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/bin/true", name); err != nil {
		t.Fatal(err)
	}
	coxAt(t, "", "", "install-names", dir).check(t, 4, "", "~scontrol is a link to /usr/bin/true")
	coxAt(t, "", "", "install-names", "-f", dir).check(t, 0, "~→", "")
	if to, _ := os.Readlink(name); to == "/usr/bin/true" {
		t.Error("the link was not replaced")
	}
}

func TestCompletion(t *testing.T) {
	f := newFake(t)
	f.mux.HandleFunc("GET /v1/jobs", jobsFor(map[string]string{"name": "8_3", "job_name": "sweep\x1b", "user": "ben", "state": "RUNNING"}))
	r := f.cox(t, "__complete", "exec", "")
	if !strings.HasPrefix(r.out, "8_3\tsweep� (ben) RUNNING\n") {
		t.Errorf("%q", r.out)
	}
	if got := f.last(t, nil); !strings.Contains(got, "states=RUNNING") {
		t.Error(got)
	}
	if r := f.cox(t, "__complete", "queue", "-u", "anna,"); !strings.HasPrefix(r.out, "anna,ben\n") {
		t.Errorf("%q", r.out)
	}
	if r := f.cox(t, "__complete", "queue", "-o", ""); !strings.HasPrefix(r.out, "wide\njson\n") {
		t.Errorf("%q", r.out)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		f.cox(t, "completion", shell).check(t, 0, "~__complete", "")
	}
	f.cox(t, "completion", "tcsh").check(t, 2, "", "~for which shell?")
}

// TestCompletionWithoutAServerIsQuickAndSilent: also with one that never answers.
func TestCompletionWithoutAServerIsQuickAndSilent(t *testing.T) {
	f := newFake(t)
	f.mux.HandleFunc("GET /v1/jobs", jobsNever)
	for _, server := range []string{"unix:///nowhere/s", f.URL} {
		began := time.Now()
		r := coxAt(t, server, "", "__complete", "show", "")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: %s", server, took)
		}
		if !strings.HasPrefix(r.out, ":") {
			t.Errorf("%s: %q", server, r.out)
		}
	}
}
