package provenance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// quiet are settings under which git executes nothing that a repository names.
var quiet = []string{
	"core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "core.untrackedCache=keep", "diff.external=",
	"core.sshCommand=false", "core.askPass=", "credential.helper=", "gc.auto=0", "submodule.recurse=false", "status.submoduleSummary=false",
}

// isDirty asks git whether anything differs from the commit.
func (r *repository) isDirty(ctx context.Context, conf settings, environ []string) (bool, error) {
	if conf.includes {
		return false, errors.New("its configuration takes over other files, so git is not asked")
	}
	program, err := exec.LookPath("git")
	if err != nil {
		return false, errors.New("git is not installed")
	}
	var args []string
	for _, s := range quiet {
		args = append(args, "-c", s)
	}
	for _, f := range conf.filters {
		if f == "" || strings.ContainsAny(f, "=\n\x00") {
			return false, errors.New("its configuration has a filter with a strange name, so git is not asked")
		}
		for _, key := range []string{"clean", "smudge", "process"} {
			args = append(args, "-c", "filter."+f+"."+key+"=")
		}
		args = append(args, "-c", "filter."+f+".required=false")
	}
	args = append(args, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=all", "--no-renames")

	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = r.root, gitEnvironment(environ)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 20 * time.Millisecond
	var said bytes.Buffer
	cmd.Stderr = &limitedWriter{to: &said, left: 4096}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	if n, _ := io.ReadFull(out, make([]byte, 1)); n > 0 { // one entry is enough
		_ = cmd.Cancel()
		_ = cmd.Wait()
		return true, nil
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return false, errors.New("git did not answer in time")
	case err != nil:
		return false, fmt.Errorf("git: %s", failureReason(said.String(), err))
	}
	return false, nil
}

// failureReason is git's own word for why it failed.
func failureReason(said string, err error) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(said, "fatal: "), "\n")
	if line == "" {
		return err.Error()
	}
	return line
}

// gitEnvironment is git's environment: the caller's without what redirects git.
func gitEnvironment(environ []string) []string {
	kept := slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "HOME", "PATH", "XDG_CONFIG_HOME", "USER", "LOGNAME", "TMPDIR", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES":
			return false
		}
		return true
	})
	return append(kept, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "GIT_ASKPASS=", "GIT_TRACE=0")
}

// limitedWriter keeps the first bytes of what is written and takes the rest.
type limitedWriter struct {
	to   *bytes.Buffer
	left int
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	w.to.Write(b[:n])
	w.left -= n
	return len(b), nil
}
