package native

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec"
)

// example is a field and what stands beside it in a document, in which it changes the job.
type example struct{ with, beside string }

// topEffects has an example for each field of a document.
var topEffects = map[string]example{
	"version":           {"version: v1", ""},
	"kind":              {"kind: job", ""},
	"secrets":           {"secrets: [hf-token]", ""},
	"name":              {"name: x", ""},
	"comment":           {"comment: x", ""},
	"account":           {"account: nlp", ""},
	"qos":               {"qos: high", ""},
	"pool":              {"pool: p", ""},
	"partition":         {"partition: gpu", ""},
	"reservation":       {"reservation: r", ""},
	"licenses":          {"licenses: matlab:2", ""},
	"time":              {"time: 10m", ""},
	"time_min":          {"time_min: 5m", "time: 10m"},
	"begin":             {"begin: now+1hour", ""},
	"deadline":          {"deadline: now+1day", "time: 10m"},
	"hold":              {"hold: true", ""},
	"nice":              {"nice: 5", ""},
	"priority":          {"priority: 5", ""},
	"depends":           {"depends: afterok:7", ""},
	"depends_fail":      {"depends_fail: true", "depends: afterok:7"},
	"array":             {"array: 1-3", ""},
	"requeue":           {"requeue: true", ""},
	"retries":           {"retries: 3", ""},
	"rerun":             {"rerun: same-nodes", ""},
	"signal":            {"signal: USR1@60", ""},
	"mail":              {"mail: end", ""},
	"notify":            {"notify: {webhook: 'https://example.org/x'}", ""},
	"image":             {"image: a/b:1", ""},
	"container_options": {"container_options: {writable: true}", ""},
	"kubernetes":        {"kubernetes: {shm: 1G}", ""},
	"workdir":           {"workdir: /tmp", ""},
	"output":            {"output: x", ""},
	"error":             {"error: x", ""},
	"input":             {"input: x", ""},
	"append":            {"append: true", "output: x"},
	"env":               {"env: {A: b}", ""},
	"export":            {"export: none", ""},
	"kill_on_bad_exit":  {"kill_on_bad_exit: false", ""},
	"groups":            {"groups: [{tasks: 2}, {tasks: 3}]", ""},
	"together":          {"together: leaf", "nodes: 2"},
	"together_for":      {"together_for: 10m", "nodes: 2\ntogether: leaf"},
	"command":           {"command: hostname", "-"},
	"script":            {"script: hostname", "-"},
	"launcher":          {"launcher: mpi", ""},
	"args":              {"args: [a]", "-script: hostname"},

	"nodes":           {"nodes: 2", ""},
	"tasks":           {"tasks: 2", ""},
	"min_tasks":       {"min_tasks: 2", "tasks: 4"},
	"elastic":         {"elastic: true", "nodes: 1-4"},
	"subgroup":        {"subgroup: 2", "nodes: 2-4\nelastic: true"},
	"tasks_per_node":  {"tasks_per_node: 2", "nodes: 2"},
	"gpus":            {"gpus: 2", ""},
	"gpus_per_node":   {"gpus_per_node: 2", ""},
	"gpus_per_task":   {"gpus_per_task: 2", ""},
	"gpu_types":       {"gpu_types: [h100, a100]", "gpus: 2"},
	"gpu_types_for":   {"gpu_types_for: 10m", "gpus: 2\ngpu_types: [h100, a100]"},
	"cpus":            {"cpus: 4", ""},
	"cpus_per_gpu":    {"cpus_per_gpu: 4", "gpus: 2"},
	"memory":          {"memory: 4G", ""},
	"memory_per_task": {"memory_per_task: 4G", ""},
	"memory_per_cpu":  {"memory_per_cpu: 4G", ""},
	"memory_per_gpu":  {"memory_per_gpu: 4G", "gpus: 2"},
	"disk":            {"disk: 4G", ""},
	"per_node":        {"per_node: {memory: 4G}", ""},
	"per_task":        {"per_task: {memory: 4G}", ""},
	"per_gpu":         {"per_gpu: {memory: 4G}", "gpus: 2"},
	"total":           {"total: {gpus: 4}", ""},
	"exclusive":       {"exclusive: true", ""},
	"overcommit":      {"overcommit: true", "tasks: 4"},
	"constraint":      {"constraint: ib", ""},
	"nodelist":        {"nodelist: n1", ""},
	"exclude":         {"exclude: n1", ""},
	"contiguous":      {"contiguous: true", "nodes: 2"},
	"within":          {"within: leaf", "nodes: 2"},
	"within_for":      {"within_for: 10m", "nodes: 2\nwithin: leaf"},
	"switches":        {"switches: 1", "nodes: 2"},
	"switches_for":    {"switches_for: 10m", "nodes: 2\nswitches: 1"},
	"spread":          {"spread: true", "nodes: 2"},
	"few_nodes":       {"few_nodes: true", "nodes: 1-4\ntasks: 8"},
	"segment":         {"segment: 2", "nodes: 4"},
	"distribution":    {"distribution: cyclic", "nodes: 2\ntasks: 4"},
}

// podEffects has an example for each field of kubernetes.
var podEffects = map[string]string{
	"pods": "task", "shm": "1G", "host_network": "true", "lock_memory": "true", "service_account": "a", "runtime_class": "a", "priority_class": "a",
	"labels": "{a: b}", "annotations": "{a: b}", "node_selector": "{a: b}", "tolerations": "[a]",
}

// notifyEffects has an example for each field of notify; without it, notify has a webhook alone.
var notifyEffects = map[string]example{
	"webhook": {"notify: {webhook: 'https://example.org/y'}", ""},
	"on":      {"  on: [fail]", "notify:\n  webhook: https://example.org/x"},
}

// containerEffects has an example for each field of container_options.
var containerEffects = map[string]string{
	"mounts": "[/a:/b:ro]", "workdir": "/a", "env": "[A]", "name": "a", "mount_home": "true", "remap_root": "true", "entrypoint": "false", "writable": "false",
}

// retryEffects has an example for each field of retries; without it, retries has a count alone.
var retryEffects = map[string]example{
	"count":   {"retries: {count: 2}", ""},
	"backoff": {"  backoff: 30s", "retries:\n  count: 3"},
	"on":      {"  on: [75]", "retries:\n  count: 3"},
}

// amountEffects has an example for each resource of per_node and its like.
var amountEffects = map[string]string{"cpus": "4", "memory": "4G", "disk": "4G", "resources": "{gres/fpga: 1}", "gpus": "2"}

// saysNothing are the fields that only name the form.
var saysNothing = []string{"version", "kind"}

// TestEveryFieldCounts: each field of the native form changes the job. A field that is new in
// the tables needs a row here.
func TestEveryFieldCounts(t *testing.T) {
	outcome := func(text string) string {
		s, script, _, err := Parse(spec.Source{Name: "job.yaml", Data: []byte(text)}, options())
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			return ""
		}
		s.Source.Given, s.Source.Lines = nil, [2]int{}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + string(script)
	}
	const command = "command: train\n"
	check := func(name string, e example) {
		t.Helper()
		before := command
		if rest, bare := strings.CutPrefix(e.beside, "-"); bare {
			if before = ""; rest != "" {
				before = rest + "\n"
			}
		} else if e.beside != "" {
			before += e.beside + "\n"
		}
		with := outcome(before + e.with + "\n")
		without := outcome(before)
		if before == "" {
			t.Errorf("%s: nothing to compare with", name)
		}
		if (with == without) != slices.Contains(saysNothing, name) {
			t.Errorf("%s beside %q changes nothing", e.with, e.beside)
		}
	}
	names := map[string]bool{}
	for _, f := range topFields {
		names[f.name] = true
		e, ok := topEffects[f.name]
		switch {
		case !ok:
			t.Errorf("%s is in the table and not among the effects of this test", f.name)
		case e.beside == "-": // what runs
			if !strings.Contains(outcome(e.with+"\n"), "hostname") {
				t.Errorf("%s does not run", e.with)
			}
		default:
			check(f.name, e)
		}
	}
	for name := range topEffects {
		if !names[name] {
			t.Errorf("%s is no field", name)
		}
	}
	for _, f := range podFields {
		v, ok := podEffects[f.name]
		if !ok {
			t.Errorf("kubernetes.%s is not among the effects of this test", f.name)
		}
		check("kubernetes."+f.name, example{"kubernetes: {" + f.name + ": " + v + "}", ""})
	}
	for _, f := range containerFields {
		v, ok := containerEffects[f.name]
		if !ok {
			t.Errorf("container_options.%s is not among the effects of this test", f.name)
		}
		check("container_options."+f.name, example{"container_options: {" + f.name + ": " + v + "}", ""})
	}
	for _, f := range retryFields {
		v, ok := retryEffects[f.name]
		if !ok {
			t.Errorf("retries.%s is not among the effects of this test", f.name)
		}
		check("retries."+f.name, v)
	}
	for _, f := range notifyFields {
		v, ok := notifyEffects[f.name]
		if !ok {
			t.Errorf("notify.%s is not among the effects of this test", f.name)
		}
		check("notify."+f.name, v)
	}
	for i, f := range amountFields {
		v, ok := amountEffects[f.name]
		if !ok {
			t.Errorf("the amount %s is not among the effects of this test", f.name)
		}
		for _, of := range []string{"per_node", "per_task", "per_gpu", "total"} {
			e := example{of + ": {" + f.name + ": " + v + "}", ""}
			if of == "per_gpu" {
				if e.beside = "gpus: 2"; i == len(amountFields)-1 {
					continue
				}
			}
			check(of+"."+f.name, e)
		}
	}
}
