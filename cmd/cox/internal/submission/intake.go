package submission

import (
	"os"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// formOf says which form a text has: the one that was asked for, else what the intake detects.
func formOf(asked, name string, data []byte) (string, error) {
	switch asked {
	case api.FormSbatch, api.FormNative, api.FormManifest:
		return asked, nil
	case "":
		return intake.Detect(name, data), nil
	}
	return "", fault.New(fault.Invalid, "--from %s: there is no such form", asked).Advise("sbatch, native or manifest")
}

// textOf is the text of a submission, with the options for reading it.
func textOf(req *api.Submit) (intake.Text, intake.Options) {
	return intake.Text{Form: req.Form, Name: req.File, Data: []byte(req.Text), Work: req.Work, Command: req.Command},
		intake.Options{Owner: cli.Caller(), Args: req.Args, Set: req.Env, Image: req.Image, Notify: req.Notify, Rerun: job.Rerun(req.Rerun), Schedule: req.Schedule, Once: req.Once, Webhook: func(string) error { return nil }, ScriptArgs: req.ScriptArgs, Environ: req.Environ, Dir: req.Dir, Host: req.Host}
}

// readHere reads a submission as the server will. It returns what was read, nil if there is
// something wrong with it, which the server says in its own words; and the files that
// options name (--nodefile, --export-file), which the server would not open.
func readHere(req *api.Submit) (*intake.Request, map[string]string) {
	files := map[string]string{}
	t, o := textOf(req)
	o.ReadFile = func(name string) ([]byte, error) {
		data, err := os.ReadFile(name)
		if err == nil {
			files[name] = string(data)
		}
		return data, err
	}
	r, err := intake.Read(t, o)
	if err != nil {
		return nil, files
	}
	return r, files
}
