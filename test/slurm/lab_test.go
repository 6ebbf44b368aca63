package slurmtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// maxArray is the lab's MaxArraySize.
const maxArray = 100001

// lab is a running controller and a folder from which jobs are submitted.
type lab struct {
	env  []string
	dir  string
	held []string // jobs that are still to be cancelled
}

// cancelHeld cancels what was held once there are so many: a scancel for each would cost as much as all
// of sbatch.
func (l *lab) cancelHeld(t *testing.T, id string) {
	t.Helper()
	if l.held = append(l.held, id); len(l.held) >= 50 {
		l.run(t, "scancel", l.held...)
		l.held = nil
	}
}

// openLab returns the lab that COX_SLURM_LAB names. Jobs that a test leaves behind
// are cancelled when it ends.
func openLab(t *testing.T) *lab {
	t.Helper()
	at := os.Getenv("COX_SLURM_LAB")
	if at == "" {
		t.Skip("COX_SLURM_LAB names no lab: make slurm starts one")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Nothing of the caller's environment: SBATCH_* variables would be options.
	l := &lab{dir: dir, env: []string{
		"SLURM_CONF=" + filepath.Join(at, "slurm.conf"),
		"PATH=" + os.Getenv("PATH"), "TZ=UTC", "LC_ALL=C.UTF-8", "HOME=" + dir,
	}}
	if out := l.run(t, "scontrol", "ping"); !strings.Contains(out.stdout, "is UP") {
		t.Fatalf("no controller answers in the lab %s: %s%s", at, out.stdout, out.stderr)
	}
	t.Cleanup(func() { l.run(t, "scancel", "--state=PENDING", "--quiet") })
	return l
}

// result is how a command ended.
type result struct {
	stdout, stderr string
	code           int
}

// run runs one of Slurm's commands in the lab's folder; an exit code is no error.
func (l *lab) run(t *testing.T, name string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = l.env, l.dir, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("%s %q: %v, %v\n%s", name, args, err, ctx.Err(), stderr.String())
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// write puts a script into the lab's folder and returns its path.
func (l *lab) write(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(l.dir, "job.sbatch")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
