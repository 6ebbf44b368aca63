package supervise

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/holder"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// program is what the head node runs as step -1, with everything open and
// checked that can be before the barrier.
type program struct {
	user  *jobUser
	path  string
	args  []string // with the name first
	dir   string
	base  []string    // the submitted environment
	stdio [3]*os.File // input, output, error
	files []string    // absolute names of the output files
	log   string      // of standard output
	image string      // in whose container it runs; empty: on the node itself

	limits []barrier.Rlimit // of the submitter, which it gets

	notices io.WriteCloser // the file of standard error, for what is said of the job; nil: none

	rotated []*rotatedOutput // of a job that serves
}

// newProgram opens the files of the batch script, or of the srun that stands for
// a direct program, and looks for its interpreter: all of it as the job's user.
func (s *supervisor) newProgram() (*program, error) {
	l := s.launch
	spec := l.Job.Spec
	p := &program{user: s.user, dir: spec.WorkDir, base: l.Env}
	if spec.Program.Kind == job.Batch {
		p.image = spec.Image
	}
	switch spec.Program.Kind {
	case job.Batch:
		if err := s.overwriteFile(&s.kept.script, s.scriptName(), 0o700, l.Script); err != nil {
			return nil, err
		}
	case job.Direct:
		p.path = filepath.Join(binDir(l.Root), "srun")
		kill := "--kill-on-bad-exit=0"
		if spec.KillOnBadExit {
			kill = "--kill-on-bad-exit=1"
		}
		p.args = slices.Concat([]string{"srun", kill}, spec.Program.Step, []string{"--"}, spec.Program.Args)
		if spec.Program.Client != "" { // which runs the steps; the job lasts as long as it wants
			p.path = filepath.Join(binDir(l.Root), "cox")
			p.args = []string{"cox", holder.Command, spec.Program.Client}
		}
	case job.BareAllocation:
		p.path = filepath.Join(binDir(l.Root), "cox")
		p.args = []string{"cox", holder.Command, holder.BareWord}
		if spec.Program.Client != "" {
			p.args = append(p.args, spec.Program.Client)
		}
	default:
		return nil, fmt.Errorf("%q is no kind of program", spec.Program.Kind)
	}
	p.limits = s.programLimits(p)
	s.awaitFolders()
	return p, s.user.runAsUser(func() error {
		if err := p.openProgram(l, s.scriptName()); err != nil {
			return attempt.ProgramError{Err: err}
		}
		return nil
	})
}

// openProgram looks for the working directory and the interpreter, and opens the files.
func (p *program) openProgram(l *attempt.Launch, script string) error {
	if err := checkDir(p.dir); err != nil {
		return err
	}
	if spec := &l.Job.Spec.Program; spec.Kind == job.Batch {
		if err := p.resolveScript(l.Script, script, *spec); err != nil {
			return err
		}
	}
	return p.openStreams(l)
}

// checkDir reports why the caller cannot work in a directory.
func checkDir(dir string) error {
	fd, err := unix.Open(filepath.Join(dir)+"/.", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the working directory %s does not exist; create it, or choose another with --chdir", dir)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("the working directory %s is not a directory; choose another with --chdir", dir)
	case err != nil:
		return fmt.Errorf("the working directory %s cannot be entered: %w; choose another with --chdir", dir, err)
	}
	return unix.Close(fd)
}

// resolveScript finds the interpreter as the kernel would, so that one that is missing
// is named, and a directory mounted noexec does no harm.
func (p *program) resolveScript(text []byte, name string, spec job.Program) error {
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
	if p.image != "" { // it is looked for there
	} else if err := checkExecutable(interp); err != nil {
		return fmt.Errorf("%s: its first line asks for the interpreter %s: %w; correct the line or install it", what, interp, err)
	}
	p.path, p.args = interp, []string{interp}
	if arg = strings.Trim(arg, " \t"); arg != "" {
		p.args = append(p.args, arg)
	}
	p.args = append(append(p.args, name), spec.Args...)
	return nil
}

// checkExecutable reports why the caller's file system user cannot execute a file.
func checkExecutable(name string) error {
	const atEffective = 0x200 // AT_EACCESS: not the real user
	b, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	cwd := unix.AT_FDCWD
	_, _, errno := unix.Syscall6(unix.SYS_FACCESSAT2, uintptr(cwd), uintptr(unsafe.Pointer(b)), unix.X_OK, atEffective, 0, 0)
	switch errno {
	case 0:
		return nil
	case unix.ENOSYS: // before Linux 5.8
		return unix.Access(name, unix.X_OK)
	}
	return errno
}

// startProgram runs it.
func (p *program) startProgram(s *supervisor) (int, <-chan barrier.Exit, error) {
	env, err := s.batchEnv(p.base)
	if err != nil {
		p.closeStreams()
		return 0, nil, err
	}
	pid, exited, err := p.spawnProgram(s, env)
	p.keepNotices()
	p.closeFiles()
	if err != nil {
		err = barrier.ExplainLaunch(s.spawner, barrier.LaunchError(err, &barrier.Cmd{Args: p.args, Env: env}))
		return 0, nil, attempt.ProgramError{Err: fmt.Errorf("start of %s: %w", p.path, err)}
	}
	return pid, exited, nil
}

// spawnProgram runs it on the node, or in the job's container.
func (p *program) spawnProgram(s *supervisor, env []string) (int, <-chan barrier.Exit, error) {
	path, args := barrier.Limited(s.taskInit(), p.limits, p.path, p.args)
	if p.image == "" {
		return s.spawner.spawnProcess(startRequest{
			group: s.spawner.unified, path: path, args: args, env: env, dir: p.dir, user: s.launch.User, files: p.stdio[:], step: engine.BatchStep,
		})
	}
	in := s.containers.place(s.containers.own(), nil)
	pid, exited, err := in.Spawner.Spawn(&barrier.Cmd{Path: path, Args: args, Env: in.Env(env), Dir: in.Dir, Files: p.stdio[:], Step: step.BatchStep})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("image %s has no %s or no directory %s; change the first line of the script, or the image", p.image, p.path, in.Dir)
	}
	return pid, exited, err
}

// keepNotices keeps the file of the program's standard error open. Anything else than a file
// of a file system is left alone: who reads from a pipe waits for its end.
func (p *program) keepNotices() {
	if p.rotatesErrors() {
		return
	}
	info, err := p.stdio[2].Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if fd, err := unix.FcntlInt(p.stdio[2].Fd(), unix.F_DUPFD_CLOEXEC, 0); err == nil {
		p.notices = os.NewFile(uintptr(fd), p.stdio[2].Name())
	}
}

// sayNotice writes a line to the file of the program's standard error, as far as it can be
// written.
func (p *program) sayNotice(line string) {
	switch {
	case p == nil:
	case p.rotatesErrors():
		_, _ = p.rotated[len(p.rotated)-1].file.Write([]byte(line))
	case p.notices != nil:
		_, _ = io.WriteString(p.notices, line)
	}
}

// closeStreams closes what was opened for it, if it still is.
func (p *program) closeStreams() {
	if p == nil {
		return
	}
	p.closeFiles()
	p.closeRotated()
	if p.notices != nil {
		_ = p.notices.Close()
	}
}

// closeFiles closes what the program itself got.
func (p *program) closeFiles() {
	for _, f := range p.stdio {
		_ = f.Close() // closed before, or never opened: no matter
	}
}
