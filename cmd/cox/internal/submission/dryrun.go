package submission

import (
	"context"
	"fmt"
	"os"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
)

// dryRun reads a submission here and says what would be asked; where a pool is named, the
// server says what it would hand over there.
func dryRun(a *cli.App, ctx context.Context, f *submitFlags, req *api.Submit) error {
	t, o := textOf(req)
	o.Strict, o.ReadFile = req.Strict, os.ReadFile
	text, err := intake.Read(t, o)
	if err != nil {
		return err
	}
	fmt.Fprint(a.Err, printer.Warnings(a.Page(a.Err), apiWarnings(text.Warnings)))
	if err := printTimes(a, text); err != nil {
		return err
	}
	if f.pool == "" {
		_, err = fmt.Fprint(a.Out, printer.DryRun(a.Page(a.Out), text.Spec, req.File))
		return err
	}
	req.TestOnly, req.Preview = true, true
	_, req.Files = readHere(req)
	c, err := a.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	if f.upload {
		req.Upload = &job.Upload{Dir: req.Dir} // nothing is sent
	}
	done, err := c.Submit(ctx, req)
	if err != nil {
		return err
	}
	if f.format.IsData() {
		return a.WriteData(f.format, done)
	}
	p := a.Page(a.Out)
	out := printer.DryRun(p, text.Spec, req.File)
	if done.Preview != nil {
		out += printer.Preview(p, done.Preview)
	} else {
		out += printer.Estimate(p, done)
	}
	_, err = fmt.Fprint(a.Out, out)
	return err
}

func apiWarnings(ws []spec.Warning) []api.Warning {
	out := make([]api.Warning, len(ws))
	for i, w := range ws {
		out[i] = api.Warning(w)
	}
	return out
}
