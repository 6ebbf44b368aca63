package command

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// LockDir is a directory of locks where a Runner's commands are: on a login node that has the
// file system of the nodes, which this machine need not have. A shell there creates locks as
// the nodes' shells do (noclobber: O_EXCL). It is a room.Room.
type LockDir struct {
	run Runner
	dir string
}

var _ lockdir.Directory = (*LockDir)(nil)

// OpenRoom makes the directory if it is not there. The Runner stays its owner's.
func OpenRoom(ctx context.Context, r Runner, dir string) (*LockDir, error) {
	if !path.IsAbs(dir) {
		return nil, fault.New(fault.Invalid, "the directory of locks needs an absolute name, not %s", dir)
	}
	m := &LockDir{r, path.Clean(dir)}
	_, err := m.runShell(ctx, `mkdir -p -- "$1" && { [ "$(stat -c %a -- "$1")" = 1733 ] || chmod 1733 -- "$1"; }`, m.dir)
	return m, err
}

// runShell runs a script there.
func (m *LockDir) runShell(ctx context.Context, script string, args ...string) (string, error) {
	r, err := m.run.Run(ctx, Call{Name: "sh", Args: append([]string{"-c", script, "sh"}, args...)})
	if err != nil {
		return "", fault.New(fault.Unavailable, "the directory of locks: %w", err)
	}
	if r.Code != 0 {
		return "", fault.New(fault.Unavailable, "the directory of locks %s: exit %d: %s", m.dir, r.Code, oneLine(string(r.Stderr)))
	}
	return string(r.Stdout), nil
}

// Dir is Room's.
func (m *LockDir) Dir() string { return m.dir }

// Take is Room's. A file whose creation was cut off is there all the same, whole. A file
// system without links has it created in place, once there was room for it.
func (m *LockDir) Take(ctx context.Context, name, text string) (mine bool, held string, err error) {
	out, err := m.runShell(ctx, `t=$(mktemp -- "$1.newXXXXXXXX") || exit
trap 'rm -f -- "$t"' EXIT
echo "$2" >"$t" && chmod 644 -- "$t" || exit
if ln -T -- "$t" "$1" 2>/dev/null || { [ ! -e "$1" ] && [ ! -L "$1" ] && (set -C; echo "$2" >"$1") 2>/dev/null; }; then echo mine
elif [ -e "$1" ] || [ -L "$1" ]; then echo held; dd if="$1" iflag=nofollow,nonblock bs=4096 count=1 2>/dev/null || :
else echo "it cannot be written" >&2; exit 1; fi`, m.filePath(name), text)
	if err != nil {
		return false, "", err
	}
	who, held, _ := strings.Cut(out, "\n")
	if who == "mine" {
		return true, text, nil
	}
	return false, strings.TrimSpace(held), nil
}

func (m *LockDir) filePath(name string) string { return path.Join(m.dir, path.Base(name)) }

// List is Room's.
func (m *LockDir) List(ctx context.Context) ([]string, error) {
	out, err := m.runShell(ctx, `ls -A -- "$1"`, m.dir)
	return strings.Fields(out), err
}

// Look is Room's. Hints are short.
func (m *LockDir) Look(ctx context.Context, names []string) ([]lockdir.Mark, error) {
	var all []lockdir.Mark
	for len(names) > 0 {
		part := names[:min(len(names), 500)] // a command line has a length
		names = names[len(part):]
		args := []string{m.dir}
		for _, n := range part {
			args = append(args, path.Base(n))
		}
		out, err := m.runShell(ctx, `cd -- "$1" || exit; shift; for f; do [ -e "$f" ] || continue; stat -c '%n %u %.6Y' -- "$f" && dd if="$f" iflag=nofollow,nonblock bs=4000 count=1 2>/dev/null | tr '\n' ' ' && echo || exit; done`, args...)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(out, "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			f := strings.Split(lines[i], " ")
			if len(f) < 3 {
				return nil, fault.New(fault.Unavailable, "the directory of locks: stat answered %q", lines[i])
			}
			n := len(f)
			seconds, err := strconv.ParseFloat(f[n-1], 64)
			if err != nil {
				return nil, fault.New(fault.Unavailable, "the directory of locks: stat answered %q", lines[i])
			}
			all = append(all, lockdir.Mark{Name: strings.Join(f[:n-2], " "), Owner: f[n-2], Time: time.UnixMicro(int64(seconds * 1e6)), Text: strings.TrimSpace(lines[i+1])})
		}
	}
	return all, nil
}

// Remove is Room's.
func (m *LockDir) Remove(ctx context.Context, prefix string) error {
	if path.Base(prefix) != prefix || prefix == "" {
		return fault.New(fault.Invalid, "%q is no beginning of names", prefix)
	}
	_, err := m.runShell(ctx, `cd -- "$1" && rm -f -- "$2"*`, m.dir, prefix)
	return err
}

// Drop is Room's.
func (m *LockDir) Drop(ctx context.Context, names []string) error {
	var errs []error
	for part := range slices.Chunk(names, 500) { // a command line has a length
		args := []string{m.dir}
		for _, n := range part {
			args = append(args, path.Base(n))
		}
		_, err := m.runShell(ctx, `cd -- "$1" && shift && rm -f -- "$@"`, args...)
		if errs = append(errs, err); fault.KindOf(err) == fault.Unavailable {
			break
		}
	}
	return errors.Join(errs...)
}
