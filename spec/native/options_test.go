package native

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// laid has an option of sbatch with a value for each option that this form has a field for, and
// the text of a file in which the field says the same. beside is what the file has in any case.
var laid = map[string]struct{ option, field, beside string }{
	"account":             {"--account=nlp", "account: nlp", "account: old"},
	"array":               {"--array=1-3", "array: 1-3", "array: 7"},
	"begin":               {"--begin=2026-11-22T10:00", "begin: 2026-11-22T10:00", ""},
	"chdir":               {"--chdir=/tmp", "workdir: /tmp", "workdir: /home"},
	"comment":             {"--comment=x y", "comment: x y", ""},
	"constraint":          {"--constraint=ib", "constraint: ib", "constraint: old"},
	"contiguous":          {"--contiguous", "contiguous: true", "nodes: 2"},
	"cpus-per-gpu":        {"--cpus-per-gpu=4", "cpus_per_gpu: 4", "gpus: 2\ncpus: 3"},
	"cpus-per-task":       {"--cpus-per-task=4", "cpus: 4", "cpus: 2"},
	"deadline":            {"--deadline=2026-11-22T10:00", "deadline: 2026-11-22T10:00", ""},
	"dependency":          {"--dependency=afterok:7", "depends: afterok:7", "depends: afterany:6"},
	"distribution":        {"--distribution=cyclic", "distribution: cyclic", "nodes: 2"},
	"error":               {"--error=x", "error: x", "error: y"},
	"exclude":             {"--exclude=n1", "exclude: n1", ""},
	"exclusive":           {"--exclusive", "exclusive: true", "exclusive: false"},
	"export":              {"--export=NONE", "export: none", "export: all"},
	"gpus":                {"--gpus=h100:2", "gpus: h100:2", "gpus_per_node: 8"},
	"gpus-per-node":       {"--gpus-per-node=2", "gpus_per_node: 2", "gpus: 16"},
	"gpus-per-task":       {"--gpus-per-task=2", "gpus_per_task: 2", "gpus: 16"},
	"gres":                {"--gres=gpu:h100:2", "gpus_per_node: h100:2", "gpus_per_node: 1"},
	"hold":                {"--hold", "hold: true", "hold: false"},
	"input":               {"--input=x", "input: x", ""},
	"job-name":            {"--job-name=123", "name: 123", "name: old"},
	"kill-on-invalid-dep": {"--kill-on-invalid-dep=yes", "depends_fail: true", "depends: afterok:7"},
	"licenses":            {"--licenses=matlab:2", "licenses: matlab:2", ""},
	"mail-type":           {"--mail-type=END", "mail: {types: end, to: a@b}", "mail: {types: fail, to: a@b}"},
	"mail-user":           {"--mail-user=a@b", "mail: {types: fail, to: a@b}", "mail: fail"},
	"mem":                 {"--mem=4000", "memory: 4000M", "memory_per_cpu: 2G"},
	"mem-per-cpu":         {"--mem-per-cpu=4G", "memory_per_cpu: 4G", "memory: 2G"},
	"mem-per-gpu":         {"--mem-per-gpu=4G", "memory_per_gpu: 4G", "gpus: 2"},
	"nice":                {"--nice", "nice: 100", "nice: 5"},
	"no-requeue":          {"--no-requeue", "requeue: false", "requeue: true"},
	"nodefile":            {"--nodefile=hosts", "nodelist: n1", ""},
	"nodelist":            {"--nodelist=n[1-2]", "nodelist: n[1-2]", "nodelist: n3"},
	"nodes":               {"--nodes=2-4", "nodes: 2-4", "nodes: 8"},
	"ntasks":              {"--ntasks=1", "tasks: 1", "tasks: 8"},
	"ntasks-per-node":     {"--ntasks-per-node=2", "tasks_per_node: 2", "nodes: 2"},
	"open-mode":           {"--open-mode=append", "append: true", ""},
	"output":              {"--output=x", "output: x", "output: y"},
	"overcommit":          {"--overcommit", "overcommit: true", "tasks: 4"},
	"partition":           {"--partition=gpu,cpu", "partition: [gpu, cpu]", "partition: old"},
	"priority":            {"--priority=5", "priority: 5", ""},
	"qos":                 {"--qos=high", "qos: high", "qos: low"},
	"requeue":             {"--requeue", "requeue: true", "requeue: false"},
	"reservation":         {"--reservation=r", "reservation: r", ""},
	"segment":             {"--segment=2", "segment: 2", "nodes: 4"},
	"signal":              {"--signal=B:USR1@60", "signal: B:USR1@60", ""},
	"spread-job":          {"--spread-job", "spread: true", "nodes: 1-2"},
	"switches":            {"--switches=1", "switches: 1\nswitches_for: site", "nodes: 2"},
	"time":                {"--time=10", "time: 10m", "time: 4h"},
	"time-min":            {"--time-min=5", "time_min: 5m", "time: 10m"},
	"tmp":                 {"--tmp=4G", "disk: 4G", ""},
	"use-min-nodes":       {"--use-min-nodes", "few_nodes: true", "nodes: 1-4"},
	"wrap":                {"", "", ""}, // the file has the program
	"ignore-pbs":          {"", "", ""}, // the file has no such lines
}

// withoutCounterpart are the honoured options that this form has no field for: they are refused.
var withoutCounterpart = map[string]string{
	"gpu-bind": "--gpu-bind=single:1", "propagate": "--propagate=NONE",
	"mincpus": "--mincpus=4", "export-file": "--export-file=hosts", "gpus-per-socket": "--gpus-per-socket=2", "tres-per-task": "--tres-per-task=gres/gpu:2",
	"ntasks-per-tres": "--ntasks-per-tres=2", "ntasks-per-gpu": "--ntasks-per-gpu=2", "sockets-per-node": "--sockets-per-node=2",
}

func layOptionsOver(text string, args ...string) (string, []spec.Warning, error) {
	s, _, warnings, err := Parse(spec.Source{Name: "job.yaml", Data: []byte(text)}, Options{
		Dir: "/home/anna", Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Mail: true, Args: args,
		ReadFile: func(string) ([]byte, error) { return []byte("n1\n"), nil },
	})
	if s == nil {
		return "", warnings, err
	}
	s.Source.Given, s.Source.Lines = nil, [2]int{}
	b, jsonErr := json.Marshal(s)
	if jsonErr != nil {
		return "", warnings, jsonErr
	}
	return string(b), warnings, err
}

// TestEveryOptionOfSbatch: each option of sbatch's table does beside a file of this form what the
// field for it does, is warned of, or is refused by its name.
func TestEveryOptionOfSbatch(t *testing.T) {
	for _, o := range sbatch.Table() {
		if o.Same != "" || o.Command {
			continue
		}
		row, known := laid[o.Name]
		option := row.option
		switch {
		case known && option == "":
			continue
		case !known && withoutCounterpart[o.Name] != "":
			option = withoutCounterpart[o.Name]
		case !known && o.Status == sbatch.Honoured:
			t.Errorf("--%s is honoured by sbatch's reader: say here what it does beside the native form", o.Name)
			continue
		case !known:
			option = "--" + o.Name
			if o.Arg == getopt.Required {
				option += "=1"
			}
		}
		got, warnings, err := layOptionsOver("command: x\n"+row.beside+"\n", option)
		if !known {
			if said := o.Status == sbatch.NoEffect && len(warnings) > 0; !said && (err == nil || !strings.Contains(err.Error(), "--"+o.Name)) {
				t.Errorf("%s: %v, %v: neither warned of nor refused by name", option, warnings, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s over %q: %v", option, row.beside, err)
			continue
		}
		var fields []string
		name, _, _ := strings.Cut(row.field, ":")
		for line := range strings.SplitSeq(row.beside, "\n") {
			if n, _, _ := strings.Cut(line, ":"); n != name && !excludes(n, name) {
				fields = append(fields, line)
			}
		}
		want, _, err := layOptionsOver("command: x\n" + strings.Join(append(fields, row.field), "\n") + "\n")
		if err != nil {
			t.Fatalf("%s: %v", row.field, err)
		}
		if got != want {
			t.Errorf("%s over %q:\n got %s\nwant %s", option, row.beside, got, want)
		}
	}
}

func excludes(a, b string) bool {
	for _, set := range alternatives {
		if strings.Contains(" "+strings.Join(set, " ")+" ", " "+a+" ") && strings.Contains(" "+strings.Join(set, " ")+" ", " "+b+" ") {
			return true
		}
	}
	return false
}

// TestOptionsThatDoNotGo: what an option asks for and the file cannot be is an error about the
// option, not about a line of the file.
func TestOptionsThatDoNotGo(t *testing.T) {
	for _, c := range []struct{ text, option, want string }{
		{"command: x\n", "--time=4x", "--time=4x"},
		{"command: x\n", "--nodes=0", "--nodes=0"},
		{"command: x\n", "--memory=4G", "--memory is no option of sbatch"},
		{"command: x\ntasks: 2\n", "--nodes=4", "4 nodes are more than 2 tasks can use"},
		{"command: x\ngroups: [{nodes: 1}, {nodes: 2}]\n", "--nodes=4", "does not say for which of the groups"},
		{"command: x\n", "--distribution=arbitrary", "--distribution"},
	} {
		_, _, err := layOptionsOver(c.text, c.option)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "command line") {
			t.Errorf("%s: %v, want %q of the command line", c.option, err, c.want)
		}
	}
}
