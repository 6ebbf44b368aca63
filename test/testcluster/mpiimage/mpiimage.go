// Package mpiimage makes an image with an MPI program from the files of this machine: Debian's
// Open MPI and libpmix, with the libraries that they load. Nothing is fetched.
package mpiimage

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/image"
)

// Program is the MPI program in the image: its first rank prints "N ranks, sum S", S being the
// sum of all ranks.
const Program = "/usr/bin/sum-of-ranks"

const source = `#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
	int rank, size, sum;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) printf("%d ranks, sum %d\n", size, sum);
	MPI_Finalize();
	return 0;
}
`

// The plug-ins that a program needs which finds its ranks by PMIx and talks by TCP or the memory
// of its node. The others load the libraries of network cards.
var (
	pluginDirs = []string{"/usr/lib/*/openmpi/lib/openmpi3", "/usr/lib/*/pmix2/lib/pmix"}
	leftOut    = []string{"ucx", "ofi", "psm", "openib", "flux", "romio", "_mtl_", "monitoring"}
)

// Compile compiles the program into a folder and returns its path. The test is skipped where the
// machine has no Open MPI.
func Compile(t testing.TB, dir string) string {
	t.Helper()
	compiler, err := exec.LookPath("mpicc.openmpi")
	if err != nil {
		t.Skip("mpicc.openmpi is not installed")
	}
	text, program := filepath.Join(dir, "sum.c"), filepath.Join(dir, "sum")
	if err := os.WriteFile(text, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, text, "-o", program).CombinedOutput(); err != nil {
		t.Skipf("mpicc.openmpi does not work here: %s", out)
	}
	return program
}

// Write writes an archive of an image with the program, a shell, Open MPI and libpmix, which podman and
// containerd load.
func Write(t testing.TB, file, tag string) {
	t.Helper()
	program := Compile(t, t.TempDir())
	shell, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed")
	}
	i := &image.Image{
		Tag: tag, Arch: runtime.GOARCH, Command: []string{"sh"}, Env: []string{"PATH=" + image.Path},
		Entries: []image.Entry{
			{Name: "tmp/", Mode: 0o1777},
			{Name: "etc/passwd", Text: []byte("root:x:0:0:root:/:/bin/sh\n"), Mode: 0o644},
			{Name: strings.TrimPrefix(Program, "/"), Text: read(t, program)},
			{Name: "bin/busybox", Text: read(t, shell)},
		},
	}
	for _, name := range []string{"sh", "echo", "sleep", "cat", "ls", "id", "tail", "mkdir"} {
		i.Entries = append(i.Entries, image.Entry{Name: "bin/" + name, Link: "/bin/busybox"})
	}
	loaded := []string{program}
	for _, dir := range pluginDirs {
		names, err := filepath.Glob(dir + "/*.so")
		if err != nil || len(names) == 0 {
			t.Skipf("%s has no plug-ins (%v)", dir, err)
		}
		loaded = append(loaded, names...)
	}
	for _, dir := range []string{"/usr/lib/*/libpmix.so.2", "/usr/lib/*/pmix2/lib/libpmix.so.2", "/lib/*/libdl.so.2", "/lib/*/libpthread.so.0"} {
		names, _ := filepath.Glob(dir)
		loaded = append(loaded, names...)
	}
	loaded = slices.DeleteFunc(loaded, func(name string) bool {
		return slices.ContainsFunc(leftOut, func(part string) bool { return strings.Contains(filepath.Base(name), part) })
	})
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(loaded[1:], libraries(t, loaded)...)))) {
		i.Entries = append(i.Entries, image.Entry{Name: strings.TrimPrefix(name, "/"), Text: read(t, name)})
	}
	texts, _ := filepath.Glob("/usr/share/openmpi/*.txt")
	for _, name := range append(texts, "/etc/openmpi/openmpi-mca-params.conf") {
		i.Entries = append(i.Entries, image.Entry{Name: strings.TrimPrefix(name, "/"), Text: read(t, name), Mode: 0o644})
	}
	if err := i.Write(file); err != nil {
		t.Fatal(err)
	}
}

// libraries are those that programs and plug-ins load, by the names that the loader looks for.
func libraries(t testing.TB, names []string) (out []string) {
	t.Helper()
	text, err := exec.Command("ldd", names...).Output()
	if err != nil {
		t.Fatalf("ldd: %v", err)
	}
	for line := range bytes.Lines(text) {
		for _, word := range strings.Fields(string(line)) {
			if strings.HasPrefix(word, "/") && !strings.HasSuffix(word, ":") {
				out = append(out, word)
			}
		}
	}
	return out
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
