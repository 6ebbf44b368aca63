package spec_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

var update = flag.Bool("update", false, "write testdata/document.json anew")

const script = `#!/bin/bash
#SBATCH --job-name=train -p gpu,long --time=1-0 --deadline=2026-12-24 --time-min=60
#SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=h100:8 --mem=0 --requeue
#SBATCH --dependency=afterok:7:8_3,after:9+10 --kill-on-invalid-dep=yes --signal=B:USR1@120
#SBATCH --mail-type=END,FAIL --mail-user=anna@example.org --uenv=x
#SBATCH --array=1-5:2%2 --licenses=matlab --comment="<a> & b"
srun train
`

func document(t *testing.T) []byte {
	t.Helper()
	job, warnings, err := sbatch.Parse(spec.Source{Name: "train.sbatch", Data: []byte(script)}, sbatch.Options{
		Owner: job.Owner{User: "anna", UID: 1000, GID: 1000}, Host: "login1", Dir: "/home/anna", Environ: []string{"SBATCH_ACCOUNT=nlp"},
		Now: time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC), ScriptArgs: []string{"--lr", "0.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := spec.NewDocument(job, warnings).Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The form is a promise to other programs: a change of this file is a change that
// they notice. Fields may be added.
func TestDocumentIsStable(t *testing.T) {
	const golden = "testdata/document.json"
	got := document(t)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for range 20 {
		if again := document(t); !bytes.Equal(got, again) {
			t.Fatalf("the same script gives another document:\n%s\n%s", got, again)
		}
	}
}

// Without warnings there is a list still, and what is written can be read.
func TestDocumentReadsBack(t *testing.T) {
	var b bytes.Buffer
	in := spec.NewDocument(&job.Spec{Name: "a<b", Groups: []job.TaskGroup{{}}}, nil)
	if err := in.Write(&b); err != nil || !bytes.Contains(b.Bytes(), []byte(`"warnings": []`)) || !bytes.Contains(b.Bytes(), []byte("a<b")) {
		t.Errorf("%s, %v", b.Bytes(), err)
	}
	var out spec.Document
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("-written +read\n%s", diff)
	}
}
