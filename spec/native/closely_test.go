package native

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
)

// TestCloseness: what a group asks of the topology and what it only wishes for.
func TestCloseness(t *testing.T) {
	s, _ := parse(t, "nodes: 2\ngpus_per_node: 8\ngpu_types: [h100, a100]\ngpu_types_for: 1h\nspread: true\nwithin: rack\ncommand: a\n")
	g := s.Groups[0]
	if !g.Spread || !reflect.DeepEqual(g.Wishes, job.Wishes{GPUs: []string{"h100", "a100"}, GPUsFor: time.Hour}) || s.LevelName(g.Within) != "rack" {
		t.Errorf("%+v of %v", g, s.Levels)
	}
	if forms := s.Forms(0); len(forms) != 2 || forms[1].After != time.Hour || forms[1].Spec.Groups[0].PerNode.Devices[0].Type != "a100" {
		t.Errorf("%+v", forms)
	}
	for text, want := range map[string]string{
		"gpus: h100:2\ngpu_types: [h100, a100]\ncommand: a\n":     "gpu_types",
		"gpus: 2\ngpu_types: [h100]\ncommand: a\n":                "gpu_types",
		"nodes: 2\nwithin_for: 10m\ncommand: a\n":                 "within_for",
		"nodes: 2\nswitches_for: site\ncommand: a\n":              "switches_for",
		"nodes: 2\nwithin: top of rack\ncommand: a\n":             "within",
		"nodes: 2\nwithin: leaf\nwithin_for: site\ncommand: a\n":  "within_for",
		"nodes: 2\ntogether_for: 10m\ncommand: a\n":               "together_for",
		"nodes: 2\ngpus: 2\ngpu_types_for: 10m\ncommand: a\n":     "gpu_types_for",
		"nodes: 2\nswitches: 1\nswitches_for: 10\ncommand: a\n":   "switches_for",
		"nodes: 2\nswitches: few\nswitches_for: 1h\ncommand: a\n": "switches",
	} {
		_, _, _, err := Parse(spec.Source{Name: "job.yaml", Data: []byte(text)}, options())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
