package jobs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store/upload"
)

func pullCommand(a *cli.App) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "pull JOB [PATH]",
		Short: "Fetch files of a job's working directory",
		Long: `Fetches a file or a directory below the working directory of a job, also while it
runs. Without PATH it fetches all of a directory that came with the job (cox submit
--upload). The files come into the directory job-JOB, or the one of --to, under their
names in the job. No file that is there already is written over.`,
		Example: `  cox pull 7                    # all, into job-7
  cox pull 7 results            # into job-7/results
  cox pull last out/model.pt --to .`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fault.New(fault.Invalid, "cox pull needs a job").Advise("for example: cox pull 7 results")
			case len(args) > 2:
				return fault.New(fault.Invalid, "cox pull fetches one PATH at a time, and %d are given", len(args)-1).Advise("name a directory that has them all, or call it once for each")
			}
			return nil
		},
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			path := ""
			if len(args) > 1 {
				path = filepath.ToSlash(args[1])
			}
			j, err := c.Job(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if to == "" {
				to = "job-" + j.Name
			}
			archive, err := c.Files(cmd.Context(), j.Name, path)
			if err != nil {
				return err
			}
			defer archive.Close()
			return unpackInto(a, archive, to)
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "directory for the files (default: job-JOB)")
	return cmd
}

// unpackInto unpacks an archive below a directory, which is made where it is not there.
func unpackInto(a *cli.App, archive io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // as mkdir does: the umask decides
		return fault.New(fault.Invalid, "--to: %w", err).Advise("name a directory that you may write to")
	}
	count := &countReader{from: archive}
	if err := upload.Unpack(count, dir, 0); err != nil {
		_ = os.Remove(dir) // if nothing came
		return fault.New(fault.KindOf(err), "%w", err).Advise("what came before is in %s; choose another directory with --to", dir)
	}
	fmt.Fprintf(a.Err, "fetched %s (packed) into %s\n", printer.Bytes(count.bytes), dir)
	return nil
}

// countReader counts what is read.
type countReader struct {
	from  io.Reader
	bytes int64
}

func (c *countReader) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.bytes += int64(n)
	return n, err
}
