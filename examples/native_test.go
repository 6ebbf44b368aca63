package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// TestNativeExamples: every YAML file is taken without a warning but for mail, and
// can be said as an sbatch script.
func TestNativeExamples(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if file == "llm.yaml" { // a service, which is no job: TestRunService of cmd/cox runs it
			continue
		}
		s, script, warnings, err := native.Parse(spec.Source{Name: file, Data: data}, native.Options{Dir: "/tmp", Mail: true})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%v %v", err, warnings)
			continue
		}
		if s.Name != strings.TrimSuffix(file, ".yaml") && file != "array.yaml" && file != "after.yaml" {
			t.Errorf("%s is called %s", file, s.Name)
		}
		text, _ := sbatch.Render(s, script)
		if _, _, err := sbatch.Parse(spec.Source{Name: file, Data: text}, sbatch.Options{Dir: "/tmp", Mail: true}); err != nil {
			t.Errorf("%s as sbatch: %v\n%s", file, err, text)
		}
	}
}

// TestNativeExamplesRun runs them as the batch scripts that they can be said as.
func TestNativeExamplesRun(t *testing.T) {
	binary := cox(t)
	root := copyExamples(t)
	dir := filepath.Join(root, "examples")
	for _, c := range []struct {
		file, output, want string
		env                []string
	}{
		{"array.yaml", "pi-*_2.out", "pi is about 3.1", nil},
		{"steps.yaml", "steps-*.out", "hello from v", []string{"GREETING=hello"}}, // a script cannot say variables
		{"het.yaml", "het-*.out", "task 2 is on v3", nil},
		{"after.yaml", "slurm-*.out", "evaluated", nil},
		{"train.yaml", "slurm-*.out", "rank 0", nil},
	} {
		t.Run(c.file, func(t *testing.T) {
			data := mustRead(t, c.file)
			at := filepath.Join(dir, strings.TrimSuffix(c.file, ".yaml"))
			if err := os.Mkdir(at, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string][]byte{"train.py": mustRead(t, "train.py")} {
				if err := os.WriteFile(filepath.Join(at, name), text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s, body, _, err := native.Parse(spec.Source{Name: c.file, Data: data}, native.Options{Dir: at, Mail: true})
			if err != nil {
				t.Fatal(err)
			}
			script, _ := sbatch.Render(s, body)
			if err := os.WriteFile(filepath.Join(at, "job.sbatch"), script, 0o644); err != nil {
				t.Fatal(err)
			}
			out := run(t, 2*time.Minute, at, append(c.env, "TRAIN_EPOCHS=2"), binary, "run", "job.sbatch")
			if out.code != 0 {
				t.Fatalf("exit %d\n%s\n%s", out.code, out.output, script)
			}
			files, err := filepath.Glob(filepath.Join(at, c.output))
			if err != nil || len(files) == 0 {
				t.Fatalf("no %s: %v\n%s", c.output, err, out.output)
			}
			if text := mustRead(t, files[0]); !strings.Contains(string(text), c.want) {
				t.Errorf("%s holds %q, not %q", files[0], text, c.want)
			}
		})
	}
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRetryExampleRuns: `cox run` retries real processes, and adds to their output file, until one
// succeeds; with fewer retries the job ends as the last attempt did.
//
// Seen to fail with: control's mayRetry always false.
func TestRetryExampleRuns(t *testing.T) {
	binary := cox(t)
	for _, c := range []struct {
		count, output string
		code          int
	}{
		{"count: 3", "attempt 1\nattempt 2\nattempt 3\n", 0},
		{"count: 1", "attempt 1\nattempt 2\n", 75},
	} {
		dir := t.TempDir()
		text := strings.NewReplacer("count: 3", c.count, "backoff: 30s", "backoff: 0s").Replace(string(mustRead(t, "retry.yaml")))
		if err := os.WriteFile(filepath.Join(dir, "retry.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out := run(t, 2*time.Minute, dir, nil, binary, "run", "retry.yaml")
		if got := string(mustRead(t, filepath.Join(dir, "slurm-1.out"))); got != c.output || out.code != c.code {
			t.Errorf("%s: exit %d, want %d; output %q, want %q\n%s", c.count, out.code, c.code, got, c.output, out.output)
		}
	}
}
