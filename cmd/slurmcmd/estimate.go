package slurmcmd

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// PrintEstimate prints when a job could start, which --test-only asks for, on the standard
// error as sbatch and srun do.
// No number was given out: it is 0.
func (c *Command) PrintEstimate(e fastclient.Value) {
	start := e.Get("start").Time()
	if start.IsZero() {
		why := "Requested node configuration is not available"
		for _, r := range e.Get("reasons").Items() {
			why += "\n  " + ReasonText(r)
		}
		fmt.Fprintf(c.Err, "allocation failure: %s\n", why)
		c.Code = 1
		return
	}
	where := ""
	if nodes := e.Get("nodes").Texts(); len(nodes) > 0 {
		where = " on nodes " + hostlist.CompressInOrder(nodes)
	}
	if part := e.Get("partition").Text(); part != "" {
		where += " in partition " + part
	}
	c.Sayf("Job 0 to start at %s using %d processors%s", start.Local().Format("2006-01-02T15:04:05"), e.Get("cpus").Int(), where)
}
