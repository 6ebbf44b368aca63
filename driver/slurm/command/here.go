package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Here runs commands on this machine.
type Here struct {
	// Env is what commands have beside PATH and HOME: SLURM_CONF where it is not the
	// usual one. A job's own environment is in Call.Env.
	Env []string
	// Before are words that a command stands behind: a container's or a chroot's.
	Before []string
	// Become are words that another user's command stands behind, after these, with %u for
	// the user: "sudo", "-n", "-u", "%u", "--". None: this process changes its user itself,
	// which root may.
	Become []string
	// Commands is a folder in which commands are looked for first; empty: in PATH alone.
	Commands string
}

// afterKill is how long a killed command's output is waited for, which a child of it may
// hold open.
const afterKill = 10 * time.Second

// Run is Runner's.
func (h *Here) Run(ctx context.Context, c Call) (Result, error) {
	name, path := h.findCommand(c.Name)
	words, env, stdin := append(append(slices.Clone(h.Before), name), c.Args...), append(slices.Clone(c.Env), h.Env...), c.Stdin
	if c.User != "" && len(h.Become) > 0 {
		var line string
		line, stdin = remoteCommand(h.Commands, h.Env, &c)
		words, env = append(append(slices.Clone(h.Before), substituteUser(h.Become, c.User)...), "sh", "-c", line), nil
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append([]string{"PATH=" + path, "HOME=" + os.Getenv("HOME"), "LC_ALL=C"}, env...)
	cmd.Stdin = bytes.NewReader(stdin)
	if len(c.Job) > 0 && (c.User == "" || len(h.Become) == 0) {
		f, err := unnamedFile(packEnvironment(c.Job))
		if err != nil {
			return Result{}, err
		}
		defer f.Close()
		cmd.ExtraFiles = []*os.File{f}
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = afterKill
	if c.User != "" && len(h.Become) == 0 {
		if err := runAs(cmd, c.User); err != nil {
			return Result{}, err
		}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Result{}, fmt.Errorf("%s did not answer: %w", c.Name, context.Cause(ctx))
	case errors.As(err, &exit) && exit.Exited():
		return Result{out.Bytes(), said.Bytes(), exit.ExitCode()}, nil
	case err != nil:
		return Result{}, err
	}
	return Result{out.Bytes(), said.Bytes(), 0}, nil
}

// findCommand is a command as it is called, and PATH.
func (h *Here) findCommand(name string) (command, path string) {
	path = os.Getenv("PATH")
	if h.Commands == "" {
		return name, path
	}
	if file := filepath.Join(h.Commands, name); len(h.Before) > 0 || isExecutable(file) {
		name = file
	}
	return name, h.Commands + ":" + path
}

func isExecutable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// unnamedFile is a file without a name.
func unnamedFile(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("job", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "job")
	if _, err = f.Write(text); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close is Runner's.
func (h *Here) Close() error { return nil }

// runAs has a command run as another user, which root alone may.
func runAs(cmd *exec.Cmd, name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	if int(uid) == os.Getuid() {
		return nil
	}
	ids, err := u.GroupIds()
	if err != nil {
		return err
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(n))
		}
	}
	cmd.SysProcAttr.Credential = c
	return nil
}
