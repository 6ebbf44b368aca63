package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/internal/checkout"
	"github.com/coxswain-sched/coxswain/internal/release"
)

// host is what the tests build for: all targets only where there is time.
func host() []release.Target {
	if os.Getenv("COX_LONG") != "" {
		return release.Targets
	}
	return []release.Target{{OS: runtime.GOOS, Arch: runtime.GOARCH}}
}

var (
	testVersion = release.Version("v1.2.3-rc.1")
	testTime    = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
)

// shared is where the release of this checkout is, which all tests use; "" before one needs it.
var shared string

var buildShared = sync.OnceValue(func() error {
	var err error
	if shared, err = os.MkdirTemp("", "cox-release-test-"); err != nil {
		return err
	}
	_, err = release.Build(context.Background(), release.Options{
		Source: release.Source{Dir: checkout.Path(), Version: testVersion, Time: testTime}, Targets: host(), Out: shared,
	})
	return err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if shared != "" {
		os.RemoveAll(shared)
	}
	os.Exit(code)
}

// buildHere is the folder with the release of this checkout.
func buildHere(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the server is for Linux")
	}
	if testing.Short() {
		t.Skip("links every program")
	}
	if err := buildShared(); err != nil {
		t.Fatal(err)
	}
	return shared
}

// copySources copies what git knows or would take of the checkout, and the built console, with other times.
func copySources(t *testing.T) string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = checkout.Path()
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	console, err := filepath.Glob(checkout.Path("web/dist/assets/*")) // built, if it was
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"web/dist/*.*"} {
		more, err := filepath.Glob(checkout.Path(pattern))
		if err != nil {
			t.Fatal(err)
		}
		console = append(console, more...)
	}
	for _, name := range console {
		names = append(names, strings.TrimPrefix(name, checkout.Path("")+"/")+"\x00"...)
	}
	to := filepath.Join(t.TempDir(), "another folder")
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(checkout.Path(name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestSameBytes: a copy of the sources in another folder, with other times and modes and other
// settings of Go, makes the same files.
//
// Seen to fail with: -trimpath left out; the times of the files in place of the commit's; no
// GOAMD64 in runGo.
func TestSameBytes(t *testing.T) {
	here := buildHere(t)
	t.Setenv("GOAMD64", "v3")
	t.Setenv("GOFLAGS", "-buildvcs=true")
	t.Setenv("TZ", "Pacific/Auckland")
	there := filepath.Join(t.TempDir(), "out")
	names, err := release.Build(t.Context(), release.Options{
		Source: release.Source{Dir: copySources(t), Version: testVersion, Time: testTime}, Targets: host(), Out: there,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 4 {
		t.Errorf("only %q", names)
	}
	for _, name := range names {
		if !bytes.Equal(read(t, filepath.Join(here, name)), read(t, filepath.Join(there, name))) {
			t.Errorf("%s: other bytes", name)
		}
	}
	if _, err := release.Build(t.Context(), release.Options{Out: there}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a folder that has files: %v", err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unpackArchive writes an archive's files below a folder, and returns their heads by name.
func unpackArchive(t *testing.T, name, to string) map[string]*tar.Header {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(read(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	heads := map[string]*tar.Header{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return heads
		}
		if err != nil {
			t.Fatal(err)
		}
		heads[h.Name] = h
		file := filepath.Join(to, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(file, h.FileInfo().Mode())
		} else {
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(file, text, h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err) // a folder that comes after what is in it, too
		}
	}
}

// TestArchive: the archive unpacks below one folder, as `tar -x --strip-components=1 -C
// /usr/local` wants it. The programs run, and say the release's version; what messages name
// lies beside them.
//
// Seen to fail with: the folders after their files; no -X among the linker's flags.
func TestArchive(t *testing.T) {
	out, to := buildHere(t), t.TempDir()
	top := "coxswain_1.2.3-rc.1_" + runtime.GOOS + "_" + runtime.GOARCH
	heads := unpackArchive(t, filepath.Join(out, top+".tar.gz"), to)
	for name, h := range heads {
		if !strings.HasPrefix(name, top+"/") || h.Uid != 0 || h.Uname != "root" || !h.ModTime.Equal(testTime) {
			t.Errorf("%s: of %s, at %s", name, h.Uname, h.ModTime)
		}
	}
	for _, name := range []string{
		"bin/cox", "bin/cox-gpuprobe", "bin/cox-pmix", "bin/cox-pod", "bin/cox-slurm", "bin/cox-top", "share/doc/coxswain/LICENSE",
		"share/doc/coxswain/THIRD_PARTY_NOTICES.txt", "share/doc/coxswain/docs/reference/configuration.md", "share/doc/coxswain/examples/train.sbatch",
		"share/doc/coxswain/deploy/grafana/fleet.json", "share/doc/coxswain/deploy/prometheus/rules.yaml",
		"share/bash-completion/completions/cox", "share/zsh/site-functions/_cox", "share/fish/vendor_completions.d/cox.fish",
	} {
		if h := heads[top+"/"+name]; h == nil || h.Size == 0 {
			t.Errorf("no %s", name)
		}
	}
	cmd := exec.Command(filepath.Join(to, top, "bin", "cox"), "version")
	cmd.Env = append(os.Environ(), "HOME="+to, "COX_SERVER=")
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(said), "cox v1.2.3-rc.1 ") {
		t.Errorf("cox version: %v: %s", err, said)
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		if said, err := exec.Command(bash, "-n", filepath.Join(to, top, "share/bash-completion/completions/cox")).CombinedOutput(); err != nil {
			t.Errorf("the completion: %v: %s", err, said)
		}
	}
}

// TestPagesComeAlong: an archive and a Debian package have every page of documentation, and each file of the boards and
// alerts that a page tells its reader to load, where its links lead.
//
// Seen to fail without the boards and alerts.
func TestPagesComeAlong(t *testing.T) {
	pages, err := release.ReadPages(checkout.Path())
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, e := range pages {
		texts[strings.TrimPrefix(e.Name, release.DocFolder)] = string(e.Text)
	}
	for page, least := range map[string]int{"docs/how-to/prometheus.md": 3, "docs/runbooks/alerts.md": 1} {
		links := regexp.MustCompile(`\]\(\.\./\.\./(deploy/[^)#]+)\)`).FindAllStringSubmatch(texts[page], -1)
		if len(links) < least {
			t.Errorf("%s has %d links to files of deploy", page, len(links))
		}
		for _, link := range links {
			if _, ok := texts[link[1]]; !ok && !slices.ContainsFunc(pages, func(e release.Entry) bool { return strings.HasPrefix(e.Name, release.DocFolder+link[1]+"/") }) {
				t.Errorf("%s links to %s, which is not there", page, link[1])
			}
		}
	}
	for _, name := range []string{"queue", "fleet", "services", "engines"} {
		if texts["deploy/grafana/"+name+".json"] == "" {
			t.Errorf("there is no board %s", name)
		}
	}
}

// TestChecksums: SHA256SUMS names every other file of the release, with its sum.
func TestChecksums(t *testing.T) {
	out := buildHere(t)
	files, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, f := range files {
		if f.Name() != "SHA256SUMS" {
			fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(read(t, filepath.Join(out, f.Name()))), f.Name())
		}
	}
	if got := string(read(t, filepath.Join(out, "SHA256SUMS"))); got != want.String() {
		t.Errorf("%s\nand not\n%s", got, want.String())
	}
}

// cacheFolder is where things are kept that take long to build, outside of the checkout.
func cacheFolder(t *testing.T) string {
	t.Helper()
	if cache := os.Getenv("COX_CACHE"); cache != "" {
		return cache
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(home, ".cache", "coxswain")
}

func mustRun(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	said, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
	return string(said)
}
