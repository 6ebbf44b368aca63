package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/internal/release"
)

// TestVersions: how each kind of package writes a version, and which are none. dpkg takes a
// candidate for older than its release.
//
// Seen to fail with: "-" in place of "~" in Debian.
func TestVersions(t *testing.T) {
	for text, debian := range map[string]string{
		"v1.2.3":                              "1.2.3",
		"v1.2.3-rc.1":                         "1.2.3~rc.1",
		"v0.0.0-20261128140444-f4e03ae9012a":  "0.0.0~20261128140444.f4e03ae9012a",
		"v1.2.3-0.20261128140444-f4e03ae9012": "1.2.3~0.20261128140444.f4e03ae9012",
	} {
		v, err := release.ParseVersion(text)
		if err != nil || v.Debian() != debian || "v"+v.Plain() != text {
			t.Errorf("%s: %q %q %v", text, v.Debian(), v.Plain(), err)
		}
	}
	for _, text := range []string{"", "1.2.3", "v1.2", "v01.2.3", "v1.2.3+dirty", "v1.2.3 ", "v1.2.3-a/b"} {
		if v, err := release.ParseVersion(text); err == nil {
			t.Errorf("%q is %q", text, v)
		}
	}
	if dpkg, err := exec.LookPath("dpkg"); err == nil {
		if err := exec.Command(dpkg, "--compare-versions", release.Version("v1.2.3-rc.1").Debian(), "lt", release.Version("v1.2.3").Debian()).Run(); err != nil {
			t.Error("dpkg takes a candidate for newer than its release")
		}
	}
}

// TestFindSource: the version is the commit's tag, or is made from the commit; a tree with
// changes is refused unless version and time are given.
//
// Seen to fail with: no look at git status; --untracked-files=no.
func TestFindSource(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
		"GIT_AUTHOR_DATE": "@1764338400 +0900", "GIT_COMMITTER_DATE": "@1764338400 +0900", "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_SYSTEM": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args[0], err, out)
		}
	}
	find := func(version, epoch string) (release.Source, string) {
		s, err := release.FindSource(dir, version, epoch)
		if err != nil {
			return s, err.Error()
		}
		return s, ""
	}
	if _, err := find("", ""); !strings.Contains(err, "set VERSION and SOURCE_DATE_EPOCH") {
		t.Errorf("no checkout: %q", err)
	}
	if s, err := find("v2.0.0", "7"); err != "" || s.Version != "v2.0.0" || !s.Time.Equal(time.Unix(7, 0)) {
		t.Errorf("no checkout, all given: %+v %s", s, err)
	}
	git("init", "-q")
	file := filepath.Join(dir, "a")
	if err := os.WriteFile(file, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("add", "a")
	git("commit", "-q", "-m", "one")
	at := time.Unix(1764338400, 0)
	if s, err := find("", ""); err != "" || !strings.HasPrefix(string(s.Version), "v0.0.0-20251128140000-") || len(s.Version) != len("v0.0.0-20251128140000-f4e03ae9012a") || !s.Time.Equal(at) {
		t.Errorf("without a tag: %+v %s", s, err)
	}
	git("tag", "v1.0.0-rc.1")
	git("tag", "v1.0.0")
	if s, err := find("", ""); err != "" || s.Version != "v1.0.0" {
		t.Errorf("with two tags: %+v %s", s, err)
	}
	if err := os.WriteFile(file, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := find("v1.0.1", ""); !strings.Contains(err, "not committed") {
		t.Errorf("with changes: %q", err)
	}
	git("checkout", "-q", "a")
	if err := os.WriteFile(filepath.Join(dir, "b"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := find("", ""); !strings.Contains(err, "not committed") {
		t.Errorf("with a file that git does not know: %q", err)
	}
	if s, err := find("v1.0.1", "7"); err != "" || s.Version != "v1.0.1" {
		t.Errorf("with changes, all given: %+v %s", s, err)
	}
	if _, err := find("v1.0.1", "today"); !strings.Contains(err, "SOURCE_DATE_EPOCH") {
		t.Errorf("a wrong time: %q", err)
	}
}
