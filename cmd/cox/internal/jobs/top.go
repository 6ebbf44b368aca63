package jobs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func topCommand(a *cli.App) *cobra.Command {
	var view string
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Live full-screen view: nodes, jobs, queue, pools",
		Long: `Shows nodes with their devices, running jobs with where their gangs sit, the queue
with its reasons, and pools, and keeps them up to date.

The keys are those of k9s, on the job under the cursor: l follows its output, s opens
a shell in it, w says why it waits, Ctrl-D cancels it after a question, Enter shows it.
/ filters, : opens a command line (:jobs, :nodes, :logs 7, :q), Esc goes back, ? lists
all keys.

cox top starts the program cox-top, which is installed beside cox.`,
		Example: `  cox top
  cox top --view queue`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			binary, err := topBinary()
			if err != nil {
				return err
			}
			argv := []string{"cox-top", "--view", view}
			if a.NoColour {
				argv = append(argv, "--no-color")
			}
			env := os.Environ()
			if a.Server != "" {
				env = append(env, "COX_SERVER="+a.Server)
			}
			return fault.New(fault.Internal, "start %s: %w", binary, syscall.Exec(binary, argv, env))
		},
	}
	cmd.Flags().StringVar(&view, "view", "nodes", "first view: nodes, jobs, queue or pools")
	_ = cmd.RegisterFlagCompletionFunc("view", cobra.FixedCompletions([]string{"nodes", "jobs", "queue", "pools"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// topBinary finds cox-top: beside cox, else on PATH.
func topBinary() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "cox-top")
		if st, err := os.Stat(beside); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	found, err := exec.LookPath("cox-top")
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Unsupported, "cox-top is neither beside cox nor on PATH").
			Advise("build it: go build ./cmd/cox-top, and put it beside cox; cox queue --watch works without")
	}
	return found, err
}
