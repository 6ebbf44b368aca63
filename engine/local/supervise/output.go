package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine/local/attempt"
)

// open opens the standard files of the program. Attempts after the first append.
func (p *program) open(l *attempt.Launch) error {
	out := l.Job.Spec.Output
	name := func(pattern, standard string) string {
		if pattern == "" {
			pattern = standard
		}
		n := expand(pattern, l)
		if !filepath.IsAbs(n) {
			n = filepath.Join(p.dir, n)
		}
		return filepath.Clean(n)
	}
	standard := "slurm-%j.out"
	if l.Job.Array != nil {
		standard = "slurm-%A_%a.out"
	}
	stdin, err := os.Open(name(out.Stdin, os.DevNull))
	if err != nil {
		return fmt.Errorf("standard input: %w; correct --input", err)
	}
	p.log = name(out.Stdout, standard)
	again := out.Append || l.Ref.Attempt > 1
	stdout, err := openOutput(p.log, "--output", again)
	if err != nil {
		return err
	}
	stderr := stdout
	if n := name(out.Stderr, p.log); n != p.log {
		if stderr, err = openOutput(n, "--error", again); err != nil {
			return err
		}
		p.files = append(p.files, n)
	}
	p.stdio = [3]*os.File{stdin, stdout, stderr}
	p.files = append([]string{p.log}, p.files...)
	return nil
}

// openOutput creates or empties an output file, and says what to do where it
// cannot.
func openOutput(name, option string, again bool) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !again {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, 0o666)
	if err == nil {
		err = room(f)
	}
	dir := filepath.Dir(name)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("output file %s: its directory does not exist; create it (mkdir -p %s), or correct %s", name, dir, option)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return nil, fmt.Errorf("output file %s cannot be written: %w; choose another with %s", name, errors.Unwrap(err), option)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return nil, fmt.Errorf("output file %s: no space is left in %s; make room, or choose another with %s", name, dir, option)
	}
	return nil, fmt.Errorf("output file %s cannot be written: %w; choose another with %s", name, err, option)
}

// room reports a full disk before the program does.
func room(f *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil || st.Blocks == 0 {
		return nil // not a file system that counts
	}
	if st.Bavail == 0 {
		_ = f.Close()
		return unix.ENOSPC
	}
	return nil
}

// expand replaces sbatch's patterns in a file name: %A %a %j %J %x %u %N %n %s %t %b %%,
// numbers with a width after the %.
func expand(pattern string, l *attempt.Launch) string {
	j := l.Job
	array, task := uint64(j.ID), uint64(1<<32-2)
	if j.Array != nil {
		array, task = uint64(j.Array.Job), uint64(j.Array.Index)
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		end := i + 1
		for end < len(pattern)-1 && pattern[end] >= '0' && pattern[end] <= '9' {
			end++
		}
		width, _ := strconv.Atoi(pattern[i+1 : end])
		number := func(n uint64) { fmt.Fprintf(&b, "%0*d", min(width, 10), n) }
		switch pattern[end] {
		case 'A':
			number(array)
		case 'a':
			number(task)
		case 'b':
			number(task % 10)
		case 'j', 'J':
			number(uint64(j.ID))
		case 'n', 's', 't':
			number(0)
		case 'x':
			b.WriteString(j.Spec.Name)
		case 'u':
			b.WriteString(j.Spec.Owner.User)
		case 'N':
			b.WriteString(l.Nodes[0].Name)
		case '%':
			b.WriteByte('%')
		default:
			b.WriteString(pattern[i : end+1])
		}
		i = end
	}
	return b.String()
}
