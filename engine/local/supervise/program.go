package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/step"
)

// program is what the head node runs as step -1, with everything open and
// checked that can be before the barrier.
type program struct {
	path  string
	args  []string // with the name first
	dir   string
	base  []string    // the submitted environment
	stdio [3]*os.File // input, output, error
	files []string    // absolute names of the output files
	log   string      // of standard output
}

// newProgram opens the files of the batch script, or of the srun that stands for
// a direct program, and looks for its interpreter.
func newProgram(dir attempt.Dir, l *attempt.Launch) (*program, error) {
	spec := l.Job.Spec
	p := &program{dir: spec.WorkDir}
	var err error
	if p.base, err = readEnvironment(dir); err != nil {
		return nil, err
	}
	if err := checkDir(p.dir); err != nil {
		return nil, err
	}
	switch spec.Program.Kind {
	case job.Batch:
		err = p.script(dir.Script(), spec.Program)
	case job.Direct:
		p.path = filepath.Join(binDir(l.Root), "srun")
		p.args = append([]string{"srun", "--kill-on-bad-exit=1", "--"}, spec.Program.Args...)
	default:
		err = fmt.Errorf("%q is no kind of program", spec.Program.Kind)
	}
	if err != nil {
		return nil, err
	}
	return p, p.open(l)
}

func checkDir(dir string) error {
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the working directory %s does not exist; create it, or choose another with --chdir", dir)
	case err != nil:
		return fmt.Errorf("the working directory %s cannot be used: %w; choose another with --chdir", dir, err)
	case !st.IsDir():
		return fmt.Errorf("the working directory %s is not a directory; choose another with --chdir", dir)
	}
	if err := unix.Access(dir, unix.X_OK); err != nil {
		return fmt.Errorf("the working directory %s cannot be entered: %w; choose another with --chdir", dir, err)
	}
	return nil
}

// script finds the interpreter as the kernel would, so that one that is missing
// is named, and a directory mounted noexec does no harm.
func (p *program) script(name string, spec job.Program) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	what := spec.ScriptName
	if what == "" {
		what = "the script"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if !strings.HasPrefix(line, "#!") {
		return fmt.Errorf("%s does not begin with #! and the path of an interpreter; add the line #!/bin/sh at its top", what)
	}
	interp, arg, _ := strings.Cut(strings.Trim(line[2:], " \t"), " ")
	if before, after, ok := strings.Cut(interp, "\t"); ok {
		interp, arg = before, after+" "+arg
	}
	if strings.HasSuffix(line, "\r") {
		return fmt.Errorf("%s has DOS line ends: its interpreter would be %q; convert it with dos2unix", what, interp)
	}
	if err := unix.Access(interp, unix.X_OK); err != nil {
		return fmt.Errorf("%s: its first line asks for the interpreter %s: %w; correct the line or install it", what, interp, err)
	}
	p.path, p.args = interp, []string{interp}
	if arg = strings.Trim(arg, " \t"); arg != "" {
		p.args = append(p.args, arg)
	}
	p.args = append(append(p.args, name), spec.Args...)
	return nil
}

// start runs it.
func (p *program) start(s *supervisor) (int, <-chan step.Exit, error) {
	env, err := s.batchEnv(p.base)
	if err != nil {
		return 0, nil, err
	}
	pid, exited, err := s.spawner.spawn(s.spawner.unified, p.path, p.args, env, p.dir, p.stdio[:])
	for _, f := range p.stdio {
		_ = f.Close()
	}
	if err != nil {
		return 0, nil, fmt.Errorf("start of %s: %w", p.path, err)
	}
	return pid, exited, nil
}
