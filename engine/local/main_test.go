package local_test

import (
	"os"
	"testing"

	"github.com/coxswain-sched/coxswain/engine/local"
)

// TestMain lets the test binary stand for cox: as a supervisor it is started
// with the command's hidden arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(local.SuperviseMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}
