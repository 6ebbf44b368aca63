package submission

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
)

// TestRunOptionsOfAnyForm: options of cox run outrank a batch script and a native text, and say
// the shape of a command.
func TestRunOptionsOfAnyForm(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"job.sh": "#!/bin/sh\n#SBATCH -n 2 -t 5\n", "job.yaml": "command: hostname\ntasks: 2\ntime: 5m\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(words ...string) (tasks int, limit time.Duration, err error) {
		f, a := runFlags{}, cli.New()
		cmd := runCommandOf(a, &f)
		if err := cmd.ParseFlags(words); err != nil {
			return 0, 0, err
		}
		r, _, err := f.readRequests(a, cmd, cmd.Flags().Args())
		if err != nil {
			return 0, 0, err
		}
		return r[0].Spec.Groups[0].Tasks.Want, r[0].Spec.TimeLimit, nil
	}
	for _, what := range [][]string{{filepath.Join(dir, "job.sh")}, {filepath.Join(dir, "job.yaml")}, {"--", "hostname"}} {
		if n, limit, err := read(what...); what[0] != "--" && (n != 2 || limit != 5*time.Minute || err != nil) {
			t.Errorf("%s: %d tasks, %s: %v", what, n, limit, err)
		}
		for _, options := range [][]string{{"-n", "4", "-t", "10"}, {"-n4", "-t10"}, {"--ntasks=4", "--time", "10m"}, {"-s", "-n4", "-s", "--time=0:10:00"}} {
			if n, limit, err := read(append(options, what...)...); n != 4 || limit != 10*time.Minute || err != nil {
				t.Errorf("%s %s: %d tasks, %s: %v", options, what, n, limit, err)
			}
		}
	}
}
