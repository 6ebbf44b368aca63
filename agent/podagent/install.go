package podagent

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/agent/step/pmix"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// Names are those by which cox-slurm is called.
var Names = slurmfmt.Commands

const (
	podBinary   = "cox-pod"
	slurmBinary = "cox-slurm"
	sshName     = "cox-ssh" // sshserver.Name
)

// Install copies this program and those beside it, cox-slurm and the PMIx helper, into a
// directory, with the links by which cox-slurm is called. An image may lack the PMIx helper:
// steps that need one say so.
func Install(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.New(fault.KindOf(err), "install: %w", err).Advise("mount an empty volume there that the pod's user may write to")
	}
	for _, name := range []string{podBinary, slurmBinary, pmix.HelperName} {
		from := filepath.Join(filepath.Dir(self), name)
		if name == podBinary {
			from = self
		}
		err := copyProgram(from, filepath.Join(dir, name))
		if name == pmix.HelperName && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fault.New(fault.KindOf(err), "install %s: %w", name, err).Advise("the image needs cox-pod and cox-slurm in one directory")
		}
	}
	return makeLinks(dir, slurmBinary)
}

// linkCommands makes the directory by whose names the job finds srun and its like, and the
// supervisor this program's tasks.
func (p Place) linkCommands() error {
	slurm := filepath.Join(p.Bin, slurmBinary)
	if _, err := os.Stat(slurm); err != nil {
		return fault.New(fault.Invalid, "the programs of the crew: %w", err).Advise("have an init container run `cox-pod install %s`", p.Bin)
	}
	if err := os.Mkdir(p.linksDir(), 0o755); err != nil {
		return err
	}
	if err := os.Symlink(slurm, filepath.Join(p.linksDir(), "cox")); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(p.Bin, podBinary), filepath.Join(p.linksDir(), sshName)); err != nil {
		return err
	}
	if helper := filepath.Join(p.Bin, pmix.HelperName); isFile(helper) { // the nodes of steps look for it beside cox
		if err := os.Symlink(helper, filepath.Join(p.linksDir(), pmix.HelperName)); err != nil {
			return err
		}
	}
	return makeLinks(p.linksDir(), slurm)
}

func isFile(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular()
}

func makeLinks(dir, to string) error {
	for _, name := range Names {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// copyProgram copies a program, whole or not at all.
func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	next := to + ".new"
	out, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Chmod(0o755), out.Close())
	if err == nil {
		err = os.Rename(next, to)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}
