package server

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func auditCommand(a *cli.App) *cobra.Command {
	var after uint64
	var limit int
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List changes with who asked for them, when and from where",
		Long: `Lists changes of the server's state, oldest first, with who asked for them and
from where. For administrators.`,
		Example: `  cox audit
  cox audit --after 1200 --limit 0 -o json`,
		Args: cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			if limit < 0 {
				return fault.New(fault.Invalid, "--limit=%d: this is not a number of records", limit).Advise("write 1 or more; 0 for all")
			}
			all := api.Audit{Records: []api.AuditRecord{}, Next: after}
			for {
				ask := 0
				if limit > 0 {
					ask = limit - len(all.Records)
				}
				page, err := c.Audit(cmd.Context(), all.Next, ask)
				if err != nil {
					return err
				}
				all.Records, all.Next = append(all.Records, page.Records...), page.Next
				if page.Next == 0 || len(page.Records) == 0 || limit > 0 && len(all.Records) >= limit {
					break
				}
			}
			switch {
			case f.IsData():
				return a.WriteData(f, all)
			case f == cli.AsName:
				var names []string
				for i := range all.Records {
					names = append(names, strconv.FormatUint(all.Records[i].Seq, 10))
				}
				return a.WriteNames(names)
			}
			if len(all.Records) == 0 {
				fmt.Fprintln(a.Err, "no records")
			}
			return printer.Audit(a.Page(a.Out), all.Records, f == cli.AsWide).Write(a.Out, a.Page(a.Out))
		}),
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "only records after this number")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many (0: all)")
	a.ListFlags(cmd, &f, true)
	return cmd
}
