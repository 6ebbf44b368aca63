package srunopt

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/getopt"
)

func TestOptionsHaveOneMeaning(t *testing.T) {
	long, short := make(map[string]bool), make(map[byte]bool)
	for _, o := range All() {
		if long[o.Long] || o.Short != 0 && short[o.Short] {
			t.Errorf("--%s (-%c) stands twice", o.Long, o.Short)
		}
		long[o.Long], short[o.Short] = true, true
		if (o.Step == Honoured) != (o.StepWhy == "") || o.Step == Submitted || o.Step == StepOnly || o.Step == ToStep || o.Step == ToBoth {
			t.Errorf("--%s in a step: %+v", o.Long, o)
		}
		if (o.Job == Ignored || o.Job == Refused) != (o.JobWhy != "") {
			t.Errorf("--%s of a job: %+v", o.Long, o)
		}
		if main := ByName(o.Name()); main == nil || main.Same != "" || main.Arg != o.Arg || main.Step != o.Step || main.StepWhy != o.StepWhy || main.Job != o.Job || main.JobWhy != o.JobWhy {
			t.Errorf("--%s is not the same as --%s", o.Long, o.Name())
		}
	}
}

// TestMistakes: errors are those of Slurm 22.05's srun.
func TestMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"--bogus=1":           "unrecognized option '--bogus=1'",
		"--array=1-3":         "unrecognized option '--array=1-3'",
		"--requeue":           "unrecognized option '--requeue'",
		"--ntasks_per_node=2": "unrecognized option '--ntasks_per_node=2'",
		"--allow-overlap":     "unrecognized option '--allow-overlap'",
		"--lab=1":             "option '--label' doesn't allow an argument",
		"--mem":               "option '--mem' requires an argument",
		"-Y":                  "invalid option -- 'Y'",
		"--cpu_bind=cores":    "",
		"--labe":              "",
		"--tasks=1":           "",
		"--het=0":             "",
	} {
		it := getopt.New(Table{}, strings.Fields(line)).Next()
		got := ""
		if err := it.Err(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
