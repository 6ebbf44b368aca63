package srun

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/scontrol"
)

// TestMain lets the test binary stand for srun, scontrol and a held task, by the
// name it is called by.
func TestMain(m *testing.M) {
	stdio := step.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	switch filepath.Base(os.Args[0]) {
	case "srun":
		if d, err := time.ParseDuration(os.Getenv("COX_NOTE_DELAY")); err == nil {
			summaryDelay = d
		}
		os.Exit(Main(os.Args[1:], stdio))
	case "scontrol":
		os.Exit(scontrol.Main(os.Args[1:], stdio))
	}
	if len(os.Args) > 1 && os.Args[1] == "task-init" {
		os.Exit(barrier.Main(os.Args[2:]))
	}
	code := m.Run()
	if helperDir != "" {
		_ = os.RemoveAll(helperDir)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
