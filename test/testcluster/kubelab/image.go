package lab

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/checkout"
	"github.com/coxswain-sched/coxswain/internal/image"
)

// The images that every node has. None is ever pulled.
const (
	Base = "lab/base:1" // a static busybox with its names (sh, sleep, nslookup …) on PATH
	Cox  = "lab/cox:1"  // this project's cox-pod, cox-slurm and cox-pmix in /usr/local/bin, and nothing else

	pauseImage = "lab/pause:1" // what holds a pod's network
)

// Entry is a file of an image: a program, a text, or a link.
type Entry = image.Entry

// WriteImage writes an image for Import, which runs command unless it is told otherwise. It
// has the lab's PATH.
func WriteImage(file, tag string, command []string, entries []Entry) error {
	i := image.Image{Tag: "docker.io/" + tag, Arch: runtime.GOARCH, Command: command, Env: []string{"PATH=" + image.Path}, Entries: entries}
	return i.Write(file)
}

// writeImages writes those that every node has.
func (l *Lab) writeImages(ctx context.Context) error {
	base, err := busyboxEntries(ctx)
	if err != nil {
		return err
	}
	cox, err := ours()
	if err != nil {
		return err
	}
	pause := []string{"sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 1000 & wait $!; done"}
	return errors.Join(
		WriteImage(l.labFile("pause.tar"), pauseImage, pause, base),
		WriteImage(l.labFile("base.tar"), Base, []string{"sh"}, base),
		cox.Write(l.labFile("cox.tar")),
	)
}

// busyboxEntries is the file system of Base.
func busyboxEntries(ctx context.Context) ([]Entry, error) {
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

// ours is the image of this project's programs that run in pods, built once in a test from
// the sources as they are.
var ours = sync.OnceValues(func() (*image.Image, error) {
	dir, err := os.MkdirTemp("", "cox-programs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir, "./cmd/cox-pod", "./cmd/cox-slurm", "./cmd/cox-pmix")
	c.Dir, c.Env = checkout.Path(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%q: %w: %s", c.Args, err, out)
	}
	return image.Agent("docker.io/"+Cox, runtime.GOARCH, dir)
})

// importImages has a node know the images of archives.
func (l *Lab) importImages(ctx context.Context, n *node, files ...string) error {
	for _, file := range files {
		if err := l.runOnNode(ctx, n, "ctr", "--namespace=k8s.io", "images", "import", file); err != nil {
			return err
		}
	}
	return nil
}

// Import has every node know the images of a docker-archive.
func (l *Lab) Import(t testing.TB, file string) {
	t.Helper()
	for _, n := range l.nodes {
		if err := l.importImages(t.Context(), n, file); err != nil {
			t.Fatal(err)
		}
	}
}
