package lab_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestLabs: both versions start beside each other, run a job on two nodes that sees its
// GPUs, survive the end of their controller, and leave nothing behind.
func TestLabs(t *testing.T) {
	for name, c := range map[string]lab.Config{"22.05": {}, "24.11": {Modern: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dir string
			t.Cleanup(func() { left(t, dir) }) // the last of all
			began := time.Now()
			l := lab.Start(t, c)
			dir = l.Dir
			t.Logf("started in %s", time.Since(began))
			if out := l.Run(t, "sinfo", "--version"); !strings.Contains(out, name) {
				t.Errorf("%q", out)
			}
			out := l.Run(t, "srun", "-N2", "--gres=gpu:h100:2", "sh", "-c", "echo $SLURMD_NODENAME=$CUDA_VISIBLE_DEVICES")
			if strings.Count(out, "=0,1") != 2 {
				t.Errorf("%q", out)
			}
			l.Kill(t, "slurmctld")
			l.Begin(t, "slurmctld")
			l.Run(t, "squeue", "-h")
			if r, err := l.SSH(t).Run(t.Context(), command.Call{Name: "sinfo", Args: []string{"--version"}}); err != nil || !strings.Contains(string(r.Stdout), name) {
				t.Errorf("over SSH: %q, %q, exit %d, %v", r.Stdout, r.Stderr, r.Code, err)
			}
			if token := l.Token(t, "root"); len(token) < 20 {
				t.Errorf("token %q", token)
			}
		})
	}
}

// left wants nothing of a lab that has ended.
func left(t *testing.T, dir string) {
	if dir == "" {
		return
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is there", dir)
	}
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte(dir)) {
			t.Errorf("%s runs: %q", name, b)
		}
	}
}
