package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

func installNamesCommand(a *cli.App, binary func() (string, error)) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "install-names DIR",
		Short: "Link sbatch, srun, squeue, scancel, sinfo, sacct, scontrol, sshare, sprio, sstat, seff and salloc to cox",
		Long: `Makes links with the names of Slurm's commands in a folder, so that scripts and
habits still work. The links lead to cox-slurm, which make build puts beside cox. A
file, or a link to another program, is never overwritten.`,
		Example: `  cox install-names ~/.local/cox/bin
  PATH=~/.local/cox/bin:$PATH sbatch train.sbatch`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fault.New(fault.Invalid, "cox install-names needs a folder").Advise("for example: cox install-names ~/.local/cox/bin")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			target, err := binary()
			if err != nil {
				return err
			}
			return installNames(a, args[0], target, force)
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "replace links to other targets (never files)")
	return cmd
}

func installNames(a *cli.App, dir, target string, force bool) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.New(fault.KindOf(err), "make %s: %w", dir, err).Advise("name a folder that you may write to")
	}
	names := slurmfmt.Commands
	for _, n := range names {
		if err := checkLink(filepath.Join(dir, n), force); err != nil {
			return err // before anything is changed
		}
	}
	for _, n := range names {
		if err := replaceLink(target, filepath.Join(dir, n)); err != nil {
			return fault.New(fault.KindOf(err), "link %s: %w", n, err).Advise("name a folder that you may write to")
		}
	}
	fmt.Fprintf(a.Out, "%s → %s\n", filepath.Join(dir, "{"+strings.Join(names, ",")+"}"), target)
	if !onPath(dir, a.Getenv("PATH")) {
		fmt.Fprintf(a.Out, "put them before others, in ~/.profile or this shell:  export PATH=%s:$PATH\n", quoteShell(dir))
	}
	return nil
}

// slurmBinary is the binary that answers to Slurm's names: without it most of them would be
// links to an error.
func slurmBinary() (string, error) {
	if binary := cli.SlurmBinaryPath(); binary != "" {
		return binary, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	return "", fault.New(fault.Unsupported, "cox-slurm, which answers to Slurm's names, is not beside %s", self).
		Advise("build it: make build, or go build -o %s ./cmd/cox-slurm", quoteShell(filepath.Join(filepath.Dir(self), "cox-slurm")))
}

// checkLink returns an error if the file of that name must not be replaced.
func checkLink(name string, force bool) error {
	st, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.New(fault.KindOf(err), "look at %s: %w", name, err)
	case st.Mode()&fs.ModeSymlink == 0:
		return fault.New(fault.Conflict, "%s exists and is not a link: it is left alone, and nothing was changed", name).Advise("name another folder, or move it away")
	}
	to, err := os.Readlink(name)
	if err != nil {
		return err
	}
	if base := filepath.Base(to); base == "cox" || base == "cox-slurm" || force {
		return nil
	}
	return fault.New(fault.Conflict, "%s is a link to %s: nothing was changed", name, to).Advise("name another folder, or replace links with --force")
}

// replaceLink makes a symbolic link, in one step where there was one before.
func replaceLink(target, name string) error {
	tmp := fmt.Sprintf("%s.%d", name, os.Getpid())
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, name); err != nil {
		os.Remove(tmp)
		return err
	}
	return nil
}

func onPath(dir, path string) bool {
	for _, d := range filepath.SplitList(path) {
		if d == dir {
			return true
		}
	}
	return false
}

// quoteShell makes a word of a shell, left as it is where nothing in it is special.
func quoteShell(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:@%,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
