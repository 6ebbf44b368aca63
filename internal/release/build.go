package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Target is a system that programs are built for, as Go names it.
type Target struct{ OS, Arch string }

// Targets are those of a whole release.
var Targets = []Target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// programs are what a target gets: the server runs on Linux alone, macOS gets the client.
func (t Target) programs() []string {
	if t.OS == "linux" {
		return []string{"cox", "cox-gpuprobe", "cox-pmix", "cox-pod", "cox-slurm", "cox-top"}
	}
	return []string{"cox", "cox-top"}
}

func (t Target) packages() []string {
	var all []string
	for _, p := range t.programs() {
		all = append(all, "./cmd/"+p)
	}
	return all
}

// Options say what of a release is built.
type Options struct {
	Source
	Targets []Target
	Out     string // the folder for the files; it must be empty or not there
	Go      string // the go command; "": go
}

// build is a release in the making.
type build struct {
	Options
	goVersion, goRoot string
	work              string            // a folder for programs, removed at the end
	texts             []Entry           // what goes along with programs, below share/
	files             map[string][]byte // the release, by name of file
}

// Build writes the files of a release, and SHA256SUMS, which names them all. It returns their
// names, sorted. Files appear when all of them are made.
func Build(ctx context.Context, o Options) ([]string, error) {
	if left, err := os.ReadDir(o.Out); err == nil && len(left) > 0 {
		return nil, fmt.Errorf("%s is not empty: name another folder, or remove it", o.Out)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	work, err := os.MkdirTemp("", "coxswain-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	b := &build{Options: o, work: work, files: map[string][]byte{}}
	if b.Go == "" {
		b.Go = "go"
	}
	if err := b.makeAll(ctx); err != nil {
		return nil, err
	}
	return b.writeFiles()
}

func (b *build) makeAll(ctx context.Context) error {
	about, err := b.runGo(ctx, hostTarget(), "env", "GOVERSION", "GOROOT")
	if err != nil {
		return err
	}
	b.goVersion, b.goRoot, _ = strings.Cut(strings.TrimSpace(string(about)), "\n")
	modules, needs, err := b.linkedModules(ctx)
	if err != nil {
		return err
	}
	if b.files[b.fileName("", ".cdx.json")], err = writeSBOM(b.Source, modules, needs); err != nil {
		return err
	}
	programs := map[Target][]Entry{}
	for _, t := range b.Targets {
		if programs[t], err = b.compilePrograms(ctx, t); err != nil {
			return fmt.Errorf("%s/%s: %w", t.OS, t.Arch, err)
		}
	}
	notices := writeNotices(modules)
	b.files["THIRD_PARTY_NOTICES.txt"] = notices
	if b.texts, err = b.readTexts(ctx, notices); err != nil {
		return err
	}
	if err := b.packChart(); err != nil {
		return err
	}
	for _, t := range b.Targets {
		if err := b.packTarget(t, programs[t]); err != nil {
			return fmt.Errorf("%s/%s: %w", t.OS, t.Arch, err)
		}
	}
	return nil
}

// packTarget puts a target's programs into every form.
func (b *build) packTarget(t Target, programs []Entry) error {
	name := b.fileName("_"+t.OS+"_"+t.Arch, "")
	archive, err := tarGzip(name+"/", append(placeFiles("bin/", programs), placeFiles("share/", b.texts)...), b.Time)
	b.files[name+".tar.gz"] = archive
	if err != nil || t.OS != "linux" {
		return err
	}
	if b.files["coxswain_"+b.Version.Debian()+"_"+t.Arch+".deb"], err = packDebian(b.Source, t.Arch, programs, b.texts); err != nil {
		return err
	}
	return b.packImages(t)
}

// fileName is the name of a file of the release: coxswain_1.2.3_linux_amd64.tar.gz.
func (b *build) fileName(what, ending string) string {
	return "coxswain_" + b.Version.Plain() + what + ending
}

// compilePrograms builds the programs of a target, and returns them by name.
func (b *build) compilePrograms(ctx context.Context, t Target) ([]Entry, error) {
	folder := b.programFolder(t)
	flags := fmt.Sprintf("-s -w -X %s/cmd/cox/internal/cli.release=%s", project, b.Version)
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", folder}
	if _, err := b.runGo(ctx, t, append(args, t.packages()...)...); err != nil {
		return nil, err
	}
	var all []Entry
	for _, name := range t.programs() {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		all = append(all, Entry{Name: name, Text: text, Mode: 0o755})
	}
	return all, nil
}

// programFolder is where the programs of a target are, with a separator behind it.
func (b *build) programFolder(t Target) string {
	return filepath.Join(b.work, t.OS+"-"+t.Arch) + string(filepath.Separator)
}

func hostTarget() Target { return Target{runtime.GOOS, runtime.GOARCH} }

// runGo runs the go command in the sources for a target, without anything that this machine
// sets otherwise than another one, and returns what it prints.
func (b *build) runGo(ctx context.Context, t Target, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.Go, args...)
	cmd.Dir = b.Dir
	cmd.Env = append(os.Environ(), "GOOS="+t.OS, "GOARCH="+t.Arch, "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOEXPERIMENT=", "GOFIPS140=off", "GODEBUG=", "GOWORK=off", "GOTOOLCHAIN=local")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, errs.Bytes())
	}
	return out, nil
}

// docFolder is where documentation is below share.
const docFolder = "doc/coxswain/"

// readPages reads what goes along with the programs as it is in the sources: licences, pages of documentation, which
// messages name, examples, and boards and alerts, to which pages link.
func readPages(sources string) (all []Entry, err error) {
	for _, pattern := range []string{
		"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "docs/*", "docs/*/*", "docs/*/*/*", "examples/*", "examples/rules/*",
		"deploy/grafana/*", "deploy/prometheus/*",
	} {
		names, err := filepath.Glob(filepath.Join(sources, filepath.FromSlash(pattern)))
		if err != nil || len(names) == 0 {
			return nil, fmt.Errorf("no files %s in %s: %w", pattern, sources, err)
		}
		for _, name := range names {
			if ending := filepath.Ext(name); ending == ".go" || ending == ".out" || strings.Contains(name, ".ckpt") || strings.HasPrefix(filepath.Base(name), ".") {
				continue
			}
			if st, err := os.Stat(name); err != nil || st.IsDir() {
				if err != nil {
					return nil, err
				}
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			below, err := filepath.Rel(sources, name)
			if err != nil {
				return nil, err
			}
			all = append(all, Entry{Name: docFolder + filepath.ToSlash(below), Text: text})
		}
	}
	return all, nil
}

// readTexts reads what goes along with the programs: readPages, the licences of others, and completions for shells.
func (b *build) readTexts(ctx context.Context, notices []byte) ([]Entry, error) {
	all, err := readPages(b.Dir)
	if err != nil {
		return nil, err
	}
	all = append(all, Entry{Name: docFolder + "THIRD_PARTY_NOTICES.txt", Text: notices})
	cox := filepath.Join(b.programFolder(hostTarget()), "cox")
	if !slices.Contains(b.Targets, hostTarget()) {
		if _, err := b.runGo(ctx, hostTarget(), "build", "-trimpath", "-buildvcs=false", "-o", cox, "./cmd/cox"); err != nil {
			return nil, err
		}
	}
	for shell, name := range map[string]string{
		"bash": "bash-completion/completions/cox", "zsh": "zsh/site-functions/_cox", "fish": "fish/vendor_completions.d/cox.fish",
	} {
		text, err := exec.CommandContext(ctx, cox, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("cox completion %s: %w", shell, err)
		}
		all = append(all, Entry{Name: name, Text: text})
	}
	return all, nil
}

// placeFiles are files in a folder, whose name ends with a slash.
func placeFiles(folder string, files []Entry) []Entry {
	var all []Entry
	for _, f := range files {
		f.Name = folder + f.Name
		all = append(all, f)
	}
	return all
}

// writeFiles writes the release and its checksums, as sha256sum checks them.
func (b *build) writeFiles() ([]string, error) {
	var names []string
	for name := range b.files {
		names = append(names, name)
	}
	slices.Sort(names)
	var sums bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(b.files[name]), name)
	}
	b.files["SHA256SUMS"] = sums.Bytes()
	if err := os.MkdirAll(b.Out, 0o755); err != nil {
		return nil, err
	}
	for _, name := range append(names, "SHA256SUMS") {
		if err := os.WriteFile(filepath.Join(b.Out, name), b.files[name], 0o644); err != nil {
			return nil, err
		}
	}
	return append(names, "SHA256SUMS"), nil
}
