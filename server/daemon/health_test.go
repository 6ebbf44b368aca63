package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/server/config"
)

// TestChecksBeforeJobs: a job does not begin on a node whose check fails just before. It runs on the other one, once and
// without a failure of its own, also if it may not be requeued; the node is fenced with what the check saw.
//
// Seen to fail without the question before the barrier.
func TestChecksBeforeJobs(t *testing.T) {
	dir := t.TempDir()
	bad, check := filepath.Join(dir, "bad"), filepath.Join(dir, "check.sh")
	script := "#!/bin/sh\n[ -e " + bad + " ] || echo $COX_NODE > " + bad + "\n[ $(cat " + bad + ") != $COX_NODE ] || { echo fan is broken; exit 1; }\n"
	if err := os.WriteFile(check, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	c, _ := up(t, filepath.Join(dir, "state"), func(cfg *config.Config) {
		cfg.Health.Every, cfg.Health.Before = 0, config.Duration(30*time.Second)
		cfg.Health.Checks = []config.HealthCheck{{Check: "script", Name: "fan", Run: []string{check}}}
	})
	ran := filepath.Join(dir, "ran")
	got := submit(t, c, dir, "#!/bin/sh\necho $SLURMD_NODENAME >> "+ran+"\n", "--no-requeue", "--output=/dev/null")
	j, err := c.Wait(t.Context(), got.ID.String())
	if err != nil || j.State != "COMPLETED" || j.Attempt != 2 || j.Failure != "" || j.Retried != 0 {
		t.Fatalf("%+v, %v", j, err)
	}
	first, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	node := strings.TrimSpace(string(first))
	if on, err := os.ReadFile(ran); err != nil || strings.Count(string(on), "\n") != 1 || strings.TrimSpace(string(on)) == node {
		t.Errorf("it ran on %q, not on %q; %v", on, node, err)
	}
	if n, err := c.Node(t.Context(), node); err != nil || len(n.Fences) != 1 || n.Fences[0].String() != "check fan failed: fan is broken (exit status 1)" {
		t.Errorf("%+v, %v", n, err)
	}
}
