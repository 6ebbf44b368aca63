package jobs

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/spec"
)

// TestTheServerReadsAsTheIntake: a submission makes the job, and has the refusals and warnings,
// that the intake has of its text for cox run, cox submit --dry-run and cox convert.
func TestTheServerReadsAsTheIntake(t *testing.T) {
	for _, c := range []struct {
		name string
		text intake.Text
		args []string
		env  []string
	}{
		{"a script", intake.Text{Form: api.FormSbatch, Name: "train.sbatch", Data: []byte(servertest.Script)}, nil, nil},
		{"a script with options", intake.Text{Form: api.FormSbatch, Name: "train.sbatch", Data: []byte(servertest.Script)}, []string{"-N3", "--time=10"}, []string{"SBATCH_QOS=low"}},
		{"an option without effect", intake.Text{Form: api.FormSbatch, Name: "a", Data: []byte("#!/bin/sh\n#SBATCH --mail-type=END --hint=nomultithread\nhostname\n")}, nil, nil},
		{"a wrong option", intake.Text{Form: api.FormSbatch, Name: "a", Data: []byte("#!/bin/sh\n#SBATCH --time=x\n")}, nil, nil},
		{"no script", intake.Text{Form: api.FormSbatch, Name: "a.py", Data: []byte("import os\n")}, nil, nil},
		{"yaml", intake.Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("name: x\nnodes: 2\ncommand: hostname\n")}, nil, nil},
		{"yaml with options", intake.Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("command: hostname\n")}, []string{"-N2"}, nil},
		{"a wrong field", intake.Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("gpuss: 2\ncommand: hostname\n")}, nil, nil},
		{"a manifest", intake.Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("apiVersion: v1\nkind: Pod\n")}, nil, nil},
		{"a command", intake.Text{Form: api.FormCommand, Command: []string{"/bin/hostname", "-f"}}, []string{"-n4"}, nil},
		{"no command", intake.Text{Form: api.FormCommand, Command: []string{""}}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := servertest.NewPlane()
			r := start(t, p, func(cfg *Config) { cfg.Rules = nil })
			b, _ := json.Marshal(&api.Submit{
				Form: c.text.Form, File: c.text.Name, Text: string(c.text.Data), Command: c.text.Command, Args: c.args, Environ: c.env, Dir: "/home/anna", Host: "login",
			})
			resp, body := r.Ask(t, "POST", "/v1/jobs", r.Token(t, "anna", nil), string(b))
			var out struct {
				api.Submitted
				api.Error
			}
			if err := json.Unmarshal([]byte(body), &out); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			want, err := intake.Read(c.text, intake.Options{Args: c.args, Environ: c.env, Dir: "/home/anna", Host: "login"})
			if err != nil {
				said, first := out.Detail, err.Error()
				if place := (*spec.Error)(nil); errors.As(err, &place) && len(out.Errors) > 0 {
					said, first = out.Errors[0].Message, place.Message
				}
				if resp.StatusCode != 400 || said != first {
					t.Errorf("%d %s, want %s", resp.StatusCode, body, first)
				}
				return
			}
			if resp.StatusCode != 201 {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			got := *p.Jobs[len(p.Jobs)-1].Job.Spec
			got.Owner, got.Program.ScriptHash, got.Env.Hash = job.Owner{}, "", ""
			if diff := cmp.Diff(want.Spec, &got); diff != "" {
				t.Errorf("the job (-intake +server)\n%s", diff)
			}
			if diff := cmp.Diff(shownWarnings(want.Warnings), out.Warnings); diff != "" {
				t.Errorf("warnings (-intake +server)\n%s", diff)
			}
		})
	}
}
