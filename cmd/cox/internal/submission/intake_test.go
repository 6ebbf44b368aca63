package submission

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/intake"
)

func TestWhatAFileIs(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.yaml", "#!/bin/sh", "sbatch"},
		{"a.JSON", "{}", "native"},
		{"a", "#!/bin/sh\nname: x\n", "sbatch"},
		{"a", "#SBATCH -N1\nname: x\n", "sbatch"},
		{"a", "# a comment\n\nname: x\n", "native"},
		{"a", "---\nname: x\n", "native"},
		{"-", "{\"name\": \"x\"}", "native"},
		{"a", "echo hello: world\n", "sbatch"},
		{"a", "", "sbatch"},
		{"a.sbatch", "export A=1\n", "sbatch"},
	} {
		if got, err := formOf("", c.name, []byte(c.text)); err != nil || got != c.want {
			t.Errorf("%s %q: %s, %v", c.name, c.text, got, err)
		}
	}
	if got, err := formOf("sbatch", "a.yaml", nil); err != nil || got != "sbatch" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := formOf("pbs", "a", nil); err == nil {
		t.Error("an unknown form was taken")
	}
}

// TestOneAnswerForEveryCommand: convert, advise, submit and run say the same of a file that none
// of them reads.
func TestOneAnswerForEveryCommand(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"train.py":    {"import torch\n", "train.py: this is a program in Python"},
		"train.job":   {"apiVersion: batch/v1\nkind: Job\n", "train.job:1:1: Job"},
		"job.yaml":    {"name: x\nnodes: {{ nodes }}\n", "job.yaml:2:8: this is a template of Jinja"},
		"sky.yaml":    {"resources: {}\nrun: true\n", "sky.yaml: this is a task of SkyPilot"},
		"empty.yaml":  {"\n", "empty.yaml: this is an empty file"},
		"train.ipynb": {"{}", "train.ipynb: this is a Jupyter notebook"},
	} {
		form, err := formOf("", name, []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		req := &api.Submit{Form: form, File: name, Text: c.text, Dir: "/"}
		text, o := textOf(req)
		_, submitted := intake.Read(text, o)
		_, advised := textFacts(name, []byte(c.text), time.Unix(0, 0))
		for command, err := range map[string]error{"submit, run, convert": submitted, "advise": advised} {
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s %s: %v, want %s", command, name, err, c.want)
			}
		}
	}
}
