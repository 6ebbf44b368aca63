package killtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// bin is the directory with the binaries under test.
var bin string

// seed chooses everything that is left to chance.
var seed uint64 = 20240229

var long = os.Getenv("COX_LONG") != ""

func TestMain(m *testing.M) { os.Exit(prepareAndRun(m)) }

func prepareAndRun(m *testing.M) int {
	if s := os.Getenv("COX_KILL_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			fmt.Fprintln(os.Stderr, "COX_KILL_SEED:", err)
			return 2
		}
		seed = n
	}
	// Users' processes pass through it.
	dir, err := os.MkdirTemp("", "cox-kill-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		bin, err = dir, build(dir, "../../cmd/cox", "../../cmd/cox-slurm", "./evidence")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds commands into a directory.
func build(dir string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-o", dir + string(filepath.Separator)}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}
