package cli

import (
	"bufio"
	"context"
	"io"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
)

// EachJobRow asks for columns of the live jobs that a query chooses, and calls f with the
// fields of each row.
func EachJobRow(ctx context.Context, c *client.Client, q client.Query, columns []string, f func(fields []string) error) error {
	r, err := c.JobsTSV(ctx, q, columns...)
	if err != nil {
		return err
	}
	defer r.Close()
	return readTSV(r, f)
}

func readTSV(r io.Reader, f func(fields []string) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			for i := range fields {
				fields[i] = api.UnescapeTSV(fields[i])
			}
			if err := f(fields); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}
