package submission

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/control/intake"
)

// TestRunSubmitAndDryRunReadAlike: a file is the same job, or has the same refusal, for cox run,
// cox submit and cox submit --dry-run. That the server's is the same too is for the tests of
// server to show.
func TestRunSubmitAndDryRunReadAlike(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"train.sbatch": "#!/bin/sh\n#SBATCH -N2 --gpus-per-node=2 --mail-type=END\nsrun hostname\n",
		"train.job":    "name: x\nnodes: 2\ncommand: hostname\n",
		"a.yaml":       "script: |\n  hostname\n",
		"bad.sh":       "#!/bin/sh\n#SBATCH --time=x\n",
		"bad.py":       "import os\n",
		"pod.yaml":     "apiVersion: v1\nkind: Pod\n",
		"none":         "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, o := range [][]string{nil, {"--time=10", "--qos=low"}} {
			script := source{intake.Text{Form: intake.Detect(name, []byte(text)), Name: name, Data: []byte(text)}, []string{"--lr", "1"}}
			run, runErr := (&runFlags{job: jobOptions{options: o}}).readRequest(script)
			req := &api.Submit{
				Form: intake.Detect(name, []byte(text)), File: name, Text: text, Args: o, ScriptArgs: []string{"--lr", "1"}, Environ: os.Environ(), Dir: dir, Host: cli.Hostname(),
			}
			around, options := textOf(req)
			options.ReadFile = os.ReadFile
			dry, dryErr := intake.Read(around, options)
			asked, _ := readHere(req)
			if (runErr == nil) != (dryErr == nil) || (asked == nil) != (dryErr != nil) || runErr != nil && runErr.Error() != dryErr.Error() {
				t.Errorf("%s %v: run %v, dry run %v, submit %v", name, o, runErr, dryErr, asked)
				continue
			}
			if runErr != nil {
				continue
			}
			run.Spec.Requeue = dry.Spec.Requeue // cox run waits for its job, which runs once
			if diff := cmp.Diff(run.Spec, dry.Spec); diff != "" {
				t.Errorf("%s %v (-run +dry run)\n%s", name, o, diff)
			}
			if diff := cmp.Diff(run.Spec, asked.Spec); diff != "" {
				t.Errorf("%s %v (-run +submit)\n%s", name, o, diff)
			}
			if diff := cmp.Diff(run.Warnings, dry.Warnings); diff != "" || string(run.Script) != string(dry.Script) {
				t.Errorf("%s %v: warnings (-run +dry run)\n%s", name, o, diff)
			}
		}
	}
}
