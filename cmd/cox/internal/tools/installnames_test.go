package tools

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
)

func TestInstallNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	r := runInstallNames(t, dir)
	r.Check(t, 0, "~export PATH="+dir+":$PATH", "")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"sbatch", "srun", "squeue", "scancel", "sinfo", "sacct", "scontrol"} {
		if to, err := os.Readlink(filepath.Join(dir, n)); err != nil || filepath.Dir(to) != filepath.Dir(self) {
			t.Errorf("%s leads to %q, %v", n, to, err)
		}
	}
	runInstallNames(t).Check(t, 2, "", "~cox install-names needs a folder")
}

// TestForeignFilesStay: a file is never replaced, a link only if asked, and then
// nothing else has been changed before.
func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "scontrol")
	if err := os.WriteFile(name, []byte("real"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{dir}, {"--force", dir}} {
		runInstallNames(t, args...).Check(t, 4, "", "~scontrol exists and is not a link")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d entries", len(entries))
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/bin/true", name); err != nil {
		t.Fatal(err)
	}
	runInstallNames(t, dir).Check(t, 4, "", "~scontrol is a link to /usr/bin/true")
	runInstallNames(t, "-f", dir).Check(t, 0, "~→", "")
	if to, _ := os.Readlink(name); to == "/usr/bin/true" {
		t.Error("the link was not replaced")
	}
}

// runInstallNames runs cox install-names; as beside the tests there is no cox-slurm, the links lead to
// the tests themselves.
func runInstallNames(t *testing.T, args ...string) clitest.Ran {
	t.Helper()
	commands := func(a *cli.App) []*cobra.Command { return []*cobra.Command{installNamesCommand(a, os.Executable)} }
	return clitest.Run(t, clitest.Root(commands), "", "", append([]string{"install-names"}, args...)...)
}
