package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// Files names the files that the program of an attempt has for its input, output and
// error, absolute; the last two may be the same. Those of a client's job and of a bare
// allocation lead nowhere.
func Files(l *attempt.Launch) (in, out, errs string) {
	spec := l.Job.Spec
	if spec.Program.Client != "" || spec.Program.Kind == job.BareAllocation { // the client has them
		return os.DevNull, os.DevNull, os.DevNull
	}
	name := func(pattern, standard string) string {
		if pattern == "" {
			pattern = standard
		}
		n := expandName(pattern, l)
		if !filepath.IsAbs(n) {
			n = filepath.Join(spec.WorkDir, n)
		}
		return filepath.Clean(n)
	}
	standard := "slurm-%j.out"
	if l.Job.Array != nil {
		standard = "slurm-%A_%a.out"
	}
	in, out = name(spec.Output.Stdin, os.DevNull), name(spec.Output.Stdout, standard)
	if errs = out; spec.Output.Stderr != "" {
		errs = name(spec.Output.Stderr, "")
	}
	return in, out, errs
}

// How long the first attempt of a job waits for a folder named after the job, and how often it looks.
const (
	folderWait = 5 * time.Second
	folderLook = 20 * time.Millisecond
)

// awaitFolders waits for the folders of the output files where their names depend on the job, as in
// logs/%j/out: whoever submits can only make such a folder when sbatch has printed the number, and
// the job may start before. submitit is such a client.
func (s *supervisor) awaitFolders() {
	if s.launch.Ref.Attempt > 1 {
		return
	}
	for _, dir := range namedFolders(s.launch) {
		awaitFolder(func() bool {
			err := s.user.runAsUser(func() error { _, err := os.Stat(dir); return err })
			return !errors.Is(err, fs.ErrNotExist)
		})
	}
}

// namedFolders lists the folders of the output files whose names depend on the job.
func namedFolders(l *attempt.Launch) (dirs []string) {
	_, out, errs := Files(l)
	for _, f := range []struct{ pattern, name string }{{l.Job.Spec.Output.Stdout, out}, {l.Job.Spec.Output.Stderr, errs}} {
		if dir := strings.ReplaceAll(filepath.Dir(f.pattern), "%%", ""); f.pattern != "" && expandName(dir, l) != dir && !slices.Contains(dirs, filepath.Dir(f.name)) {
			dirs = append(dirs, filepath.Dir(f.name))
		}
	}
	return dirs
}

// awaitFolder waits until a folder exists, for at most folderWait.
func awaitFolder(exists func() bool) {
	for end := time.Now().Add(folderWait); !exists() && time.Now().Before(end); {
		time.Sleep(folderLook)
	}
}

// openStreams opens the standard files of the program. Later attempts append, but those of a batch
// script in sbatch's form begin its files anew, as slurmstepd does, unless it asks to append.
func (p *program) openStreams(l *attempt.Launch) error {
	in, out, errs := Files(l)
	var err error
	if p.stdio[0], err = p.user.openHere(in, os.O_RDONLY, 0); err != nil {
		return fmt.Errorf("input file %s cannot be read: %w; correct --input", in, bareError(err))
	}
	p.log = out
	again := l.Job.Spec.Output.Append || l.Ref.Attempt > 1 && l.Job.Spec.Source.Form != "sbatch" || l.Adds != nil
	if p.stdio[1], err = p.openOutput(p.log, "--output", again); err != nil {
		return err
	}
	p.stdio[2] = p.stdio[1]
	if errs != p.log {
		if p.stdio[2], err = p.openOutput(errs, "--error", again); err != nil {
			return err
		}
		p.files = append(p.files, errs)
	}
	p.files = append([]string{p.log}, p.files...)
	return p.rotateOutputs(l)
}

// openOutput creates or empties an output file, and says what to do where it
// cannot.
func (p *program) openOutput(name, option string, again bool) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !again {
		flags |= os.O_TRUNC
	}
	f, err := p.user.openHere(name, flags, 0o666)
	if err == nil {
		err = checkDiskRoom(f)
	}
	dir := filepath.Dir(name)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("output file %s: its directory does not exist; create it (mkdir -p %s), or correct %s", name, dir, option)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return nil, fmt.Errorf("output file %s cannot be written: %w; choose another with %s", name, bareError(err), option)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return nil, fmt.Errorf("output file %s: no space is left in %s; make room, or choose another with %s", name, dir, option)
	}
	return nil, fmt.Errorf("output file %s cannot be written: %w; choose another with %s", name, bareError(err), option)
}

// bareError is an error without the operation and the file's name.
func bareError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// checkDiskRoom reports a full disk before the program does.
func checkDiskRoom(f *os.File) error {
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

// expandName replaces sbatch's patterns in a file name.
func expandName(pattern string, l *attempt.Launch) string {
	j := l.Job
	n := slurmfmt.Names{
		Job: uint64(j.ID), Task: slurmfmt.NotArray, JobName: jobName(j.Spec), User: j.Spec.Owner.User,
		Node: shortHost(l.Nodes[0].Name), Step: "batch", Restarts: int(l.Ref.Attempt) - 1,
	}
	if j.Array != nil {
		n.ArrayJob, n.Task = uint64(j.Array.Job), j.Array.Index
	}
	return slurmfmt.ExpandName(pattern, n)
}

// shortHost is a host name without its domain; an address stays whole.
func shortHost(host string) string {
	if net.ParseIP(host) != nil {
		return host
	}
	name, _, _ := strings.Cut(host, ".")
	return name
}

func jobName(s *job.Spec) string { return cmp.Or(s.Name, s.Program.ScriptName, "sbatch") }

// nodeList is the attempt's nodes as Slurm writes them.
func nodeList(l *attempt.Launch) string {
	names := make([]string, len(l.Nodes))
	for i, n := range l.Nodes {
		names[i] = n.Name
	}
	return hostlist.CompressInOrder(names)
}
