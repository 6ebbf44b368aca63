package checkout

import (
	"os"
	"strings"
	"testing"
)

// TestPath: it is this repository, wherever the test goes.
//
// Seen to fail with: the parent of the working directory in place of the folder of go.mod.
func TestPath(t *testing.T) {
	t.Chdir(t.TempDir())
	b, err := os.ReadFile(Path("go.mod"))
	if err != nil || !strings.HasPrefix(string(b), "module github.com/coxswain-sched/coxswain\n") {
		t.Errorf("%s: %v", b, err)
	}
	if _, err := os.Stat(Path("internal", "checkout", "checkout.go")); err != nil {
		t.Error(err)
	}
}
