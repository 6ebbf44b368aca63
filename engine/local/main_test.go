package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/engine/local"
)

// TestMain lets the test binary stand for cox: as a supervisor it is started
// with the command's hidden arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(supervisor(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// supervisor is the hidden command, unless the node was broken: then it dies.
func supervisor(args []string) int {
	dir, node := args[0], args[1]
	if _, err := os.Stat(filepath.Join(dir, "..", "..", "break."+node)); err == nil {
		fmt.Fprintln(os.Stderr, "broken by a test")
		return 1
	}
	return local.SuperviseMain(args)
}
