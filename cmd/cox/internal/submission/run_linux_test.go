package submission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// TestRunShapeOfFile: -n and -t outrank a batch script, and are refused beside a native text,
// which says its own shape.
func TestRunShapeOfFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"job.sh": "#!/bin/sh\n#SBATCH -n 2 -t 5\n", "job.yaml": "command: hostname\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(words ...string) (tasks int, limit time.Duration, err error) {
		f := runFlags{}
		cmd := runCommandOf(cli.New(), &f)
		if err := cmd.ParseFlags(words); err != nil {
			return 0, 0, err
		}
		r, err := f.readRequests(cmd, cmd.Flags().Args())
		if err != nil {
			return 0, 0, err
		}
		return r[0].Spec.Groups[0].Tasks.Want, r[0].Spec.TimeLimit, nil
	}
	script, document := filepath.Join(dir, "job.sh"), filepath.Join(dir, "job.yaml")
	if n, limit, err := read(script); n != 2 || limit != 5*time.Minute || err != nil {
		t.Errorf("%d tasks, %s: %v", n, limit, err)
	}
	if n, limit, err := read("-n", "4", "-t", "10", script); n != 4 || limit != 10*time.Minute || err != nil {
		t.Errorf("-n 4 -t 10: %d tasks, %s: %v", n, limit, err)
	}
	if _, _, err := read("-n", "4", document); err == nil || !strings.Contains(err.Error(), "--ntasks=4") {
		t.Errorf("-n 4 of a native text: %v", err)
	}
	if _, _, err := read("-s", "--mem=1G", "--", "hostname"); err == nil || !strings.Contains(err.Error(), "--mem=1G") {
		t.Errorf("-s of a command: %v", err)
	}
}
