package sbatch

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/spec"
)

// effects has, for each option that is honoured, a directive that changes the outcome: the
// job, or what the sbatch command does. beside is what stands in the script in any case.
var effects = map[string]struct{ directive, beside string }{
	"account":             {"--account=nlp", ""},
	"array":               {"--array=1-3", ""},
	"begin":               {"--begin=now+1hour", ""},
	"chdir":               {"--chdir=/tmp", ""},
	"comment":             {"--comment=x", ""},
	"constraint":          {"--constraint=ib", ""},
	"contiguous":          {"--contiguous", "-N 2"},
	"cpus-per-gpu":        {"--cpus-per-gpu=4", "--gpus=2"},
	"cpus-per-task":       {"--cpus-per-task=4", ""},
	"deadline":            {"--deadline=now+1day", "-t 10"},
	"dependency":          {"--dependency=afterok:7", ""},
	"distribution":        {"--distribution=cyclic", "-N 2 -n 4"},
	"error":               {"--error=x", ""},
	"exclude":             {"--exclude=n1", ""},
	"exclusive":           {"--exclusive", ""},
	"export":              {"--export=NONE", ""},
	"export-file":         {"--export-file=vars", ""},
	"gpus":                {"--gpus=2", ""},
	"gpus-per-node":       {"--gpus-per-node=2", ""},
	"gpus-per-socket":     {"--gpus-per-socket=2", "--sockets-per-node=2"},
	"gpus-per-task":       {"--gpus-per-task=2", "-n 2"},
	"tres-per-task":       {"--tres-per-task=gres/gpu:2", "-n 2"},
	"gres":                {"--gres=gpu:2", ""},
	"help":                {"--help", onlyCommand},
	"hold":                {"--hold", ""},
	"input":               {"--input=x", ""},
	"job-name":            {"--job-name=x", ""},
	"kill-on-invalid-dep": {"--kill-on-invalid-dep=yes", "--dependency=afterok:7"},
	"licenses":            {"--licenses=matlab:2", ""},
	"mail-type":           {"--mail-type=END", ""},
	"mail-user":           {"--mail-user=a@b", "--mail-type=END"},
	"mem":                 {"--mem=4G", ""},
	"mem-per-cpu":         {"--mem-per-cpu=4G", ""},
	"mem-per-gpu":         {"--mem-per-gpu=4G", "--gpus=2"},
	"mincpus":             {"--mincpus=4", ""},
	"nice":                {"--nice=5", ""},
	"no-requeue":          {"--no-requeue", "--requeue"},
	"nodefile":            {"--nodefile=hosts", ""},
	"nodelist":            {"--nodelist=n1", ""},
	"nodes":               {"--nodes=2", ""},
	"ntasks":              {"--ntasks=2", ""},
	"ntasks-per-node":     {"--ntasks-per-node=2", "-N 2"},
	"ntasks-per-tres":     {"--ntasks-per-tres=2", "--gpus=2"},
	"ntasks-per-gpu":      {"--ntasks-per-gpu=2", "--gpus=2"},
	"open-mode":           {"--open-mode=append", ""},
	"output":              {"--output=x", ""},
	"overcommit":          {"--overcommit", "-n 4"},
	"parsable":            {"--parsable", ""},
	"partition":           {"--partition=gpu", ""},
	"priority":            {"--priority=5", ""},
	"qos":                 {"--qos=high", ""},
	"quiet":               {"--quiet", onlyCommand},
	"requeue":             {"--requeue", "--no-requeue"},
	"reservation":         {"--reservation=r", ""},
	"segment":             {"--segment=2", "-N 4"},
	"signal":              {"--signal=USR1@60", ""},
	"sockets-per-node":    {"--sockets-per-node=2", "--gpus-per-socket=2 --sockets-per-node=1"},
	"spread-job":          {"--spread-job", "-N 1-2 -n 2"},
	"switches":            {"--switches=1", "-N 2"},
	"test-only":           {"--test-only", ""},
	"time":                {"--time=10", ""},
	"time-min":            {"--time-min=5", "--time=10"},
	"tmp":                 {"--tmp=4G", ""},
	"use-min-nodes":       {"--use-min-nodes", "-N 1-4 -n 8"},
	"usage":               {"--usage", onlyCommand},
	"verbose":             {"--verbose", onlyCommand},
	"version":             {"--version", onlyCommand},
	"wait":                {"--wait", ""},
	"wrap":                {"--wrap=true", onlyCommand},
}

// onlyCommand marks options that count on the command line alone.
const onlyCommand = "command line"

// readsAsItIs are options that are honoured because what they ask for holds in any case.
var readsAsItIs = map[string]string{
	"ignore-pbs": "#PBS lines are never read",
	"gpu-bind":   "srun in the job reads it from SLURM_GPU_BIND",
	"propagate":  "control/intake chooses by it which limits of the submitter the job's environment carries",
}

// TestEveryOptionCounts: each option of the table changes the outcome, is warned of or is
// refused. An option that is new in the table needs a row here.
func TestEveryOptionCounts(t *testing.T) {
	outcome := func(text string) (any, []spec.Warning, error) {
		r, err := ParseAll(source("#!/bin/sh\n"+text+"true\n"), Options{
			Dir: "/home/anna", Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Mail: true, ReadFile: func(name string) ([]byte, error) {
				if strings.HasSuffix(name, "hosts") {
					return []byte("n1\n"), nil
				}
				return []byte("A=b\x00"), nil
			},
		})
		if r.Job != nil {
			r.Job.Source.Given, r.Job.Source.Lines = nil, [2]int{}
		}
		j, jsonErr := json.Marshal(r.Job)
		if jsonErr != nil {
			t.Fatal(jsonErr)
		}
		return [2]any{string(j), r.Command}, r.Warnings, err
	}
	for _, o := range Table() {
		name := o.canonicalName()
		e, counts := effects[name]
		switch {
		case o.Status == NoEffect:
			text := "#SBATCH --" + o.Name
			if o.Arg == getopt.Required {
				text += "=1"
			}
			if _, warnings, err := outcome(text + "\n"); err == nil && len(warnings) == 0 {
				t.Errorf("--%s is taken without a word", o.Name)
			}
		case o.Status == Refused:
			text := "#SBATCH --" + o.Name
			if o.Arg == getopt.Required {
				text += "=1"
			}
			if _, _, err := outcome(text + "\n"); err == nil {
				t.Errorf("--%s is not refused", o.Name)
			}
		case readsAsItIs[name] != "":
		case !counts:
			t.Errorf("--%s is in the table and not among the effects of this test", o.Name)
		case e.beside == onlyCommand:
			var with CommandOptions
			c, err := Command([]string{e.directive}, nil)
			if with = c.CommandOptions; err != nil || reflect.DeepEqual(with, CommandOptions{}) {
				t.Errorf("%s asks nothing of the command: %v", e.directive, err)
			}
		default:
			before := ""
			if e.beside != "" {
				before = "#SBATCH " + e.beside + "\n"
			}
			without, _, err1 := outcome(before)
			with, _, err2 := outcome(before + "#SBATCH " + e.directive + "\n")
			if err1 != nil || err2 != nil {
				t.Errorf("%s beside %q: %v, %v", e.directive, e.beside, err1, err2)
			} else if reflect.DeepEqual(with, without) {
				t.Errorf("%s beside %q changes nothing", e.directive, e.beside)
			}
		}
	}
	for i := range plugins {
		text := "#SBATCH --" + plugins[i].name + "=1\n"
		if plugins[i].known && plugins[i].arg == getopt.None {
			text = "#SBATCH --" + plugins[i].name + "\n"
		}
		without, _, _ := outcome("")
		with, warnings, err := outcome(text)
		if counts := plugins[i].container && !reflect.DeepEqual(with, without); err == nil && len(warnings) == 0 && !counts {
			t.Errorf("--%s is taken without a word", plugins[i].name)
		}
	}
}
