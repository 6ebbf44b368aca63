package lab

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// The images that every node has. None is ever pulled.
const (
	Base = "lab/base:1" // a static busybox with its names (sh, sleep, nslookup …) on PATH
	Cox  = "lab/cox:1"  // this project's cox-pod and cox-slurm in /usr/local/bin, and nothing else

	pauseImage = "lab/pause:1" // what holds a pod's network
)

// Entry is a file of an image: a program, a text, or a link.
type Entry struct {
	Name string // without a slash before it; one behind it makes a directory
	Text []byte
	Link string // what a symbolic link leads to
	Mode int64  // 0: 0o755
}

// WriteImage writes an image for Import, a docker-archive of one layer, which runs command
// unless it is told otherwise. It has the lab's PATH.
func WriteImage(file, tag string, command []string, entries []Entry) error {
	layer, err := archive(entries)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Cmd": command, "Env": []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{tag}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	whole, err := archive([]Entry{{Name: "manifest.json", Text: manifest}, {Name: "config.json", Text: config}, {Name: "layer.tar", Text: layer}})
	if err != nil {
		return err
	}
	return os.WriteFile(file, whole, 0o600)
}

// archive is a tar file of some entries, all root's.
func archive(entries []Entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.Name, Mode: e.Mode, Size: int64(len(e.Text)), Typeflag: tar.TypeReg}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		switch {
		case e.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
		case strings.HasSuffix(e.Name, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.Text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// images writes those that every node has.
func (l *Lab) images(ctx context.Context) error {
	base, err := busybox(ctx)
	if err != nil {
		return err
	}
	cox, err := ours()
	if err != nil {
		return err
	}
	pause := []string{"sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 1000 & wait $!; done"}
	return errors.Join(
		WriteImage(l.file("pause.tar"), pauseImage, pause, base),
		WriteImage(l.file("base.tar"), Base, []string{"sh"}, base),
		WriteImage(l.file("cox.tar"), Cox, []string{"cox-pod"}, cox),
	)
}

// busybox is the file system of Base.
func busybox(ctx context.Context) ([]Entry, error) {
	program, err := exec.LookPath("busybox")
	if err != nil {
		return nil, err
	}
	f, err := elf.Open(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	defer f.Close()
	if f.Section(".interp") != nil {
		return nil, fmt.Errorf("%s is not static: install busybox-static", program)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	names, err := exec.CommandContext(ctx, program, "--list-full").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --list-full: %w", program, err)
	}
	all := []Entry{
		{Name: "tmp/", Mode: 0o1777},
		{Name: "root/", Mode: 0o700},
		{Name: "etc/passwd", Text: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"), Mode: 0o644},
		{Name: "etc/group", Text: []byte("root:x:0:\nnogroup:x:65534:\n"), Mode: 0o644},
		{Name: "bin/busybox", Text: text},
	}
	for name := range strings.FieldsSeq(string(names)) {
		if name = path.Clean(name); name != "bin/busybox" {
			all = append(all, Entry{Name: name, Link: "/bin/busybox"})
		}
	}
	return all, nil
}

// ours are the programs of this project that run in pods, built once in a test from the
// sources as they are.
var ours = sync.OnceValues(func() ([]Entry, error) {
	_, here, _, _ := runtime.Caller(0)
	dir, err := os.MkdirTemp("", "cox-programs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir, "./cmd/cox-pod", "./cmd/cox-slurm")
	c.Dir, c.Env = filepath.Join(filepath.Dir(here), "..", "..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%q: %w: %s", c.Args, err, out)
	}
	var all []Entry
	for _, name := range []string{"cox-pod", "cox-slurm"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		all = append(all, Entry{Name: "usr/local/bin/" + name, Text: text})
	}
	return all, nil
})

// give has a node know the images of archives.
func (l *Lab) give(ctx context.Context, n *node, files ...string) error {
	for _, file := range files {
		if err := l.on(ctx, n, "ctr", "--namespace=k8s.io", "images", "import", file); err != nil {
			return err
		}
	}
	return nil
}

// Import has every node know the images of a docker-archive.
func (l *Lab) Import(t testing.TB, file string) {
	t.Helper()
	for _, n := range l.nodes {
		if err := l.give(t.Context(), n, file); err != nil {
			t.Fatal(err)
		}
	}
}
