package clientstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaries is the folder with the programs under test.
var binaries string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

// buildAndRun builds the programs once for all tests, where there are clients.
func buildAndRun(m *testing.M) int {
	if os.Getenv("COX_CLIENTS") == "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "cox-clients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../../cmd/cox", "../../cmd/cox-slurm", "../../cmd/cox-pmix")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	binaries = dir
	return m.Run()
}
