package submission

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/agent/ownlimit"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// submitEach submits each thing that a manifest runs. All are checked before the first is submitted.
func submitEach(a *cli.App, cmd *cobra.Command, f *submitFlags, req *api.Submit, works []string) error {
	if f.wait || f.follow {
		return fault.New(fault.Invalid, "the file has %d things to run, and --wait and --follow are for one", len(works)).Advise("submit it without, then cox logs -f and cox wait")
	}
	of := func(name string) *api.Submit {
		one := *req
		one.Work = name
		return &one
	}
	if !f.dry && !f.testOnly {
		c, err := a.Client()
		if err != nil {
			return err
		}
		defer c.Close()
		for _, name := range works {
			one := of(name)
			one.TestOnly = true
			if _, err := c.Submit(cmd.Context(), one); err != nil {
				return err
			}
		}
	}
	for i, name := range works {
		if err := submitOne(a, cmd, f, of(name)); err != nil {
			if i > 0 {
				fmt.Fprintf(a.Err, "%d of %d were submitted before %s\n", i, len(works), name)
			}
			return err
		}
	}
	return nil
}

// worksOf lists what a submission's file runs, where it runs more than one thing. A file that cannot be read
// is the server's to refuse.
func worksOf(req *api.Submit) []string {
	works, err := intake.Works(intake.Text{Form: req.Form, Name: req.File, Data: []byte(req.Text)})
	if err != nil || len(works) < 2 || req.Work != "" {
		return nil
	}
	return works
}

// splitSources makes a source for each thing that a manifest among them runs.
func splitSources(sources []source) ([]source, error) {
	var out []source
	for _, s := range sources {
		works, err := intake.Works(s.text)
		if err != nil {
			return nil, err
		}
		if len(works) < 2 {
			out = append(out, s)
			continue
		}
		for _, name := range works {
			one := s
			one.text.Work = name
			out = append(out, one)
		}
	}
	return out, nil
}

// submitFile is App.SubmitFile.
func submitFile(a *cli.App) func(cmd *cobra.Command, file string, data []byte, dry bool, format cli.Format) error {
	return func(cmd *cobra.Command, file string, data []byte, dry bool, format cli.Format) error {
		f := &submitFlags{testOnly: dry, format: format}
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		mask := cli.Umask()
		req := &api.Submit{
			Form: intake.Detect(file, data), File: file, Text: string(data), Environ: os.Environ(), Dir: dir, Host: cli.Hostname(), Umask: &mask,
			Limits: ownlimit.Texts(), TestOnly: dry,
		}
		if works := worksOf(req); len(works) > 0 {
			err = submitEach(a, cmd, f, req, works)
		} else {
			err = submitOne(a, cmd, f, req)
		}
		if err != nil {
			return markNotSubmitted(err)
		}
		return nil
	}
}
