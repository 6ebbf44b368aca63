// Package examples runs the example jobs of this folder, and public batch scripts
// from a folder outside the repository, through the cox command as a user would.
// It has tests only. They need a shell and Python 3.
package examples

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// buildDir is where the command under test is built, if a test needs it.
var buildDir string

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("", "cox-examples-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(buildDir)
	os.Exit(code)
}

// coxBinary is the command under test: what COX names, otherwise ../cmd/cox, built
// once.
var coxBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("COX"); path != "" {
		return filepath.Abs(path)
	}
	path := filepath.Join(buildDir, "cox")
	if out, err := exec.Command("go", "build", "-o", path, "../cmd/cox").CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// cox returns the command under test; the test needs Linux and Python 3.
func cox(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real jobs")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the local engine needs Linux")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	path, err := coxBinary()
	if err != nil {
		t.Fatalf("cox cannot be built: %v", err)
	}
	return path
}

// outcome is how a command ended and what it printed.
type outcome struct {
	code   int
	output string // standard output and standard error
}

// run starts a command in dir with additions to the environment and waits for it.
// At the limit the command is interrupted, as by Ctrl-C, and later killed.
func run(t *testing.T, limit time.Duration, dir string, env []string, argv ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "COX_SERVER=unix:///nonexistent/cox.sock"), env...) // a server of the machine has no part in it
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 20 * time.Second
	var buf bytes.Buffer
	cmd.Stdout, cmd.Stderr = &buf, &buf
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v\n%s", argv, err, buf.String())
	}
	if ctx.Err() != nil {
		t.Fatalf("%v was not done after %v\n%s", argv, limit, buf.String())
	}
	return outcome{cmd.ProcessState.ExitCode(), buf.String()}
}

// copyExamples puts the example jobs into a new folder <tmp>/examples, so that what
// they write stays out of the work tree, and returns <tmp>.
func copyExamples(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "examples"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.sbatch", "*.py", "*.sh"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "examples", name), text, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// TestExamples runs each example and looks for what must stand in its output files.
func TestExamples(t *testing.T) {
	tests := []struct {
		file  string
		files map[string][]string // output file: regular expressions that must match in it
	}{
		{"train.sbatch", map[string][]string{
			"train-*.out": {
				`(?m)^rank 0 of 8 on `, `(?m)^rank 7 of 8 on .* CUDA_VISIBLE_DEVICES=\d+,\d+, uses \d+$`,
				`(?m)^epoch  1  loss `, `(?m)^epoch 12  loss 0\.0`,
				`weights identical on 8 ranks`,
			},
			"train-*.ckpt": {`^\{"epoch": 12, `},
		}},
		{"array.sbatch", map[string][]string{
			"array-*_0.out": {`task 0 of 4 \(indices 0-3\)`, `seed 0: pi is about 3\.1`},
			"array-*_3.out": {`task 3 of 4 \(indices 0-3\)`, `seed 3: pi is about 3\.1`},
		}},
		{"het.sbatch", map[string][]string{
			"het-*.out": {
				`(?m)^2 components: data on \S+, workers on \S+$`, `data: both parts served`,
				`worker \d: GPU \d+, sum 1225`, `worker \d: GPU \d+, sum 3725`, `(?m)^task 2 is on `,
			},
		}},
		{"steps.sbatch", map[string][]string{
			"steps-*.out": {
				`(?m)^3: task 3 of 4, number 1 on node 1$`, `(?m)^node 1 is `,
				`left, task 1`, `right, task 1`, `its exit code was 7`,
			},
		}},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			bin, dir := cox(t), copyExamples(t)
			got := run(t, 2*time.Minute, dir, nil, bin, "run", "examples/"+test.file)
			if got.code != 0 {
				t.Errorf("exit code %d\n%s", got.code, got.output)
			}
			for pattern, want := range test.files {
				text := readMatching(t, dir, pattern)
				for _, expr := range want {
					if !regexp.MustCompile(expr).MatchString(text) {
						t.Errorf("%s: nothing matches %s in\n%s", pattern, expr, text)
					}
				}
			}
		})
	}
}

func TestGang(t *testing.T) {
	bin, dir := cox(t), copyExamples(t)
	got := run(t, time.Minute, dir, []string{"COX=" + bin}, "examples/gang.sh")
	if got.code != 0 {
		t.Errorf("exit code %d", got.code)
	}
	for _, want := range []string{"rank 0 of 4 on ", "rank 1 of 4 on ", "rank 2 of 4 on ", "rank 3 of 4 on "} {
		if !strings.Contains(got.output, want) {
			t.Errorf("nobody said %q", want)
		}
	}
	if t.Failed() {
		t.Log(got.output)
	}
}

// TestDeadRank checks that a rank that dies ends the whole job with a failure.
func TestDeadRank(t *testing.T) {
	bin, dir := cox(t), copyExamples(t)
	got := run(t, time.Minute, dir, []string{"TRAIN_FAIL=5@3"}, bin, "run", "examples/train.sbatch")
	if got.code == 0 {
		t.Error("exit code 0")
	}
	if text := readMatching(t, dir, "train-*.out"); !strings.Contains(text, "rank 5: dies in epoch 3") {
		t.Errorf("the last words of rank 5 are missing in\n%s", text)
	}
	if t.Failed() {
		t.Log(got.output)
	}
}

// readMatching returns the contents of the files in dir that match a pattern.
func readMatching(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Errorf("no file %s was written", pattern)
	}
	var text strings.Builder
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	return text.String()
}
