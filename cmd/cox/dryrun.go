package main

import (
	"fmt"
	"os"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/show"
	"github.com/coxswain-sched/coxswain/spec"
)

// dryRun reads a submission here and says what would be asked.
func (a *app) dryRun(req *api.Submit) error {
	r := reading{args: req.Args, scriptArgs: req.ScriptArgs, environ: req.Environ, dir: req.Dir, host: req.Host, strict: req.Strict, readFile: os.ReadFile}
	var text *read
	var err error
	if req.Form == api.FormCommand {
		text, err = r.command(req.Command)
	} else {
		text, err = r.read(req.Form, req.File, []byte(req.Text))
	}
	if err != nil {
		return err
	}
	fmt.Fprint(a.err, show.Warnings(a.page(a.err), wireWarnings(text.warnings)))
	_, err = fmt.Fprint(a.out, show.DryRun(a.page(a.out), text.job, req.File))
	return err
}

func wireWarnings(ws []spec.Warning) []api.Warning {
	out := make([]api.Warning, len(ws))
	for i, w := range ws {
		out[i] = api.Warning(w)
	}
	return out
}
