package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/smalldisk"
	"github.com/coxswain-sched/coxswain/model/job"
)

// A launch that cannot work fails before anything runs, and the message names
// what is wrong and what to do.
func TestLaunchFails(t *testing.T) {
	e := newEngine(t, local.Config{})
	for i, c := range []struct {
		name  string
		spoil func(t *testing.T, l *engine.Launch)
		want  []string
	}{
		{"interpreter", func(_ *testing.T, l *engine.Launch) {
			l.Script = []byte("#!/no/such/shell -x\n")
		}, []string{"test.sh", "/no/such/shell", "install"}},
		{"no shebang", func(_ *testing.T, l *engine.Launch) {
			l.Script = []byte("echo hello\n")
		}, []string{"test.sh", "#!/bin/sh"}},
		{"DOS line ends", func(_ *testing.T, l *engine.Launch) {
			l.Script = []byte("#!/bin/sh\r\necho hello\r\n")
		}, []string{"test.sh", "dos2unix"}},
		{"working directory", func(_ *testing.T, l *engine.Launch) {
			l.Job.Spec.WorkDir = "/no/such/dir"
		}, []string{"/no/such/dir", "--chdir"}},
		{"working directory is a file", func(_ *testing.T, l *engine.Launch) {
			l.Job.Spec.WorkDir = "/etc/passwd"
		}, []string{"/etc/passwd", "--chdir"}},
		{"output directory", func(_ *testing.T, l *engine.Launch) {
			l.Job.Spec.Output.Stdout = "logs/%j.out"
		}, []string{"logs/7.out", "mkdir -p"}},
		{"error directory", func(_ *testing.T, l *engine.Launch) {
			l.Job.Spec.Output.Stderr = "logs/%j.err"
		}, []string{"logs/7.err", "--error"}},
		{"output is a directory", func(t *testing.T, l *engine.Launch) {
			l.Job.Spec.Output.Stdout = t.TempDir()
		}, []string{"is a directory", "--output"}},
		{"input", func(_ *testing.T, l *engine.Launch) {
			l.Job.Spec.Output.Stdin = "no-such-input"
		}, []string{"no-such-input", "--input"}},
		{"output is a pipe that nobody reads", func(t *testing.T, l *engine.Launch) {
			l.Job.Spec.Output.Stdout = namedPipe(t)
		}, []string{"pipe", "that no process reads", "--output"}},
		{"input is a pipe", func(t *testing.T, l *engine.Launch) {
			l.Job.Spec.Output.Stdin = namedPipe(t)
		}, []string{"pipe", "program < PIPE", "--input"}},
		{"full disk", func(t *testing.T, l *engine.Launch) {
			disk := smallDisk(t, "64k")
			fill(t, disk)
			l.Job.Spec.Output.Stdout = filepath.Join(disk, "out")
		}, []string{"out", "no space", "make room"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := plan(t, e, 2, "exit 0")
			l.Ref.Allocation = uint64(i + 1)
			c.spoil(t, l)
			r := run(t, e, l)
			if r.Cause != engine.Refused || r.Exit.OK() || len(r.Tasks) != 0 {
				t.Errorf("%s, %s, tasks %v", r.Cause, r.Exit, r.Tasks)
			}
			for _, w := range c.want {
				if !strings.Contains(r.Message, w) {
					t.Errorf("message %q does not say %q", r.Message, w)
				}
			}
			t.Log(r.Message)
		})
	}
}

func namedPipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(passable(t), "pipe")
	if err := unix.Mkfifo(name, 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestOpenModeOfALaterAttempt: a batch script in sbatch's form begins its output anew at each start,
// unless it appends; later attempts of other jobs append.
//
// Seen to fail with: the form not asked for.
func TestOpenModeOfALaterAttempt(t *testing.T) {
	e := newEngine(t, local.Config{})
	for i, c := range []struct {
		form   string
		append bool
		want   string
	}{
		{"sbatch", false, "run 1\n"},
		{"sbatch", true, "run 0\nrun 1\n"},
		{"native", false, "run 0\nrun 1\n"},
	} {
		l := plan(t, e, 1, "echo run ${SLURM_RESTART_COUNT:-0}")
		l.Job.Spec.Source.Form, l.Job.Spec.Output = c.form, job.Output{Stdout: "out", Append: c.append}
		l.Ref.Allocation = uint64(2*i + 1)
		run(t, e, l)
		l.Ref = engine.Ref{Allocation: uint64(2*i + 2), Attempt: 2}
		l.Job.Attempt = 2
		run(t, e, l)
		if got := read(t, filepath.Join(l.Job.Spec.WorkDir, "out")); got != c.want {
			t.Errorf("%s, append %v: %q, want %q", c.form, c.append, got, c.want)
		}
	}
}

// smallDisk mounts a file system of a size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	smalldisk.At(t, dir, "size="+size)
	return dir
}

// fill writes the file "filler" until a disk is full.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
}

func TestOutputFiles(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1, "cat; echo out; echo err >&2")
	dir := l.Job.Spec.WorkDir
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("input\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Job.Spec.Output = job.Output{Stdin: "in", Stdout: "%x-%4j.out", Stderr: "%x.err"}
	l.Job.Array = &job.ArrayTask{Job: 5, Index: 3}
	r := run(t, e, l)
	succeeded(t, r)
	out, errs := filepath.Join(dir, "test-0007.out"), filepath.Join(dir, "test.err")
	if read(t, out) != "input\nout\n" || read(t, errs) != "err\n" {
		t.Errorf("output %q, %q", read(t, out), read(t, errs))
	}
	if len(r.Files) != 2 || r.Files[0] != out || r.Files[1] != errs || r.Tasks[0].Log != out {
		t.Errorf("files %v, log %q", r.Files, r.Tasks[0].Log)
	}
}

func TestOutputIsJoinedEmptiedAndAppended(t *testing.T) {
	e := newEngine(t, local.Config{})
	dir := t.TempDir()
	name := filepath.Join(dir, "slurm-7.out")
	if err := os.WriteFile(name, []byte("of yesterday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := plan(t, e, 1, "echo out; echo err >&2")
	l.Job.Spec.WorkDir = dir
	run(t, e, l)
	if got := read(t, name); got != "out\nerr\n" {
		t.Errorf("the first attempt wrote %q", got)
	}
	again := *l
	again.Ref.Attempt = 2
	run(t, e, &again)
	if got := read(t, name); got != "out\nerr\nout\nerr\n" {
		t.Errorf("the second attempt made it %q", got)
	}
}

// The last line is in the file when the end is reported, however the script ends.
func TestLastLineIsThere(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1, "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; printf last; kill -9 $$")
	r := run(t, e, l)
	if got := read(t, r.Files[0]); !strings.HasSuffix(got, "line 1999\nlast") {
		t.Errorf("it ends in %q", got[max(0, len(got)-30):])
	}
}

func TestScriptArguments(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1)
	l.Script = []byte("#! /bin/sh -u\necho \"$@\"; echo $-\n")
	l.Job.Spec.Program.Args = []string{"a b", "c"}
	r := run(t, e, l)
	succeeded(t, r)
	if got := read(t, r.Files[0]); !strings.HasPrefix(got, "a b c\n") || !strings.Contains(got, "u") {
		t.Errorf("output %q", got)
	}
}

func TestEnvironment(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 2, `echo "$MINE|$SLURM_JOB_ID|$SLURM_JOB_NUM_NODES|$SLURM_JOB_NODELIST|$COX_ALLOC"; command -v srun`)
	l.Env = append(l.Env, "MINE=a b\nc")
	r := run(t, e, l)
	succeeded(t, r)
	got := read(t, r.Files[0])
	if !strings.HasPrefix(got, "a b\nc|7|2|") || !strings.HasSuffix(got, "/bin/srun\n") || !strings.Contains(got, "alloc.json") {
		t.Errorf("output %q", got)
	}
}
